"""The page of settings: every variable that code and deployment files name, and no other; secrets are files alone."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from conftest import REPOSITORY
from deployed import COMPOSE, DEPLOYMENTS, SERVICES

from flows.operations.environment_variables import SERVER, SETTINGS, SITE, WORKER, misspelt, page
from flows.supervision.prefect_server import LIGHT

NAME = re.compile(
    r"(?<![\w$])(?:EVENHAND|PREFECT|OTEL|OPENLINEAGE|NUMBA|OMP|OPENBLAS|AWS|XDG|DO_NOT)_[A-Z0-9]+(?:_[A-Z0-9]+)*(?![\w*{/-])|PIP_(?:EXTRA|FIND)_\w+"
)
OWN_AFFAIR = {
    *("PREFECT_UI_ENABLED", "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS"),
    *("PREFECT_API_REQUEST_TIMEOUT", "PREFECT_CLIENT_MAX_RETRIES"),
    *LIGHT,
}
"""What a process of ours sets for a server that it starts itself, or for one question to it: nobody's to set."""
OLD_NAMES = {"PREFECT_API_DATABASE_CONNECTION_URL"}
"""Prefect's former names of a setting; doctor reads them, nobody is told of them."""


def sources() -> Iterator[Path]:
    """Code, and deployment files but for pages."""
    for top in ("research", "flows", "tasks", "schemas"):
        yield from (REPOSITORY / top).rglob("*.py")
    kinds = ("*.yaml", "*.service", "*.conf", "*.sh", "Dockerfile")
    for kind in kinds:
        yield from (path for path in DEPLOYMENTS.rglob(kind) if "rendered" not in path.parts)


def named() -> set[str]:
    own = REPOSITORY / "flows" / "operations" / "environment_variables.py"
    return {name for path in sources() if path != own for name in NAME.findall(path.read_text())}


def test_every_variable_that_is_named_is_on_the_page_and_no_other() -> None:
    assert named() - OWN_AFFAIR - OLD_NAMES - set(SETTINGS) == set(), (
        "add it to flows/operations/environment_variables.py"
    )
    assert set(SETTINGS) - named() == set(), "nothing names it"


def test_the_page_is_written_from_the_settings() -> None:
    assert (REPOSITORY / "docs" / "settings.md").read_text() == page(), "make docs"


def test_secrets_are_given_as_files_and_never_as_variables() -> None:
    secret = {name for name, setting in SETTINGS.items() if setting.secret}
    files = {
        *(s["target"] for service in SERVICES.values() for s in service.get("secrets", ()) if isinstance(s, dict)),
        *re.findall(r"^LoadCredential=(\w+):", "".join(p.read_text() for p in DEPLOYMENTS.rglob("*.service")), re.M),
        *re.findall(r"path: ([A-Z_]+)", "".join(p.read_text() for p in (DEPLOYMENTS / "kubernetes").rglob("*.yaml"))),
    }
    assert len(files) >= 5
    assert files <= secret
    for path in DEPLOYMENTS.rglob("*"):
        if path.is_file() and path.suffix in (".yaml", ".service", ""):
            said = re.findall(r"(?:name: |^\s*|Environment=.*)([A-Z_]+)(?:, value)?[:=] ?", path.read_text(), re.M)
            assert not secret & set(said), path


@pytest.mark.parametrize("role", [SERVER, WORKER, SITE])
def test_what_a_container_is_given_is_read_by_its_role(role: str) -> None:
    for name in SERVICES[role].get("environment", {}):
        assert role in SETTINGS[name].roles, name
    for each in SERVICES[role].get("secrets", ()):
        assert role in SETTINGS[each["target"]].roles, each
    assert set(COMPOSE["secrets"]) == {"database_password", "server_auth"}


def test_defaults_are_those_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.supervision.prefect_server import prepare_environment

    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    before = set(os.environ)
    prepare_environment(tmp_path)
    made = {name: os.environ[name] for name in set(os.environ) - before}
    for name in made:
        monkeypatch.delenv(name)
    assert {"PREFECT_HOME", "DO_NOT_TRACK"} <= set(made)
    for name, value in made.items():
        shown = value.replace(f"{tmp_path}/prefect/", "PREFECT_HOME/").replace(str(tmp_path), "LAKE")
        assert f"`{shown}`" in SETTINGS[name].default, name
    image = dict(re.findall(r"^(?:ENV|    ) *([A-Z_]+)=(\S+)", (DEPLOYMENTS / "Dockerfile").read_text(), re.M))
    assert SETTINGS["EVENHAND_KERNELS"].default == f"`{image['EVENHAND_KERNELS']}`"
    assert yaml.safe_load((DEPLOYMENTS / "compose.yaml").read_text())["services"]["worker"]["mem_limit"].endswith(
        f":-{SETTINGS['EVENHAND_WORKER_MEMORY'].default.strip('`')}}}"
    )


def test_a_misspelt_variable_is_named_with_the_nearest() -> None:
    assert misspelt({"EVENHAND_LAKES": "x", "EVENHAND_LAKE": "y", "PREFECT_ODD": "z"}) == [
        "EVENHAND_LAKES is no setting; did you mean 'EVENHAND_LAKE'?"
    ]
