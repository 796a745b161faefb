"""A run beside published ones over the same rows: which it takes, that it stays the same, and its replay."""

from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import SPEC, loans

from flows.partitions.years import spec_as_held
from flows.runs.disclosure import with_earlier
from flows.runs.index import published_beside, run_of
from flows.runs.record import publish, summarise
from flows.runs.replay import replay_run
from flows.runs.signatures import protect, verify_run
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import plan, walk

METHODS = SPEC[SPEC.index("methods:") : SPEC.index("thresholds:")]
TEXT = SPEC.replace(METHODS, "methods: {adjusted: null, fgce: null}\nmodel: {kind: none}\n").replace(
    "model: {kind: logistic_regression, folds: 5}\n", ""
)
HOME = {"source.keep": "{purpose: [buy]}"}
HANDED = ("publication", "publication_rows", "publication_kinds")


class Held(NamedTuple):
    """A lake of two runs of one file: the first of some loans and published, the second of all and beside it."""

    place: Path
    lake: Lake
    first: str
    second: str
    warnings: list[str]


def spec_of(place: Path, **more: str) -> AuditSpec:
    given = {key.replace("__", "."): value for key, value in more.items()}
    return read_spec(TEXT, "loans.yaml", {"source.path": str(place / "loans.csv"), **given}).spec


def audited(spec: AuditSpec, lake: Lake) -> tuple[str, list[str]]:
    """The run of a spec, stage by stage, and what is warned of."""
    planned = plan(spec_as_held(spec, lake))
    done = walk(planned.steps, lambda step, given: step.stage.run(lake, given, step.settings, step.modules))
    publish(lake, planned, done)
    return planned.run, summarise(lake, planned.spec, planned.run, done).warnings


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    place = tmp_path_factory.mktemp("earlier")
    loans(200).to_csv(place / "loans.csv", index=False)
    lake = Lake(place / "lake")
    first, _ = audited(spec_of(place, **HOME), lake)
    protect(lake, first, protected=True)
    return Held(place, lake, first, *audited(spec_of(place), lake))


def test_a_published_run_is_taken_into_account(held: Held) -> None:
    lake, first, second = held.lake, held.first, held.second
    assert second != plan(spec_of(held.place)).run, "another run is published: another key"
    assert run_of(lake, second).beside == (first,)
    [told] = [words for words in held.warnings if "published" in words]
    assert f"would follow from this run beside {first}, which is published: more is withheld" in told
    [handed] = [step.artifacts for step in plan(spec_as_held(spec_of(held.place), lake)).steps if step.artifacts]
    assert [f"earlier_{name}" for name in HANDED] == [artifact.table for artifact in handed]
    sealed = next(part for part in run_of(lake, second).lineage if part["stage"] == "publish")
    assert {artifact.sha256 for artifact in handed} <= {given["sha256"] for given in sealed["inputs"]}


def test_a_published_run_that_is_made_again_is_the_same(held: Held) -> None:
    lake, narrow, wide = held.lake, spec_of(held.place, **HOME), spec_of(held.place)
    assert plan(spec_as_held(narrow, lake)).run == held.first
    protect(lake, held.second, protected=True)
    assert plan(spec_as_held(narrow, lake)).run == held.first
    assert plan(spec_as_held(wide, lake)).run == held.second
    assert published_beside(lake, held.first) == [], "they were audited together"
    strict = with_earlier(spec_of(held.place, disclosure__profile="strict"), lake).disclosure.beside
    assert {each.run for each in strict} == {held.first, held.second}
    protect(lake, held.second, protected=False)


def test_which_runs_are_left_out_or_refused(held: Held) -> None:
    place, lake = held.place, held.lake
    internal = spec_of(place, disclosure__profile="internal")
    assert with_earlier(internal, lake) == internal
    assert with_earlier(spec_of(place, row_id="null"), lake).disclosure.beside == (), "rows under another identifier"
    named = with_earlier(spec_of(place, disclosure__beside=f"[{held.second}]"), lake).disclosure.beside
    assert [each.run for each in named] == sorted([held.first, held.second])
    with pytest.raises(SpecError, match="shares no rows"):
        with_earlier(spec_of(place, disclosure__beside=f"[{held.first}]", row_id="null"), lake)
    with pytest.raises(SpecError, match="no run"):
        with_earlier(spec_of(place, disclosure__beside="[loans-2024-0000000000]"), lake)


def test_a_replay_takes_the_runs_that_were_named_then(held: Held) -> None:
    protect(held.lake, held.first, protected=False)
    steps = replay_run(held.lake.root, held.second)
    assert all(step["equal"] for step in steps)
    assert verify_run(held.lake.location, held.second)["altered"] == 0
    [table] = [a for part in run_of(held.lake, held.first).partitions for a in part.tables if a.table == HANDED[0]]
    (held.lake.root / table.path).unlink()
    with pytest.raises(IntegrityError):
        replay_run(held.lake.root, held.second)
