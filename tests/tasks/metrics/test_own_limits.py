"""Which groups and measures the spec's own limits judge."""

from pathlib import Path

import numpy as np
import pytest
from conftest import spec_of

from schemas.terms import State
from tasks.metrics import stage, verdicts
from tasks.metrics.algorithm import measures as algorithm
from tasks.metrics.algorithm.measures import Family, Given, Statistic
from tasks.metrics.verdicts import Gathered
from tasks.numerics.results import Inference
from tasks.numerics.statistics.intervals import Interval

OWN = "[{measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}]"
NOBODY = ("(missing)", "(other)", "Race not available")


def own(settings: stage.MeasureSettings, groups: dict[str, tuple[int, int]], *given: Given) -> dict[str, State]:
    """State of every group in the theory ``own``, from group: (denials, applications)."""
    statistics = [
        Statistic(
            Family("outcomes", "lender", "race", measure, "{}"),
            group,
            np.array([0.0, 1.0]),
            np.array([n - events, events] if measure == "denial_rate" else [events, n - events]),
            headline=True,
        )
        for group, (events, n) in groups.items()
        for measure in ("approval_rate", "denial_rate")
    ]
    gathered = Gathered.of(statistics, given, settings.protected, ("adjusted", "cst"), settings.verdicts, {})
    plan = stage._plan(settings)
    found = algorithm.summarise(statistics, {}, plan, given, {})
    everyone = {("lender", "race", group) for group in groups}
    cases = [case for _, case in stage._own_cases(found, gathered, everyone, plan, settings)]
    rows = verdicts.judged(gathered, cases, settings.verdicts).rows
    return {row.case.group: row.state for row in rows if row.case.theory == "own_limits"}


def test_groups_that_are_no_people_or_only_reported_cost_the_others_nothing(place: Path) -> None:
    settings = stage.measure_settings(spec_of(place))
    people = {"white": (400, 1500), "Black": (102, 300)}
    alone = own(settings, people)
    assert set(alone) == {"Black"}
    assert own(settings, people | dict.fromkeys(NOBODY, (140, 150))) == alone
    [race] = settings.protected
    only = race.model_copy(update={"reported_only": ("Black",)})
    assert own(settings.model_copy(update={"protected": (only,)}), people) == {}


@pytest.mark.parametrize("complete", [True, False])
def test_a_limit_of_the_spec_passes_nothing_that_its_theory_cannot_judge(place: Path, complete: bool) -> None:
    """Situation testing without the ladder: what columns that the table lacks could do to it is not known."""
    spec = spec_of(place, verdicts__columns_complete=str(complete).lower())
    limit = spec.thresholds[0].model_copy(update={"measure": "st_effect", "minimum": None, "maximum": 0.05})
    settings = stage.measure_settings(spec).model_copy(update={"thresholds": (limit,)})
    family = Family("cst", "lender", "race", "st_effect", "{}")
    ends = Interval(-0.02, 0.02)
    given = Given(family, "Black", 0.0, 300, np.zeros(0), False, False, "", None, ends, Inference(0.01))
    states = own(settings, {"white": (400, 1500), "Black": (102, 300)}, given)
    assert states == {"Black": State.WITHIN if complete else State.INCONCLUSIVE}
