"""The chart of Helm makes what Kustomize makes: with each file of values the manifests of one overlay, no others."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from deployed import DEPLOYMENTS, SERVICES
from test_kubernetes_manifests import manifests, validated, with_validator

CHART = DEPLOYMENTS / "helm" / "evenhand"
VALUES = {"single-node": None, "postgres-outside": "postgres-outside.yaml", "s3-lake": "s3-lake.yaml"}
"""Overlay -> the file in ``ci`` that makes the same; None: what the chart makes by itself."""
HELM = shutil.which("helm")
with_helm = pytest.mark.skipif(
    HELM is None, reason="helm is not installed here; deployments/README.md says where it ran"
)


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(HELM), *words], capture_output=True, text=True, timeout=60)


def rendered(overlay: str, *words: str) -> str:
    file = VALUES[overlay]
    values = ["--values", str(CHART / "ci" / file)] if file else []
    done = helm("template", "evenhand", str(CHART), "--namespace", "evenhand", *values, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ordered(part: Any) -> Any:
    """A manifest whose lists are in an order of their own: Kustomize puts what a patch adds first, and a namespace."""
    if isinstance(part, dict):
        return {key: ordered(value) for key, value in part.items() if key != "namespace"}
    if isinstance(part, list):
        named = all(isinstance(each, dict) for each in part)
        found = [ordered(each) for each in part]
        return sorted(found, key=lambda each: json.dumps(each, sort_keys=True)) if named else found
    return part


def by_name(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"{m['kind']} {m['metadata']['name']}": ordered(m) for m in found if m["kind"] != "Namespace"}


@with_helm
@pytest.mark.slow
class TestRendered:
    def test_the_chart_has_no_fault(self) -> None:
        for file in VALUES.values():
            values = ["--values", str(CHART / "ci" / file)] if file else []
            done = helm("lint", "--strict", str(CHART), *values)
            assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize("overlay", VALUES)
    def test_it_makes_what_kustomize_makes(self, overlay: str) -> None:
        made = by_name(list(yaml.safe_load_all(rendered(overlay))))
        expected = by_name(manifests(overlay))
        assert made.keys() == expected.keys()
        for name, manifest in expected.items():
            assert made[name] == manifest, name

    @with_validator
    def test_what_it_makes_keeps_the_schema_of_kubernetes(self, tmp_path: Path) -> None:
        files = [tmp_path / f"{overlay}.yaml" for overlay in VALUES]
        for file in files:
            file.write_text(rendered(file.stem))
        done = validated(*map(str, files))
        assert done.returncode == 0, done.stdout + done.stderr

    def test_what_it_is_given_gets_where_it_belongs(self) -> None:
        words = ["--set", "image=registry.example/evenhand:7", "--set", "worker.resources.limits.memory=32Gi"]
        found = by_name(list(yaml.safe_load_all(rendered("single-node", *words))))
        (box,) = found["Deployment worker"]["spec"]["template"]["spec"]["containers"]
        assert (box["image"], box["resources"]["limits"]) == ("registry.example/evenhand:7", {"memory": "32Gi"})
        assert "image: evenhand:0.2.0" not in rendered("single-node", *words)

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["--set", "images=x"], "images"),
            (["--set", "database.inCluster=false"], "host"),
            (["--set", "lake.s3.address=/srv/lake", "--set", "lake.s3.region=x"], "address"),
        ],
    )
    def test_values_that_are_none_are_refused(self, words: list[str], told: str) -> None:
        done = helm("template", "evenhand", str(CHART), *words)
        assert done.returncode != 0
        assert told in done.stderr


def test_the_chart_is_of_this_version_and_image() -> None:
    import tomllib

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == project["version"]
    assert yaml.safe_load((CHART / "values.yaml").read_text())["image"] == SERVICES["worker"]["image"]
    assert sorted(path.name for path in (CHART / "ci").iterdir()) == sorted(file for file in VALUES.values() if file)
