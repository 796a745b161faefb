"""The fair rankings by name, as specs and reproductions write them."""

from collections.abc import Mapping
from typing import Final

from tasks.baselines.algorithm.rankings import foeir
from tasks.baselines.algorithm.rankings.fair_star import fair_star
from tasks.baselines.algorithm.rankings.kind import Listed, Orders, Ranking, alone


def initial(listed: Listed) -> Orders:
    """The order by cost, which knows no groups."""
    return alone(listed.by_cost)


RANKINGS: Final[Mapping[str, Ranking]] = {
    "initial": initial,
    "fair_star": fair_star,
    "foeir": foeir.parity,
    "foeir_treatment": foeir.treatment,
    "foeir_impact": foeir.impact,
}
"""``foeir`` is the variant with demographic parity, which every list of two groups has."""
