"""The group explanations by name, as reproductions write them."""

from collections.abc import Mapping
from typing import Final

from tasks.baselines.algorithm.explanations.ares import Ares
from tasks.baselines.algorithm.explanations.globe_ce import GlobeCe
from tasks.baselines.algorithm.explanations.kind import GroupExplanation

EXPLANATIONS: Final[Mapping[str, GroupExplanation]] = {
    "ares": Ares(),
    "globe_ce": GlobeCe(),
    "globe_ce_told": GlobeCe(told=True),
    "globe_ce_dense": GlobeCe(dense=True),
}
"""``globe_ce_told`` keeps to the signs of the rules, which the paper's system does not know; of
``globe_ce_dense`` each direction changes every feature."""
