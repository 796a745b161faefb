"""The counterfactual sources by name, as specs and reproductions write them."""

from collections.abc import Mapping
from typing import Final

from tasks.baselines.algorithm.sources.actionable import actionable, actionable_total
from tasks.baselines.algorithm.sources.exact import exact
from tasks.baselines.algorithm.sources.kind import Source
from tasks.baselines.algorithm.sources.mace import mace
from tasks.baselines.algorithm.sources.nearest import nearest

SOURCES: Final[Mapping[str, Source]] = {
    "exact": exact,
    "ar": actionable,
    "ar_total": actionable_total,
    "mace": mace,
    "nearest": nearest,
}
