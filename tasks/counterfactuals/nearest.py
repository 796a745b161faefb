"""The generator ``nearest``: matches an applicant with the most comparable real member of the reference group.

A match is a similar person with the same outcome, not what this person would have been (Popoola and Sheppard 2026,
Algorithm 1). If the outcome is the decision itself, both have the same decision, so that the lender's decisions never
differ. Matches come from the training rows of the model that decides on the applicant, as in CEC; from all rows if no
model was fitted here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.causal import Edge
from schemas.audit.model import Model
from schemas.terms import DecisionMaker
from tasks.counterfactuals.algorithm.nearest import matching as nearest
from tasks.counterfactuals.algorithm.nearest.matching import Matches, Matching
from tasks.counterfactuals.algorithm.scm.abduction import Imagined
from tasks.counterfactuals.algorithm.scm.checks import Check
from tasks.counterfactuals.assumptions import GeneratorAssumptions
from tasks.counterfactuals.generator import Made
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Counterfactuals, Regenerate
from tasks.preprocessing.columns import columns_of
from tasks.preprocessing.groups import Grouped, groups_of
from tasks.scoring.decider import Decide
from tasks.scoring.explanations import explainers, financial


@dataclass(frozen=True)
class Lookalikes:
    """``n`` rows with the features for comparing them."""

    columns: Columns
    groups: Mapping[str, Grouped]
    label: Bools
    """``(n,)`` true outcomes."""
    financial: tuple[Floats, tuple[str, ...]]
    """``(n, f)`` and names: what makes applicants comparable."""
    pool_of: Ints
    """``(n,)`` number of the pool that a row is matched with."""
    pools: tuple[Bools, ...]
    """``(n,)`` who belongs to each pool."""
    matching: Matching
    name: str = "nearest"

    @classmethod
    def of(
        cls, applicants: tuple[pa.Table, pa.Table, pa.Table], decisions: pa.Table, asked: GeneratorAssumptions
    ) -> "Lookalikes":
        """From the tables ``applicants``, ``encodings`` and ``memberships``, and the decisions on the applicants.

        Raises:
            SpecError: no column has the role ``financial``.
        """
        handed_in, encodings, memberships = applicants
        columns, ids = columns_of(handed_in, encodings), handed_in["row_id"].to_numpy()
        own = _decisions(decisions, ids)
        pool_of, pools = _pools(own, asked.model)
        return cls(
            columns,
            groups_of(memberships, ids, asked.protected),
            own["outcome"].to_numpy(dtype=bool),
            financial(columns, encodings),
            pool_of,
            pools,
            Matching.of(asked.matching),
        )

    def knows(self, attribute: str) -> bool:
        """Everybody can be compared with members of any group that has some."""
        return attribute in self.groups and self.groups[attribute].compared

    def members(self, attribute: str, group: int, rows: Longs) -> Made:
        """Rows of a group, each as the member of the reference group who is most like it."""
        known = self.groups[attribute]
        found = self._matches(known.group, rows, known.reference)
        kept = np.flatnonzero(found.matched)
        imagined = Imagined(
            row=rows[kept],
            values=self.columns.values[found.match[kept]],
            noise={},
            clipped={},
            refused=rows[~found.matched],
            reason=found.reason[~found.matched],
        )
        there = Matches(rows[kept], found.match[kept], found.distance[kept], found.reason[kept])
        return Made(attribute, known.groups[group], len(rows), imagined, there)

    def imagine(self, attribute: str, decide: Decide | None) -> Regenerate:
        """A function that matches again with permuted labels; there is no causal graph to leave an edge out of."""

        def again(
            rows: Longs,
            group: Ints,
            without: Edge | None,  # noqa: ARG001
            sample: Longs | None = None,  # noqa: ARG001
        ) -> Counterfactuals:
            found = self._matches(group, rows, self.groups[attribute].reference)
            made = nearest.counterfactuals(found, self.columns, None)
            there = replace(self.columns, values=made.values)
            return replace(made, favourable=decide(there, made.row)[0] if decide else None)

        return again

    def edges(self, attribute: str) -> tuple[Edge, ...]:  # noqa: ARG002
        """None: no cause is assumed."""
        return ()

    def reached(self, *attributes: str) -> tuple[str, ...]:  # noqa: ARG002
        """None: no cause is assumed."""
        return ()

    def checks(self) -> tuple[Check, ...]:
        """None: there is nothing assumed that data could contradict."""
        return ()

    def _matches(self, group: Ints, rows: Longs, reference: int) -> Matches:
        """Rows ``(r,)`` matched with the members of the reference group, pool by pool."""
        found = Matches(rows, *_nothing(len(rows)))
        for number, (pool, at) in enumerate(zip(self.pools, self._standardised, strict=True)):
            index = nearest.index(at, self.label, group, pool & (group == reference), self.matching)
            own = np.flatnonzero(self.pool_of[rows] == number)
            of_pool = nearest.match(index, rows[own], reference)
            found.match[own], found.distance[own] = of_pool.match, of_pool.distance
            found.reason[own] = of_pool.reason
        return found

    @cached_property
    def _standardised(self) -> tuple[Floats, ...]:
        values, names = self.financial
        return tuple(nearest.standardise(values, names, pool, self.matching.winsorise) for pool in self.pools)


def _nothing(n: int) -> tuple[Longs, Floats, Any]:
    return np.full(n, nearest.UNMATCHED), np.full(n, np.nan), np.full(n, nearest.EMPTY_CELL, dtype="<U32")


def _decisions(decisions: pa.Table, ids: "np.ndarray[Any, Any]") -> pd.DataFrame:
    """The model's decisions in the order of the rows; the lender's where there is no model."""
    frame = decisions.to_pandas()
    makers = set(frame["decision_maker"])
    maker = DecisionMaker.MODEL if DecisionMaker.MODEL in makers else DecisionMaker.LENDER
    return frame[frame["decision_maker"] == maker].set_index("row_id").loc[ids]


def _pools(own: pd.DataFrame, model: Model | None) -> tuple[Ints, tuple[Bools, ...]]:
    """Which pool each row is matched with, and the rows of each; one of everybody where nothing was fitted here."""
    if model is None or model.kind in ("none", "rule", "file") or own["fold"].isna().all():
        return np.zeros(len(own), np.int32), (np.ones(len(own), dtype=bool),)
    explainer, pools = explainers(own["fold"].to_numpy(np.int32), own["explained"].to_numpy(dtype=bool))
    return np.maximum(explainer, 0), pools
