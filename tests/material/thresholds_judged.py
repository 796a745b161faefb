"""States of measures by the thresholds of a spec alone, for tests of single measures."""

from collections.abc import Collection, Sequence

from tasks.metrics.algorithm.measures import Measure, Plan, Threshold, base_name, cases, stated
from tasks.metrics.algorithm.verdicts import Rules
from tasks.metrics.algorithm.verdicts import judge as judge_rows

PLAN = Plan({"race": "White", "sex": "male"}, 200, 0.95, 1)


def judge(
    measures: Sequence[Measure], limits: Sequence[Threshold], minimum_n: int, covering: Collection[str] | None = None
) -> list[Measure]:
    """The measures with their states; all of them have intervals that cover, if nothing else is said."""
    known = {base_name(m.family.measure) for m in measures} if covering is None else covering
    references = {m.family.protected_attribute: m.reference_group or "reference" for m in measures}
    plan = Plan(references, PLAN.draws, PLAN.level, PLAN.seed)
    found = cases(measures, limits, {}, {}, known, plan, minimum_n)
    return stated(measures, judge_rows([case for _, case in found], Rules()), known)
