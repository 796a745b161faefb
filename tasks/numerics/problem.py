"""Input of a method: the problem of one decision maker and one protected attribute, as arrays.

Every method is one function ``detect(problem, settings, rng) -> Detected``. The stage that calls it knows no method: it
turns rows into row ids and arrays into tables. Scope: shapes of the input. Output: ``results``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.statistics.sampling import Asked

if TYPE_CHECKING:
    from tasks.numerics.explanation import ModelView


@dataclass(frozen=True)
class FeasibilityGraph:
    """Directed graph of feasible moves between distinct rows, as CSR arrays.

    An edge ``i -> j`` says that an applicant like node ``i`` could come to look like node ``j`` in one step: no further
    than epsilon apart and no constraint broken (FGCE, section III). Parallel rows share a node.
    """

    indptr: Longs
    """``(m + 1,)`` start of each node's out-edges."""
    indices: Ints
    """``(edges,)`` destination nodes, ascending within a node."""
    distances: Floats
    """``(edges,)`` L2 distance of each edge, in encoded units."""

    @property
    def size(self) -> int:
        """Number of nodes ``m``."""
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Counterfactuals:
    """What rows of other groups would have been, had they belonged to the reference group."""

    row: Longs
    """``(c,)`` the rows imagined, ascending."""
    values: Floats
    """``(c, p)`` laid out as ``Columns.values``."""
    favourable: Bools | None
    """``(c,)`` what the same decision maker would have decided; None where it can be asked about real rows only."""


class Regenerate(Protocol):
    """Makes counterfactuals again, under other assumptions than those of the audit."""

    def __call__(
        self, rows: Longs, group: Ints, without: tuple[str, str] | None, sample: Longs | None = None
    ) -> Counterfactuals:
        """Imagine ``rows`` as members of the reference group.

        Args:
            rows: ``(r,)`` rows to imagine, ascending; those that are refused are missing from the answer.
            group: ``(n,)`` group of every row, as it is or permuted; the generator is fitted to it.
            without: An edge of the causal graph to leave out.
            sample: ``(s,)`` rows that the generator is fitted to, with repeats; all if None. Decisions on the
                counterfactuals are then left out. A generator that fits nothing looks at all rows.
        """


class OpenModel(Protocol):
    """Opens the decision maker's model."""

    def __call__(self, substitute: bool) -> "ModelView":
        """The rows as the model saw them, with what makes its attributions.

        Args:
            substitute: Whether a stand-in for integrated gradients will do for a model that has no gradient.
        """


class Refit(Protocol):
    """Fits the decision maker's model again, on resampled rows."""

    def __call__(self, explained: "ModelView", rows: Longs) -> "ModelView | None":
        """The same models fitted to the resampled ones of the rows that each had learnt from.

        Args:
            explained: What ``OpenModel`` gave.
            rows: ``(r,)`` rows with repetition; the answer has them in this order. A copy of a row stays in its fold,
                so that a row explained by a model is never among those that the model learnt from.

        Returns:
            None where a model would learn from decisions of one kind alone.
        """


@dataclass(frozen=True)
class Applicants:
    """The rows of a problem as applicants: what they handed in, what was decided, and what they would have been."""

    columns: Columns
    favourable: Bools
    """``(n,)`` the decision maker's decision on each row."""
    attribute_columns: tuple[str, ...]
    """Columns that the protected attribute is made of."""
    crossed: bool = False
    """Whether the protected attribute crosses several columns (intersectional)."""
    counterfactuals: Counterfactuals | None = None
    """Of every row outside the reference group that was not refused; None without a generator."""
    imagine: Regenerate | None = None
    edges: tuple[tuple[str, str], ...] = ()
    """Edges of the causal graph out of the protected attribute: what the results are sensitive to."""
    reached: tuple[str, ...] = ()
    """Columns that the protected attribute can reach in the causal graph."""
    singles: tuple["Problem", ...] = ()
    """Of a crossed attribute, the problems of the single attributes that it crosses, on the same rows."""


@dataclass(frozen=True)
class Problem:
    """One decision maker, one protected attribute: the rows a method looks at. All arrays are aligned by row."""

    encoded: Floats
    """``(n, p)`` features in [0, 1]."""
    feature_of_column: Ints
    """``(p,)`` index of the source feature of each encoded column (a one-hot set shares one)."""
    features: tuple[str, ...]
    """Names of the source features."""
    group: Ints
    """``(n,)`` index into ``groups``."""
    groups: tuple[str, ...]
    reference: int
    """Index into ``groups`` of the reference group."""
    factual: Bools
    """``(n,)`` rows to explain: the unfavourable decisions of this decision maker."""
    candidate: Bools
    """``(n,)`` rows that may serve as a counterfactual: its favourable decisions."""
    node: Ints
    """``(n,)`` node of each row in ``graph``."""
    graph: FeasibilityGraph
    resamples: int = 0
    """Bootstrap replicates that every aggregate is to carry."""
    applicants: Applicants | None = None
    """What methods that look at applicants, and not at encoded features, need to know."""
    look_into: OpenModel | None = None
    """Of a decision maker that is a model: opens it."""
    refit: Refit | None = None
    """Of a model whose kind is fitted again on resampled rows."""
    own: object | None = None
    """What one method alone needs, in a shape of its own: its ``problem`` makes it, and its ``algorithm`` reads it."""
    asked: Asked | None = None
    """Who is asked in a large problem, of a method that asks a sample; None: everybody."""

    @property
    def drawn(self) -> Bools:
        """``(n,)`` the rows that may be asked; all others are there to be compared with."""
        return np.ones(len(self.group), np.bool_) if self.asked is None else self.asked.drawn

    def part(self, group: int) -> tuple[int, int]:
        """Members of a group who are asked, and members."""
        if self.asked is not None:
            return self.asked.part(group)
        members = int((self.group == group).sum())
        return members, members
