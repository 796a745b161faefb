"""Replay: the same input gives the same tables; what differs in the input, or in what came out, is told."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SPEC, evenhand, loans

from flows.runs.index import digest, read_manifest
from flows.runs.record import publish
from flows.runs.replay import replay_run
from schemas.errors import IntegrityError, SpecError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import plan, walk

METHODS = SPEC[SPEC.index("methods:") : SPEC.index("thresholds:")]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An audit without a method, run stage by stage: where its data and its lake are, and its run id."""
    place = tmp_path_factory.mktemp("replay")
    loans(200).to_csv(place / "loans.csv", index=False)
    text = SPEC.replace(METHODS, "methods: {adjusted: null, fgce: null}\n")
    planned = plan(read_spec(text, "loans.yaml", {"source.path": str(place / "loans.csv")}).spec)
    lake = Lake(place / "lake")
    publish(lake, planned, walk(planned.steps, lambda s, given: s.stage.run(lake, given, s.settings, s.modules)))
    return place, planned.run


@pytest.fixture
def ran(audited: tuple[Path, str]) -> Iterator[tuple[Lake, str]]:
    """The same, to be altered; after that all is as it was, as a run names its source by its path."""
    place, run = audited
    kept = place.with_name(f"{place.name}-kept")
    shutil.copytree(place, kept)
    yield Lake(place / "lake"), run
    shutil.rmtree(place)
    kept.rename(place)


def rewritten(lake: Lake, run: str, old: str, new: str) -> None:
    """The manifest with other words in it, sealed anew."""
    content = json.loads(json.dumps(read_manifest(lake, run)).replace(old, new))
    lake.write_file(f"runs/{run}/manifest.json", json.dumps({**content, "sha256": digest(content)}).encode())


def test_the_same_input_gives_the_same_tables(ran: tuple[Lake, str]) -> None:
    lake, run = ran
    steps = replay_run(lake.root, run)
    assert [s["step"] for s in steps] == ["ingest", "preprocess", "score", "measure", "publish", "report"]
    assert all(s["equal"] and s["compared"] >= 3 and not s["changed"] and not s["input_changed"] for s in steps)
    assert list((lake.root / "tmp").iterdir()) == []


def test_another_result_is_named_with_its_table_and_other_code_as_the_likely_cause(ran: tuple[Lake, str]) -> None:
    lake, run = ran
    rewritten(lake, run, f'"code": "{read_manifest(lake, run)["code"]}"', f'"code": "{"0" * 64}"')
    manifest = read_manifest(lake, run)
    measures = next(p for p in manifest["partitions"] if p["stage"] == "measure")
    digest = next(a["sha256"] for a in measures["tables"] if a["table"] == "measures")
    rewritten(lake, run, digest, "0" * 64)
    done = evenhand("replay", run, "--lake", str(lake.root), "--json")
    assert done.returncode == 6, done.stderr
    steps = json.loads(done.stdout)
    assert {s["input_changed"] for s in steps} == {"the code of evenhand"}
    changed = {s["step"]: s["changed"] for s in steps}
    assert changed == {"ingest": "", "preprocess": "", "score": "", "measure": "measures", "publish": "", "report": ""}


def test_another_source_is_no_replay(ran: tuple[Lake, str]) -> None:
    lake, run = ran
    loans(200, seed=8).to_csv(lake.root.parent / "loans.csv", index=False)
    with pytest.raises(IntegrityError, match=r"the source of run .* has changed since"):
        replay_run(lake.root, run)


def test_a_run_of_another_version_is_told_as_such(ran: tuple[Lake, str]) -> None:
    lake, run = ran
    rewritten(lake, run, '"stage": "preprocess"', '"stage": "prepare"')
    with pytest.raises(SpecError, match="install the version that wrote it"):
        replay_run(lake.root, run)
    rewritten(lake, run, '"row_id"', '"row_ident"')
    with pytest.raises(SpecError, match="not one of this version"):
        replay_run(lake.root, run)
