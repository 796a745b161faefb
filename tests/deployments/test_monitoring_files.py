"""Alert rules and dashboard name metrics that a worker serves, and the rules are ones that Prometheus takes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from deployed import DEPLOYMENTS
from lake_of_runs import lake_of_runs
from prometheus_client import CollectorRegistry

from flows.operations.metrics import LakeCollector

RULES, DASHBOARD = DEPLOYMENTS / "monitoring" / "rules.yaml", DEPLOYMENTS / "monitoring" / "dashboard.json"
NAME = re.compile(r"\bevenhand_\w+")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of all samples, with the suffixes that types give them."""
    registry = CollectorRegistry()
    registry.register(LakeCollector(lake_of_runs(tmp_path_factory.mktemp("served"))))
    families = list(registry.collect())
    ending = {"counter": ("_total",), "summary": ("_count", "_sum"), "gauge": ("",)}
    return {f"{metric.name}{end}" for metric in families for end in ending[metric.type]}


def test_every_metric_that_is_named_is_served_and_every_one_is_shown(served: set[str]) -> None:
    said = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in said["panels"] for target in panel["targets"]]
    shown = set(NAME.findall(" ".join(expressions)))
    watched = set(NAME.findall(RULES.read_text().replace("evenhand worker", "")))
    assert shown | watched <= served
    assert served <= shown | watched


def test_panels_do_not_lie_on_each_other_and_rules_say_what_to_do() -> None:
    places = [each["gridPos"] for each in json.loads(DASHBOARD.read_text())["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(at["x"] + at["w"] <= 24 for at in places)
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) == 6
    assert all(rule["expr"] and {"summary", "action"} == set(rule["annotations"]) for rule in rules)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
def test_prometheus_takes_the_rules() -> None:
    subprocess.run([str(shutil.which("promtool")), "check", "rules", str(Path(RULES))], check=True, capture_output=True)
