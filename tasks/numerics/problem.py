"""Input of a method: the problem of one decision maker and protected attribute, as arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns, one_hot
from tasks.numerics.statistics.sampling import Asked

# --------------------------------------------------------------------------------------------------------------------
# Input of a method that explains a model: the model's inputs, and the attributor of each row.
#
# Scope: shapes. Attributions: ``attributions``. Comparison of two of them: ``tasks.methods.cec.algorithm.pairs``.


NOBODY = -1
"""Explainer of a row that no model explains."""


class Attributor(Protocol):
    """A model with attributions."""

    @property
    def name(self) -> str:
        """How the attributions are made, in the words of the report."""

    @property
    def exact(self) -> bool:
        """Whether they are the integral itself; not a quadrature, nor a substitute for integrated gradients."""

    def logit(self, x: Floats) -> Floats:
        """The model's logit, ``(r,)``, of inputs ``(r, p)``."""

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """What each input adds to the logit on the straight path from the baseline, ``(r, p)`` all three.

        Integrated gradients (Sundararajan, Taly and Yan 2017), or the substitute that ``name`` tells.
        """


@dataclass(frozen=True)
class ModelView:
    """The rows of a problem as models see them. Arrays are aligned by row; ``n`` rows, ``p`` inputs."""

    x: Floats
    """``(n, p)`` model inputs."""
    feature_of_column: Ints
    """``(p,)`` index into ``features`` of each input: the columns of one category share one."""
    features: tuple[str, ...]
    label: Bools
    """``(n,)`` whether the true outcome is favourable."""
    financial: Floats
    """``(n, f)`` what applicants are comparable by (paper: F), in the user's units."""
    financial_names: tuple[str, ...]
    explainer: Ints
    """``(n,)`` number of the model that explains each row, or ``NOBODY``."""
    models: tuple[Attributor, ...]
    pools: tuple[Bools, ...]
    """For each model the rows, ``(n,)``, that it was trained on and that its rows may be matched with. A rule that was
    not fitted has everybody for a pool."""
    cuts: tuple[float, ...] = ()
    """For each model the logit from which it decides favourably; 0 for all if none is given."""
    favourable: Bools | None = None
    """``(n,)`` decisions, where they are not those of the logit (a post-processed model)."""
    shared: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What the problem of one protected attribute leaves for that of the next: nothing in it rests on groups."""

    def __post_init__(self) -> None:
        """Hold the shapes against each other.

        Raises:
            ValueError: If arrays differ in their rows, or columns and models in their numbers.
        """
        n, inputs = self.x.shape
        by_row = {
            "label": self.label,
            "financial": self.financial,
            "explainer": self.explainer,
            **{f"pools[{i}]": pool for i, pool in enumerate(self.pools)},
            **({} if self.favourable is None else {"favourable": self.favourable}),
        }
        for name, values in by_row.items():
            if len(values) != n:
                raise ValueError(f"{name} has {len(values)} rows; expected {n}, as x has")
        if len(self.feature_of_column) != inputs:
            raise ValueError(f"feature_of_column has {len(self.feature_of_column)} entries; x has {inputs} columns")
        if self.financial.shape[1:] != (len(self.financial_names),):
            raise ValueError(f"financial is {self.financial.shape} for {len(self.financial_names)} names")
        if len(self.pools) != len(self.models) or len(self.cuts) not in (0, len(self.models)):
            raise ValueError(f"{len(self.models)} models, {len(self.pools)} pools and {len(self.cuts)} cuts")
        if n and not NOBODY <= self.explainer.min() <= self.explainer.max() < len(self.models):
            raise ValueError(f"explainer names models outside -1 to {len(self.models) - 1}")

    def cut(self, model: int) -> float:
        """The logit from which a model decides favourably."""
        return self.cuts[model] if self.cuts else 0.0

    def rows_of(self, model: int) -> Bools:
        """``(n,)`` rows that a model explains."""
        return np.equal(self.explainer, model)


# --------------------------------------------------------------------------------------------------------------------
# The standard fairness model as arrays: covariates X, category A and the mediators M that A may influence (section 3).
#
# Scope: the requirements of all generators of counterfactual mediators on their rows, and whether the covariates reveal
# the category.


LEAKS: Final = 0.98
"""AUC above which covariates are taken to give the category away: overlap (section 3, assumption 2) is in doubt."""

ALL_COVARIATES: Final = "all covariates"
"""Name of the last of the leaks, that of all covariates together."""

_ROWS_FOR_AUC = 5_000
"""An AUC over this many rows is known to within 0.02."""


@dataclass(frozen=True)
class Mediation:
    """``n`` applicants. No value is missing."""

    covariates: Columns
    """What the category does not influence; may have no column."""
    category: Longs
    """``(n,)`` number of the category of each."""
    categories: tuple[str, ...]
    """``k >= 2`` names."""
    mediators: Columns
    """What the category may influence, ``p`` columns."""

    def __len__(self) -> int:
        """Number of applicants."""
        return len(self.category)

    def rows(self, chosen: Longs) -> "Mediation":
        """The same of some rows, ``(r,)``."""
        covariates, mediators = self.covariates.rows(chosen), self.mediators.rows(chosen)
        return Mediation(covariates, self.category[chosen], self.categories, mediators)

    @property
    def template(self) -> "Mediation":
        """The same without rows: what a generator keeps of those that it was trained on."""
        return self.rows(np.zeros(0, np.int64))

    @property
    def numeric(self) -> Bools:
        """``(p,)`` which mediators are numbers to a generator: the continuous and the ordinal ones."""
        return np.array([kind in (Kind.CONTINUOUS, Kind.ORDINAL) for kind in self.mediators.kinds], dtype=np.bool_)


def require_trainable(mediation: Mediation, batch: int) -> None:
    """Refuse rows from which no generator can learn.

    Args:
        mediation: The training rows.
        batch: The fewest rows that a category may have.

    Raises:
        DataQualityError: If there is no mediator, a value is not finite, a category has too few rows, or a mediator is
            constant within one.
    """
    if not mediation.mediators.names:
        raise DataQualityError("no column is declared a mediator; give the role to what the category may influence")
    if not (np.isfinite(mediation.mediators.values).all() and np.isfinite(mediation.covariates.values).all()):
        raise DataQualityError("a covariate or mediator is missing or infinite; refuse or impute such rows first")
    sizes = np.bincount(mediation.category, minlength=len(mediation.categories))
    if sizes.min() < batch:
        counts = ", ".join(f"{name!r} {size:,}" for name, size in zip(mediation.categories, sizes, strict=True))
        raise DataQualityError(
            f"a category has fewer rows than the {batch} of a batch ({counts}); merge categories, leave the small "
            "ones out of the training, or lower the batch size"
        )
    for mediator, name in _constants(mediation):
        raise DataQualityError(
            f"the mediator {mediator!r} has a single value within {name!r}; its distribution cannot be estimated "
            "there: merge the category, or give the column another role"
        )


def require_seen(rows: Mediation, template: Mediation) -> None:
    """Refuse rows that a generator was not trained for.

    Args:
        rows: Applicants.
        template: The training rows, or none of them: ``Mediation.template``.

    Raises:
        DataQualityError: If the categories or the columns are not those of the training, in the same order, or a row is
            of no category.
    """
    categories, unseen = template.categories, [name for name in rows.categories if name not in template.categories]
    if unseen:
        raise DataQualityError(
            f"the generator has not seen {', '.join(map(repr, unseen))}; it knows {', '.join(map(repr, categories))}: "
            "train it with rows of every category, or leave these rows out"
        )
    if rows.categories != categories:
        raise DataQualityError(
            f"the generator knows the categories as {', '.join(map(repr, categories))}; keep the order"
        )
    for role, columns, expected in (
        ("covariates", rows.covariates, template.covariates),
        ("mediators", rows.mediators, template.mediators),
    ):
        if (columns.names, columns.kinds, columns.categories) != (expected.names, expected.kinds, expected.categories):
            raise DataQualityError(
                f"the {role} must be those of the training, in order and with the same categories: "
                f"{', '.join(expected.names) or 'none'}"
            )
    if len(rows) and not (rows.category.min() >= 0 and rows.category.max() < len(categories)):
        raise DataQualityError(f"category numbers must lie between 0 and {len(categories) - 1}; check the groups")


class Leak(NamedTuple):
    """How well something foretells the category of a row."""

    covariate: str
    auc: float
    """The largest over the categories, each against the rest; 0.5 for chance."""


def leaks(mediation: Mediation, seed: int) -> tuple[Leak, ...]:
    """The AUC with which each covariate, and all of them together, foretell the category on rows not fitted to.

    Two folds of gradient-boosted trees on at most 5,000 rows. An AUC above ``LEAKS`` says that almost nobody with these
    covariates is of another category, so that a counterfactual mediator is an extrapolation.

    Args:
        mediation: At least four rows of every category.
        seed: Of the choice of rows and folds.
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(mediation))[:_ROWS_FOR_AUC])
    rows = mediation.rows(chosen)
    inputs, column = one_hot(rows.covariates) if rows.covariates.names else (np.zeros((len(rows), 0)), np.zeros(0))
    parts = [*((name, column == at) for at, name in enumerate(rows.covariates.names))]
    together = (ALL_COVARIATES, np.ones(len(column), dtype=np.bool_))
    return tuple(Leak(name, _auc(inputs[:, used], rows.category, seed)) for name, used in [*parts, together])


def _auc(inputs: Floats, category: Longs, seed: int) -> float:
    """The largest cross-validated one-against-rest AUC; 0.5 without an input."""
    if not inputs.shape[1]:
        return 0.5
    from sklearn.ensemble import HistGradientBoostingClassifier  # a plan reaches this module, and fits nothing
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    model = HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=10, random_state=seed)
    probabilities = cross_val_predict(model, inputs, category, cv=folds, method="predict_proba")
    labels = np.unique(category)
    return max(float(roc_auc_score(category == label, probabilities[:, at])) for at, label in enumerate(labels))


def _constants(mediation: Mediation) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(mediation.categories):
        values = mediation.mediators.values[mediation.category == number]
        for at in np.flatnonzero((values == values[:1]).all(axis=0)):
            yield mediation.mediators.names[at], name


# --------------------------------------------------------------------------------------------------------------------
# Input of a method: the problem of one decision maker and one protected attribute, as arrays.
#
# Every method is one function ``detect(problem, settings, rng) -> Detected``. The stage that calls it knows no method:
# it turns rows into row ids and arrays into tables. Scope: shapes of the input. Output: ``results``.


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


Saturated = Literal["saturated"]
"""The causal graph with every edge that its order allows."""


class Regenerate(Protocol):
    """Makes counterfactuals again, under other assumptions than those of the audit."""

    def __call__(
        self, rows: Longs, group: Ints, change: tuple[str, str] | Saturated | None, sample: Longs | None = None
    ) -> Counterfactuals:
        """Generate counterfactuals of ``rows`` as members of the reference group.

        Args:
            rows: ``(r,)`` rows to imagine, ascending; those that are refused are missing from the answer.
            group: ``(n,)`` group of every row, as it is or permuted; the generator is fitted to it.
            change: An edge of the causal graph to leave out; or ``saturated``, every edge that its order allows.
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


MOST_BYTES = 150_000_000
"""Of arrays that wait for the next decision maker."""


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


@dataclass
class Waiting:
    """Arrays for the next decision maker, if its problems have the same rows."""

    is_open: bool = False
    """Whether another decision maker follows."""
    arrays: dict[bytes, NDArray[Any]] = field(default_factory=dict)
    """By a digest of what they were made from."""

    def take(self, key: bytes) -> NDArray[Any] | None:
        """The array of an earlier decision maker, which is then removed."""
        return self.arrays.pop(key, None)

    def keep(self, key: bytes, array: NDArray[Any]) -> None:
        """Keep an array, where another decision maker follows and memory is left."""
        if self.is_open and array.nbytes + sum(other.nbytes for other in self.arrays.values()) <= MOST_BYTES:
            self.arrays[key] = array


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
    method_data: object | None = None
    """What one method alone needs, in a shape of its own: its ``problem`` makes it, and its ``algorithm`` reads it."""
    sample: Asked | None = None
    """Who is asked in a large problem, of a method that asks a sample; None: everybody."""
    waiting: Waiting = field(default_factory=Waiting, repr=False, compare=False)
    """What the decision makers of these rows leave for each other."""

    @property
    def drawn(self) -> Bools:
        """``(n,)`` the rows that may be sampled; all others serve only for comparison."""
        return np.ones(len(self.group), np.bool_) if self.sample is None else self.sample.drawn

    def part(self, group: int) -> tuple[int, int]:
        """Number of sampled members of a group, and number of members."""
        if self.sample is not None:
            return self.sample.part(group)
        members = int((self.group == group).sum())
        return members, members
