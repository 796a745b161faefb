"""The deployment files as text: linted by kept tools, read by Prefect itself, and true to what they promise."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from deployed import COMPOSE, DEPLOYMENTS, SERVICES

PROGRAMS = Path(sys.executable).parent


def lint(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PROGRAMS / words[0], *words[1:]], capture_output=True, text=True, timeout=60)


class TestDockerfile:
    def test_hadolint_has_nothing_to_say(self) -> None:
        done = lint("hadolint", "--no-color", str(DEPLOYMENTS / "Dockerfile"))
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr

    def test_hadolint_would_say_it(self, tmp_path: Path) -> None:
        worse = tmp_path / "Dockerfile"
        worse.write_text((DEPLOYMENTS / "Dockerfile").read_text().replace("USER 10001:10001", "USER root"))
        assert "DL3002" in lint("hadolint", "--no-color", str(worse)).stdout

    def test_everything_that_is_copied_is_there_and_passes_the_ignore_file(self) -> None:
        text = (DEPLOYMENTS / "Dockerfile").read_text()
        copied = [word for line in re.findall(r"^COPY (.+) \S+$", text, re.M) for word in line.split()]
        allowed = re.findall(r"^!(\S+)$", (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(), re.M)
        assert copied
        for path in copied:
            assert (REPOSITORY / path).exists(), path
            assert any(entry == path or entry.startswith(f"{path}/") for entry in allowed), path
        assert all((REPOSITORY / entry).exists() for entry in allowed)

    def test_it_has_what_an_installed_wheel_is_built_from(self) -> None:
        build = (REPOSITORY / "pyproject.toml").read_text()
        needed = re.findall(r'^"(data/[^"]+)" = "flows/bundled', build, re.M)
        allowed = re.findall(r"^!(\S+)$", (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(), re.M)
        assert needed
        for path in needed:
            assert any(path == entry or path.startswith(f"{entry}/") for entry in allowed), path


def mounts() -> Iterator[tuple[str, str, bool]]:
    """Service, source and whether it is read-only, of every mount, in the short form and in the long one."""
    for name, service in SERVICES.items():
        for mount in service.get("volumes", ()):
            if isinstance(mount, str):
                yield name, mount.split(":")[0], mount.endswith(":ro")
            else:
                yield name, mount["source"], mount.get("read_only", False)


class TestCompose:
    def test_it_keeps_the_published_schema(self) -> None:
        done = lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(DEPLOYMENTS / "compose.yaml"))
        assert done.returncode == 0, done.stdout + done.stderr

    def test_a_misspelt_key_would_be_found(self, tmp_path: Path) -> None:
        worse = tmp_path / "compose.yaml"
        worse.write_text((DEPLOYMENTS / "compose.yaml").read_text().replace("healthcheck:", "health_check:"))
        assert lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(worse)).returncode == 1

    def test_ports_are_published_on_this_machine_only(self) -> None:
        published = [port for service in SERVICES.values() for port in service.get("ports", ())]
        assert published
        assert all(port.startswith("127.0.0.1:") for port in published)

    def test_passwords_and_directories_come_from_the_environment_and_are_required(self) -> None:
        text = (DEPLOYMENTS / "compose.yaml").read_text()
        named, required = set(re.findall(r"\$\{(\w+)", text)), set(re.findall(r"\$\{(\w+):\?\S", text))
        assert named == required, "each of them is required where it is first named"
        said = [(k, v) for service in SERVICES.values() for k, v in service.get("environment", {}).items()]
        secret = [(k, str(v)) for k, v in said if re.search("PASSWORD|AUTH_STRING|CONNECTION_URL", k)]
        assert len(secret) >= 4
        assert all("${EVENHAND_" in value for _, value in secret), secret

    def test_the_site_sees_reports_only_and_cannot_write_them(self) -> None:
        (mounted,) = SERVICES["site"]["volumes"]
        assert (mounted["source"], mounted["volume"], mounted["read_only"]) == ("lake", {"subpath": "reports"}, True)
        command = SERVICES["site"]["command"]
        assert command[command.index("--directory") + 1] == mounted["target"]
        assert SERVICES["site"]["read_only"] is True
        assert SERVICES["site"]["depends_on"]["worker"]["condition"] == "service_healthy", "a subpath has to be there"

    def test_only_the_worker_writes_the_lake(self) -> None:
        written = {name for name, source, read_only in mounts() if source == "lake" and not read_only}
        assert written == {"worker"}

    def test_our_containers_are_not_privileged(self) -> None:
        for name, service in SERVICES.items():
            if service["image"].startswith("evenhand:"):
                assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"]), name

    def test_the_volumes_that_are_mounted_are_declared(self) -> None:
        assert {source for _, source, _ in mounts() if source[0].isalpha()} == set(COMPOSE["volumes"])


class TestPrefectFile:
    @pytest.fixture
    def deployments(self) -> dict[str, Any]:
        from prefect.cli.deploy._models import PrefectYamlModel

        said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
        model = PrefectYamlModel.model_validate(said)
        assert [d.name for d in model.deployments] == [d["name"] for d in said["deployments"]]
        return {str(d.name): d for d in model.deployments}

    def test_no_key_is_misspelt(self) -> None:
        """Prefect passes over keys that it does not know, so that a wrong one would be lost in silence."""
        from prefect.cli.deploy._models import DeploymentConfig

        said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
        known = set(DeploymentConfig.model_fields)
        assert [set(entry) - known for entry in said["deployments"]] == [set()] * len(said["deployments"])

    def test_it_is_of_the_prefect_that_is_locked(self) -> None:
        said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
        assert f"prefect=={said['prefect-version']} \\\n" in (REPOSITORY / "requirements.lock").read_text()

    def test_entrypoints_are_flows_that_take_the_parameters(self, deployments: dict[str, Any]) -> None:
        from prefect import Flow
        from prefect.utilities.callables import parameter_schema

        for deployment in deployments.values():
            module, _, name = deployment.entrypoint.rpartition(".")
            flow = getattr(import_module(module), name)
            assert isinstance(flow, Flow), deployment.entrypoint
            schema = parameter_schema(flow).model_dump()
            assert set(schema["required"]) <= set(deployment.parameters) <= set(schema["properties"])

    def test_a_run_of_each_tells_that_it_is_at_work(self, deployments: dict[str, Any]) -> None:
        """Else a run that died would never be found."""
        from flows.supervision.announcement import announced

        for deployment in deployments.values():
            module, _, name = deployment.entrypoint.rpartition(".")
            function = getattr(import_module(module), name).fn
            assert function.__code__ is announced(lambda: None).__code__, deployment.entrypoint

    def test_one_run_of_each_at_a_time(self, deployments: dict[str, Any]) -> None:
        assert {d.concurrency_limit.limit for d in deployments.values()} == {1}
        assert {d.work_pool.name for d in deployments.values()} == {"evenhand"}
        pool = SERVICES["pool"]["command"]
        assert pool[pool.index("create") + 1] == "evenhand"


def test_the_runbook_names_every_exit_code_deployment_and_service() -> None:
    from schemas.terms import ExitCode

    text = (DEPLOYMENTS / "README.md").read_text()
    said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
    for code in ExitCode:
        assert re.search(rf"^\| {code.value} \|", text, re.M), code
    for name in [*SERVICES, *(d["name"] for d in said["deployments"])]:
        assert f"`{name}`" in text, name
    for variable in set(re.findall(r"\$\{(\w+)", (DEPLOYMENTS / "compose.yaml").read_text())):
        assert variable in text, variable


def test_ci_installs_what_the_deployment_test_needs() -> None:
    text = (REPOSITORY / ".ci" / "run").read_text()
    assert "postgresql" in text
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)


def test_the_lock_has_the_set_of_libraries_that_was_tried() -> None:
    """Libraries that move together: docs/decisions/0029 says which, and how they are tried."""
    text = (REPOSITORY / "docs" / "decisions" / "0029-libraries-that-move-together.md").read_text()
    tried = dict(re.findall(r"^\| ([a-z]+) \| (\d[\d.]*) \|$", text, re.M))
    assert set(tried) == {"prefect", "fastapi", "sqlalchemy", "aiosqlite", "asyncpg"}
    locked = dict(re.findall(r"^([a-z]+)==(\S+) ", (REPOSITORY / "requirements.lock").read_text(), re.M))
    assert {name: locked[name] for name in tried} == tried
