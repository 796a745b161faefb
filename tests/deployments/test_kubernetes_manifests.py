"""The manifests of Kubernetes: valid to the last key, as rendered by Kustomize, and true to what compose.yaml says."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed import DEPLOYMENTS, SERVICES

KUBERNETES = DEPLOYMENTS / "kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
RENDERED = {name: KUBERNETES / "rendered" / f"{name}.yaml" for name in OVERLAYS}
with_validator = pytest.mark.skipif(
    importlib.util.find_spec("kubernetes_validate") is None,
    reason="kubernetes-validate is not installed here: pip install -r requirements-dev.lock",
)


def kustomize() -> str | None:
    """A kubectl with Kustomize 5: older ones know neither folders as resources nor patches with a path."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        return None
    said = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, timeout=30).stdout
    return kubectl if re.search(r"Kustomize Version: v5\.", said) else None


@cache
def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(RENDERED[name].read_text(), yaml.CSafeLoader))


def pods(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and specification of the pods of each workload."""
    for manifest in manifests(name):
        spec = manifest.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield manifest["metadata"]["name"], spec["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def validated(*files: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "kubernetes_validate", "--strict", *files]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@with_validator
class TestSchema:
    def test_every_manifest_keeps_the_schema(self) -> None:
        plain = [*(KUBERNETES / "base").glob("*.yaml"), *(KUBERNETES / "overlays").glob("*/database.yaml")]
        files = [str(path) for path in (*plain, *RENDERED.values()) if path.name != "kustomization.yaml"]
        done = validated(*files)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_a_fault_would_be_found(self, tmp_path: Path) -> None:
        service = (KUBERNETES / "base" / "server.yaml").read_text().split("---\n")[1]
        for name, right, wrong in (
            ("type", "replicas: 1", "replicas: one"),
            ("key", "periodSeconds", "periodsSeconds"),
        ):
            assert right in service
            (tmp_path / f"{name}.yaml").write_text(service.replace(right, wrong))
        done = validated(*(str(tmp_path / f"{name}.yaml") for name in ("type", "key")))
        assert done.returncode != 0
        assert {word for word in ("one", "periodsSeconds") if f"'{word}'" in done.stdout + done.stderr} == {
            "one",
            "periodsSeconds",
        }


@pytest.mark.parametrize("name", OVERLAYS)
class TestRendered:
    @pytest.mark.skipif(kustomize() is None, reason="no kubectl with Kustomize 5 is installed here")
    def test_it_is_what_kustomize_makes(self, name: str) -> None:
        words = [str(kustomize()), "kustomize", str(KUBERNETES / "overlays" / name)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout == RENDERED[name].read_text(), f"render it: {' '.join(words)}"

    def test_pods_are_refused_nothing_by_the_restricted_standard(self, name: str) -> None:
        for role, pod in pods(name):
            assert pod["automountServiceAccountToken"] is False, role
            assert pod["securityContext"]["runAsNonRoot"] is True, role
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, role
            for each in containers(pod):
                own = each["securityContext"]
                assert (own["allowPrivilegeEscalation"], own["capabilities"]) == (False, {"drop": ["ALL"]}), role
                assert own["readOnlyRootFilesystem"] is True, role
                assert {"requests", "limits"} == set(each["resources"]), role
                assert "/tmp" in [mount["mountPath"] for mount in each["volumeMounts"]], role

    def test_what_is_mounted_is_there(self, name: str) -> None:
        claims = {m["metadata"]["name"] for m in manifests(name) if m["kind"] == "PersistentVolumeClaim"}
        for role, pod in pods(name):
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            mounted = {mount["name"] for each in containers(pod) for mount in each["volumeMounts"]}
            assert mounted - {"data"} == set(volumes), f"{role}; data is the volume of the StatefulSet itself"
            asked = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
            assert asked <= claims, role

    def test_secrets_are_files_by_name(self, name: str) -> None:
        assert not [m for m in manifests(name) if m["kind"] == "Secret"]
        for role, pod in pods(name):
            for each in containers(pod):
                said = [entry["name"] for entry in each.get("env", ())]
                secret = [word for word in said if re.search("PASSWORD|AUTH|SECRET|KEY|CONNECTION_URL", word)]
                assert secret in ([], ["POSTGRES_PASSWORD_FILE"]), role
                assert not any("valueFrom" in entry for entry in each.get("env", ())), role

    def test_roles_are_begun_as_in_compose(self, name: str) -> None:
        ours = {each["name"]: each for _, pod in pods(name) for each in containers(pod)}
        for role in ("server", "pool", "register", "worker", *(["site"] if name != "s3-lake" else [])):
            assert ours[role]["args"] == SERVICES[role]["command"], role
            assert ours[role]["image"] == SERVICES[role]["image"], role
        settings = {entry["name"]: entry["value"] for entry in ours["server"]["env"]}
        assert settings == SERVICES["server"]["environment"]
        assert ours["overdue"]["args"] == ["evenhand", "overdue"]

    def test_the_server_is_one_that_tells_whether_it_is_ready(self, name: str) -> None:
        (server,) = [m for m in manifests(name) if (m["kind"], m["metadata"]["name"]) == ("Deployment", "server")]
        assert (server["spec"]["replicas"], server["spec"]["strategy"]) == (1, {"type": "Recreate"})
        (box,) = server["spec"]["template"]["spec"]["containers"]
        assert {box[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe")} == {"/api/ready"}
        assert "httpGet" not in box["livenessProbe"], "a database that is away is no reason to kill the server"
        assert "/api/health" not in RENDERED[name].read_text()
        grace = {role: pod["terminationGracePeriodSeconds"] for role, pod in pods(name) if role in ("server", "worker")}
        assert grace == {"server": 120, "worker": 120}

    def test_nothing_is_reached_but_by_a_rule(self, name: str) -> None:
        policies = {m["metadata"]["name"]: m["spec"] for m in manifests(name) if m["kind"] == "NetworkPolicy"}
        assert policies["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
        (rule,) = policies["server"]["ingress"]
        asking = rule["from"][0]["podSelector"]["matchExpressions"][0]["values"]
        with_auth = {
            role for role, pod in pods(name) if "PREFECT_API_URL" in str([each.get("env") for each in containers(pod)])
        }
        assert with_auth <= set(asking)
        assert "server-to-database" in policies

    def test_all_is_in_one_namespace(self, name: str) -> None:
        spaces = {m["metadata"].get("namespace") for m in manifests(name) if m["kind"] != "Namespace"}
        assert spaces == {"evenhand"}


def test_a_lake_of_an_object_store_is_named_to_all_who_use_it() -> None:
    for role, pod in pods("s3-lake"):
        for each in containers(pod):
            said = {entry["name"]: entry["value"] for entry in each.get("env", ())}
            if each["name"] in ("worker", "register", "overdue"):
                assert said["EVENHAND_LAKE"].startswith("s3://"), role
            assert "/srv/evenhand/lake" not in [mount["mountPath"] for mount in each["volumeMounts"]], role
