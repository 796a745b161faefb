"""The deployment files as text: linted by kept tools, read by Prefect itself, and true to what they promise."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from deployed import COMPOSE, DEPLOYMENTS, SERVICES
from lint import lint


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

    def test_directories_come_from_the_environment_and_are_required(self) -> None:
        text = (DEPLOYMENTS / "compose.yaml").read_text()
        named, required = set(re.findall(r"\$\{(\w+)", text)), set(re.findall(r"\$\{(\w+):\?\S", text))
        assert named - required == {"EVENHAND_WORKER_MEMORY"}, "each other is required where it is first named"
        assert {f["file"].split("}")[0].split(":")[0] for f in COMPOSE["secrets"].values()} == {"${EVENHAND_SECRETS"}

    def test_no_container_has_a_secret_in_its_settings(self) -> None:
        said = [(k, str(v)) for service in SERVICES.values() for k, v in service.get("environment", {}).items()]
        secret = [(k, v) for k, v in said if re.search("PASSWORD|AUTH|SECRET|KEY|CONNECTION_URL", k)]
        assert secret == [("POSTGRES_PASSWORD_FILE", "/run/secrets/database_password")]
        mounted = [s if isinstance(s, str) else s["source"] for v in SERVICES.values() for s in v.get("secrets", ())]
        assert set(mounted) == set(COMPOSE["secrets"])
        assert "secrets" not in SERVICES["site"]

    def test_the_server_keeps_leases_where_they_outlive_it_and_tells_whether_it_is_ready(self) -> None:
        server = SERVICES["server"]
        assert server["environment"]["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"].endswith("lease_storage.filesystem")
        assert "server:/srv/evenhand/prefect" in server["volumes"], "PREFECT_HOME, in which leases lie"
        assert "/api/ready" in server["healthcheck"]["test"][-1]
        assert "/api/health" not in (DEPLOYMENTS / "compose.yaml").read_text().replace("which /api/health does not", "")

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

    def test_every_container_is_bounded_and_writes_in_its_volumes_only(self) -> None:
        for name, service in SERVICES.items():
            assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"]), name
            assert service["read_only"] is True, name
            assert "/tmp" in service["tmpfs"], name
            assert service["mem_limit"], name
            assert service["pids_limit"] > 0, name
            assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
            assert name == "database" or "cap_add" not in service, name

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
        from flows.outcome.run_state import announced

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
