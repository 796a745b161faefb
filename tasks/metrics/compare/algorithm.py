"""Folds of the comparison of mitigations, and performance of classifiers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import resample

from schemas.terms import NO_FEATURE
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Performance of a classifier besides its explanations: accuracy, gaps between groups, and collapse.
#
# A collapsed model decides alike for nearly everybody. Its gaps, flips and inconsistency are all small, so the flag is
# printed beside every number.


LEAST_BALANCED_ACCURACY: Final = 0.55
POSITIVE_RATES: Final = (0.05, 0.95)
"""Outside of these a model has collapsed."""


@dataclass(frozen=True)
class Performance:
    """Of a model on held-out rows, without a unit; NaN where a number is not defined."""

    auc: float
    """NaN for a model without scores."""
    f1: float
    balanced_accuracy: float
    positive_rate: float
    eo_gap: float
    """The larger of the gaps between groups in true and in false positive rates; NaN if a cell is empty."""
    sp_gap: float
    """Gap between groups in positive predictions."""

    @property
    def collapsed(self) -> bool:
        """Whether the model decides alike for nearly everybody."""
        low, high = POSITIVE_RATES
        return self.balanced_accuracy < LEAST_BALANCED_ACCURACY or not low <= self.positive_rate <= high


def performance(favourable: Bools, protected: Bools, predicted: Bools, scores: Floats | None) -> Performance:
    """Measure predictions ``(n,)`` against labels ``(n,)``, with scores ``(n,)`` of any scale for the AUC."""
    has_both_labels = favourable.any() and not favourable.all()
    gaps = [_gap(predicted, protected, favourable == label) for label in (True, False)]
    return Performance(
        auc=float(roc_auc_score(favourable, scores)) if has_both_labels and scores is not None else np.nan,
        f1=float(f1_score(favourable, predicted, zero_division=0.0)),
        balanced_accuracy=float(balanced_accuracy_score(favourable, predicted)) if has_both_labels else np.nan,
        positive_rate=float(predicted.mean()),
        eo_gap=float(np.max(gaps)),
        sp_gap=_gap(predicted, protected, np.ones(len(predicted), np.bool_)),
    )


def _gap(predicted: Bools, protected: Bools, among: Bools) -> float:
    """Absolute difference of positive rates between groups among some rows; NaN if a group has none of them."""
    members, other = predicted[among & protected], predicted[among & ~protected]
    return abs(float(members.mean()) - float(other.mean())) if len(members) and len(other) else np.nan


# --------------------------------------------------------------------------------------------------------------------
# Folds of the comparison, the same for every mitigation, and the means of its figures over them.
#
# Inputs are standardised by the training rows of a fold. Folds keep the shares of the four cells of label and group.


FOLDS: Final = 5
MOST_ROWS: Final = 20_000
"""Rows of a group and the reference group together; of more, so many are drawn."""
LEAST: Final = 50
"""Rows of each label in each group: ten a fold. A gap is an absolute value, and of fewer rows mostly chance."""

FIGURES: Final = tuple(field.name for field in fields(Performance))

NO_SCORES: Final = "decisions without scores"
UNDEFINED: Final = "a group, or a label, has no held-out row in a fold"


@dataclass(frozen=True)
class People:
    """``n`` rows of a group and the reference group."""

    inputs: Floats
    """``(n, d)``, before any scale."""
    label: Bools
    protected: Bools
    financial: Floats
    """``(n, f)``."""

    def rows(self, chosen: Longs) -> "People":
        """The same of some rows, ``(r,)``."""
        return People(self.inputs[chosen], self.label[chosen], self.protected[chosen], self.financial[chosen])


@dataclass(frozen=True)
class Columns:
    """What the inputs are."""

    covariate: Bools
    """``(d,)``."""
    is_attribute: Bools
    """``(d,)``."""
    financial_names: tuple[str, ...]


@dataclass(frozen=True)
class Mean:
    """One figure of one mitigation over the folds."""

    figure: str
    value: float
    """NaN where some fold has none: a mean over fewer folds is not comparable."""
    deviation: float
    reason: str
    """Why there is no value; empty where there is one."""


def refusal(people: People) -> str:
    """Why no model can be trained on these rows; empty if one can. The reason contains no count."""
    if not people.inputs.shape[1]:
        return NO_FEATURE
    cells = np.bincount(people.label * 2 + people.protected, minlength=4)
    return "too few rows of a label in one of the groups" if cells.min() < LEAST else ""


def drawn(people: People, seed: int) -> People:
    """At most ``MOST_ROWS`` of the rows: all of a small group; labels keep their shares in each group."""
    n, members = len(people.label), int(people.protected.sum())
    if n <= MOST_ROWS:
        return people
    most = min(members, max(MOST_ROWS // 2, MOST_ROWS - (n - members)))
    parts = [(people.protected, most), (~people.protected, min(n - members, MOST_ROWS - most))]
    chosen = []
    for group, count in parts:
        rows = np.flatnonzero(group)
        if count < len(rows):
            rows = resample(rows, replace=False, n_samples=count, stratify=people.label[group], random_state=seed)
        chosen.append(rows)
    return people.rows(np.sort(np.concatenate(chosen)))


def split(people: People, columns: Columns, seed: int) -> Iterator[tuple[MitigationFold, Bools]]:
    """Yields the folds, each with the outcomes ``(t,)`` of its test rows."""
    cell = people.label * 2 + people.protected
    for fitted, test_rows in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(cell, cell):
        mean, deviation = people.inputs[fitted].mean(axis=0), people.inputs[fitted].std(axis=0)
        inputs = (people.inputs - mean) / np.where(deviation > 0, deviation, 1.0)
        fold = MitigationFold(
            inputs[fitted],
            people.label[fitted],
            people.protected[fitted],
            inputs[test_rows],
            people.protected[test_rows],
            columns.covariate,
            columns.is_attribute,
            people.financial[fitted],
            columns.financial_names,
        )
        yield fold, people.label[test_rows]


def compared(
    people: People, columns: Columns, mitigations: Mapping[str, Callable[[MitigationFold], Decided]], seed: int
) -> Iterator[tuple[str, list[Mean]]]:
    """Yields the means of every mitigation over the same folds, by its name."""
    folds = list(split(people, columns, seed))
    for name, mitigate in mitigations.items():
        performances: list[Performance | str] = []
        for fold, label in folds:
            decided = mitigate(fold)
            if decided.predicted is None:
                performances.append(decided.reason)
            else:
                performances.append(performance(label, fold.test_protected, decided.predicted, decided.scores))
        yield name, means(performances)


def means(several: Sequence[Performance | str]) -> list[Mean]:
    """Returns the mean and the standard deviation of each figure; a fold without decisions gives its reason."""
    refused = next((performance for performance in several if isinstance(performance, str)), "")
    performances = [performance for performance in several if not isinstance(performance, str)]
    if refused:
        return [Mean(name, np.nan, np.nan, refused) for name in FIGURES]
    out = []
    for name in FIGURES:
        values = np.array([getattr(performance, name) for performance in performances], np.float64)
        reason = "" if np.isfinite(values).all() else NO_SCORES if name == "auc" else UNDEFINED
        out.append(Mean(name, float(values.mean()), float(values.std(ddof=1)), reason))
    return out
