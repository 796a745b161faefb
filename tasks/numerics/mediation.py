"""The standard fairness model as arrays: covariates X, category A and the mediators M that A may influence (section 3).

Scope: the requirements of all generators of counterfactual mediators on their rows, and whether the covariates reveal
the category.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns, one_hot

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
    _require_variation(mediation)


def require_seen(rows: Mediation, template: Mediation) -> None:
    """Refuse rows that a generator was not trained for.

    Args:
        rows: Applicants.
        template: The training rows, or none of them: ``Mediation.template``.

    Raises:
        DataQualityError: If the categories or the columns are not those of the training, in the same order, or a row is
            of no category.
    """
    known, unseen = template.categories, [name for name in rows.categories if name not in template.categories]
    if unseen:
        raise DataQualityError(
            f"the generator has not seen {', '.join(map(repr, unseen))}; it knows {', '.join(map(repr, known))}: "
            "train it with rows of every category, or leave these rows out"
        )
    if rows.categories != known:
        raise DataQualityError(f"the generator knows the categories as {', '.join(map(repr, known))}; keep the order")
    for role, given, wanted in (
        ("covariates", rows.covariates, template.covariates),
        ("mediators", rows.mediators, template.mediators),
    ):
        if (given.names, given.kinds, given.categories) != (wanted.names, wanted.kinds, wanted.categories):
            raise DataQualityError(
                f"the {role} must be those of the training, in order and with the same categories: "
                f"{', '.join(wanted.names) or 'none'}"
            )
    if len(rows) and not (rows.category.min() >= 0 and rows.category.max() < len(known)):
        raise DataQualityError(f"category numbers must lie between 0 and {len(known) - 1}; check the groups")


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
    found = cross_val_predict(model, inputs, category, cv=folds, method="predict_proba")
    known = np.unique(category)
    return max(float(roc_auc_score(category == one, found[:, at])) for at, one in enumerate(known))


def _require_variation(mediation: Mediation) -> None:
    """Refuse a mediator with a single value within a category."""
    for mediator, name in _constants(mediation):
        raise DataQualityError(
            f"the mediator {mediator!r} has a single value within {name!r}; nothing can be told of its distribution "
            "there: merge the category, or give the column another role"
        )


def _constants(mediation: Mediation) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(mediation.categories):
        values = mediation.mediators.values[mediation.category == number]
        for at in np.flatnonzero((values == values[:1]).all(axis=0)):
            yield mediation.mediators.names[at], name
