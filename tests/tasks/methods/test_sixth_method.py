"""A further method is a folder of ``tasks.methods`` and its name in ``NAMES``: nothing else is touched.

The house is copied, the folder of ``material/sixth_method`` put into it, and the name written down. The small loans are
then audited by the copy, in a process of its own, through the plan and a lake.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, SPEC, environment, loans

pytestmark = pytest.mark.slow

MATERIAL = Path(__file__).parents[2] / "material" / "sixth_method"
NAMES = Path("tasks", "pipeline", "registry.py")
ALGORITHM = Path("tasks", "methods", "nearby", "algorithm", "detection.py")
METHODS = SPEC[SPEC.index("methods:") : SPEC.index("thresholds:")]
ASKED = "methods: {adjusted: null, fgce: null, nearby: {reach: 0.2}}\n"

AUDIT = """
import json, sys
from pathlib import Path
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import plan; from tasks.plan import walk

place = Path(sys.argv[1])
planned = plan(read_spec((place / "loans.yaml").read_text(), "loans.yaml").spec)
lake, keys = Lake(place / "lake"), {}

def execute(step, given):
    keys[step.name] = step.stage.key(given, step.settings, step.modules)
    return step.stage.run(lake, given, step.settings, step.modules)

done = walk(planned.steps, execute)
pages = {done[-1].within(path): path for path in done[-1].files}
measures = lake.read(next(t for p in done if p.stage == "measure" for t in p.tables if t.table == "measures"))
print(json.dumps({
    "keys": keys,
    "reused": {step.name: partition.reused for step, partition in zip(planned.steps, done)},
    "measures": [row for row in measures.to_pylist() if row["method"] == "nearby"],
    "evidence": lake.storage.read(pages["evidence/nearby.html"]).decode(),
    "definitions": lake.storage.read(pages["method.html"]).decode(),
}, default=str))
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, and beside it the loans with their spec."""
    house: Path = tmp_path_factory.mktemp("house")
    for top in ("flows", "schemas", "tasks"):
        shutil.copytree(REPOSITORY / top, house / top)
    shutil.copytree(MATERIAL, house / "tasks" / "methods" / "nearby")
    names = house / NAMES
    names.write_text(names.read_text().replace('"raguel")', '"raguel", "nearby")'))
    loans().to_csv(house / "loans.csv", index=False)
    spec = SPEC.replace(METHODS, ASKED).replace("path: loans.csv", f"path: {house / 'loans.csv'}")
    (house / "loans.yaml").write_text(spec)
    return house


def audited(house: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(house)],
        env=environment(None) | {"PYTHONPATH": str(house)},
        cwd=house,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def first(house: Path) -> dict[str, Any]:
    return audited(house)


def test_nothing_but_its_folder_and_its_name_was_touched(house: Path) -> None:
    ours = {file.relative_to(REPOSITORY) for top in ("flows", "schemas", "tasks") for file in _code(REPOSITORY / top)}
    theirs = {file.relative_to(house) for top in ("flows", "schemas", "tasks") for file in _code(house / top)}
    assert {file.parts[:3] for file in theirs - ours} == {("tasks", "methods", "nearby")}
    changed = [file for file in ours if (REPOSITORY / file).read_bytes() != (house / file).read_bytes()]
    assert changed == [NAMES]


def test_its_measures_are_in_the_table_of_measures(first: dict[str, Any]) -> None:
    found = {(m["measure"], m["decision_maker"], m["group"]): m for m in first["measures"]}
    names = {"nearby_share", "nearby_share_difference", "nearby_share_ratio"}
    assert {measure for measure, _, _ in found} == names
    assert {maker for _, maker, _ in found} == {"lender", "model"}
    assert all(0 < m["value"] < 1 for (measure, _, _), m in found.items() if measure == "nearby_share")
    assert all(m["low"] <= m["value"] <= m["high"] for m in found.values() if m["value"] is not None)


def test_its_page_and_its_definitions_are_in_the_report(first: dict[str, Any]) -> None:
    for text in (
        "Approved neighbours (NEARBY)",
        "Who was denied beside people like them",
        "Somebody like them was approved",
    ):
        assert text in first["evidence"], text
    for text in ("A neighbour is no advice.", "denied beside an approved neighbour", "differs in no feature by more"):
        assert text in first["definitions"], text


def test_a_change_of_its_code_is_a_change_of_its_keys(house: Path, first: dict[str, Any]) -> None:
    algorithm = house / ALGORITHM
    text = algorithm.read_text()
    algorithm.write_text(text.replace("<= settings.reach", "< settings.reach"))
    try:
        second = audited(house)
    finally:
        algorithm.write_text(text)
    changed = {name for name, key in second["keys"].items() if first["keys"][name] != key}
    assert "detect nearby" in changed
    assert {name for name, reused in second["reused"].items() if reused} >= {"ingest", "preprocess", "score"}


def test_a_wrong_key_of_its_settings_is_named_with_its_line(house: Path) -> None:
    spec = house / "loans.yaml"
    text = spec.read_text()
    spec.write_text(text.replace("reach: 0.2", "raech: 0.2"))
    try:
        with pytest.raises(AssertionError, match=r"line \d+: methods.nearby.raech: unknown key; did you mean 'reach'"):
            audited(house)
    finally:
        spec.write_text(text)


def _code(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*.py") if "__pycache__" not in file.parts]
