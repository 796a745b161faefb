"""``evenhand disclose``: each withheld population with what can be told of it, for restricted eyes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand

from flows.runs.disclosure import counted, of_earlier, remarks
from schemas.tables.verdicts import PUBLICATION, PUBLICATION_BESIDE
from tasks.lake.store import Lake

SHOWN: dict[str, Any] = {
    **{"protected_attribute": "race", "group": "white", "part": 0, "decision_maker": "lender", "base": "used"},
    **{"reason": "", "event": "", "fate": "shown", "number": 300, "text": "", "least": None, "largest": None},
    "groups": "",
}
GONE = SHOWN | {"group": "Asian", "fate": "withheld_small", "number": None, "least": 1, "largest": 17}
WITH = SHOWN | {"group": "other", "fate": "withheld_with", "number": None, "least": 1, "largest": 17}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path / "lake")
    rows = [SHOWN, GONE, GONE | {"event": "denied", "least": 0, "largest": 6}, WITH]
    table = PUBLICATION.build(**{c.name: [row.get(c.name) for row in rows] for c in PUBLICATION.columns})
    beside = PUBLICATION_BESIDE.build(run=["t-2024-0000000000"], told=[2], closed=[0])
    tables = {PUBLICATION.name: table, PUBLICATION_BESIDE.name: beside}
    partition = found.publish("publish", "0" * 32, tables, {}, {})
    known = {"run": "first", "dataset": "t", "year": 2024, "state": "within", "finished": "", "source_sha256": "0"}
    content = known | {"code": "0", "versions": {}, "spec": {"source": {}}, "lineage": [{}]}
    content["partitions"] = [partition.model_dump(mode="json")]
    sealed = content | {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    found.write_file("runs/first/manifest.json", json.dumps(sealed).encode())
    return found


def test_withheld_populations_are_told_with_why_and_the_width(lake: Lake) -> None:
    done = evenhand("disclose", "first", "--lake", str(lake.root), "--json")
    assert done.returncode == 0, done.stderr
    rows = [(r["group"], r["event"], r["fate"], r["least"], r["largest"], r["width"]) for r in json.loads(done.stdout)]
    assert rows == [
        ("Asian", "", "withheld_small", 1, 17, 16),
        ("Asian", "denied", "withheld_small", 0, 6, 6),
        ("other", "", "withheld_with", 1, 17, 16),
    ]
    assert done.stderr.startswith("restricted: ")
    assert "together with earlier published runs: t-2024-0000000000\n" in done.stderr


def test_whoever_publishes_is_told_what_follows_from_earlier_runs() -> None:
    rows = [{"run": "first", "told": 2, "closed": 1}, {"run": "second", "told": 2, "closed": 1}]
    more, anyway = of_earlier(rows)
    assert more.startswith("2 counts of few people would follow from this run beside first, second")
    assert anyway.endswith("1; merge groups")
    assert of_earlier([{"run": "first", "told": 0, "closed": 0}]) == of_earlier([]) == []


def test_an_audit_says_how_many_are_withheld() -> None:
    assert counted([SHOWN, GONE, GONE | {"event": "denied"}, WITH]) == "2 of 3 populations withheld"


def test_whoever_publishes_is_told_of_lost_verdicts_and_of_counts_that_follow_and_not_whose() -> None:
    large = WITH | {"group": "F", "least": 272, "largest": 279}
    verdicts = [{"protected_attribute": "race", "group": name, "withheld": True} for name in ("F", "Asian")]
    [lost] = remarks([SHOWN, GONE, WITH, large, large | {"event": "denied", "least": None}], verdicts, "public")
    assert lost.startswith("1 group with a verdict is withheld")
    assert "F" not in lost.split("; ")[0]
    [told] = remarks([SHOWN, GONE | {"largest": 4}], [], "public")
    assert told == "withheld counts that follow from what is published: 1; merge groups"
    assert remarks([SHOWN, GONE, WITH], verdicts, "public") == remarks([SHOWN], [], "internal") == []


def test_a_run_of_before_the_pass_says_so(lake: Lake) -> None:
    manifest = json.loads((lake.root / "runs/first/manifest.json").read_text())
    content = {**manifest, "partitions": []}
    del content["sha256"]
    sealed = content | {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    (lake.root / "runs/first/manifest.json").write_text(json.dumps(sealed))
    done = evenhand("disclose", "first", "--lake", str(lake.root))
    assert (done.returncode, "before the disclosure pass" in done.stderr) == (2, True)
