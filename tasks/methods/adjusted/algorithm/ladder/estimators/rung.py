"""One rung of the ladder as the estimators see it: design, groups that can be judged, and what is said of all rows."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.design.matrix import MOST_COLUMNS, Design
from tasks.methods.adjusted.algorithm.ladder.effect import Effect, Estimator
from tasks.numerics.arrays import Floats, Ints
from tasks.numerics.statistics.influence import FEW_CLUSTERS, Estimate

FEW = "few_clusters"
"""How a reason begins that says so."""
INDEPENDENT = "which take rows as independent"
"""What a reason says of intervals that leave out the clusters."""
PLACE = "place"
"""The block whose categories are fixed effects."""

Over = Literal["own", "all", "overlap"]


@dataclass(frozen=True)
class Rung:
    """One rung with the settings of its estimators."""

    number: int
    blocks: tuple[str, ...]
    design: Design
    level: float
    counts: Ints
    """``(groups,)`` rows of each group."""
    events: Ints
    """``(groups,)`` denials among them."""
    groups: tuple[int, ...]
    """Groups to be judged: present, with enough denials and approvals."""
    notes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Group -> what holds for each of its estimators (poor support)."""
    support: dict[int, float] = field(default_factory=dict)

    @property
    def x(self) -> Floats:
        """``(n, p)`` columns of this rung."""
        found: Floats = self.design.x[:, : self.design.widths[self.number]]
        return found

    @property
    def indicators(self) -> slice:
        """Columns of all groups."""
        return slice(1, self.design.first_control)

    @property
    def too_wide(self) -> str:
        """Why there is no logit; empty where there is."""
        if PLACE in self.blocks:
            return "place: fixed effects of lenders or places, the linear fit tells this rung"
        columns = self.design.widths[self.number]
        return f"too_many_columns: {columns}, the linear fit tells this rung" if columns > MOST_COLUMNS else ""

    def row(
        self,
        group: int,
        estimator: Estimator,
        over: Over,
        estimate: Estimate,
        reasons: tuple[str, ...] = (),
        **more: Any,
    ) -> Effect:
        """An effect with the counts of its group, and the reasons that hold for the whole rung."""
        every = (
            estimate.reason,
            *reasons,
            *self.notes.get(group, ()),
            *self._dropped(),
            *self._terms(),
            self._few_clusters(group),
        )
        return Effect(
            rung=self.number,
            blocks=self.blocks,
            group=group,
            estimator=estimator,
            average_over=over,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            se=estimate.se,
            df=self._df,
            n=int(self.counts[group]),
            events=int(self.events[group]),
            support=self.support.get(group, math.nan),
            reason="; ".join(dict.fromkeys(each for each in every if each)),
            **more,
        )

    @property
    def _df(self) -> float:
        """Of intervals: clusters less one."""
        return math.inf if self.design.cluster is None else float(len(np.unique(self.design.cluster)) - 1)

    def _dropped(self) -> tuple[str, ...]:
        """Columns left out."""
        dropped = self.design.dropped_until(self.number)
        return (f"left out: {', '.join(dropped)}",) if dropped else ()

    def _terms(self) -> tuple[str, ...]:
        """Terms that were added."""
        return (f"terms added: {', '.join(self.design.terms)}",) if self.design.terms else ()

    def _few_clusters(self, group: int) -> str:
        """Too few clusters, in all or with members of the group (MacKinnon and Webb 2017); empty where enough."""
        if self.design.cluster is None:
            return ""
        clusters = len(np.unique(self.design.cluster))
        own = len(np.unique(self.design.cluster[self.design.group == group]))
        if clusters == 1:
            return "one_cluster: no error can be had"
        if clusters < FEW_CLUSTERS:
            return f"{FEW}: {clusters}, errors are too small below {FEW_CLUSTERS}"
        few = f"{FEW}: {own} with members of the group, errors are too small below {FEW_CLUSTERS}"
        return few if own < FEW_CLUSTERS else ""
