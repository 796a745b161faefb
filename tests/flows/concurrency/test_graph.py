"""What each step of the bundled audit waits for, by the tables that stages declare, and what a stage needs."""

import pytest

from flows.cli.options import BUNDLED
from flows.concurrency.schedule import until, waits_for
from schemas.audit.file import spec_text
from schemas.errors import SpecError
from tasks.pipeline.registry import read_spec
from tasks.plan import Step, plan


@pytest.fixture(scope="module")
def steps() -> tuple[Step, ...]:
    return plan(read_spec(spec_text(BUNDLED), str(BUNDLED), {}).spec).steps


@pytest.fixture(scope="module")
def before(steps: tuple[Step, ...]) -> dict[str, set[str]]:
    """Name of each step -> the names of all that have to be done before it."""
    found: dict[str, set[str]] = {}
    for step, waits in zip(steps, waits_for(steps), strict=True):
        direct = {steps[at].name for at in waits}
        found[step.name] = direct.union(*(found[name] for name in direct))
    return found


def test_the_branches_of_boston_do_not_wait_for_each_other(before: dict[str, set[str]]) -> None:
    branches = [
        {"ablate", "detect fgce"},
        {"generate", "detect cst"},
        {"detect cec"},
        {"mediate", "detect gcfn"},
        {"rerank", "detect raguel"},
        {"adjust", "detect adjusted"},
    ]
    for branch in branches:
        others = set().union(*(each for each in branches if each is not branch))
        assert all(before[name].isdisjoint(others) for name in branch)
    assert "score" not in before["connect"]
    assert "connect" not in before["score"]


def test_each_detection_waits_for_its_own_stages(before: dict[str, set[str]]) -> None:
    assert "connect" in before["detect fgce"]
    assert "generate" in before["detect cst"]
    assert "mediate" in before["detect gcfn"]
    assert "rerank" in before["detect raguel"]


def test_the_end_waits_for_everything(steps: tuple[Step, ...], before: dict[str, set[str]]) -> None:
    names = [step.name for step in steps]
    assert before["report"] == set(names[:-1])
    assert before["publish"] == set(names[:-2]), "it reads the refusals of every stage"
    assert before["ingest"] == set()


def test_until_a_stage_only_what_it_needs_runs(steps: tuple[Step, ...]) -> None:
    assert [step.name for step in until(steps, "ingest")] == ["ingest"]
    names = [step.name for step in until(steps, "detect cst")]
    assert names[-2:] == ["generate", "detect cst"]
    assert not {"mediate", "rerank", "measure", "detect fgce"} & set(names)
    detections = [step.name for step in until(steps, "detect") if step.stage.name == "detect"]
    assert detections == [step.name for step in steps if step.stage.name == "detect"]


def test_a_stage_that_is_none_is_an_error_that_names_the_nearest(steps: tuple[Step, ...]) -> None:
    with pytest.raises(SpecError, match="did you mean 'ingest'"):
        until(steps, "ingset")
