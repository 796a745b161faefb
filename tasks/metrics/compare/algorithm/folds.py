"""Folds of the comparison, the same for every mitigation, and the means of its figures over them.

Inputs are standardised by the training rows of a fold. Folds keep the shares of the four cells of label and group.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import resample

from schemas.terms import NO_FEATURE
from tasks.baselines.algorithm.mitigation import Decided, MitigationFold
from tasks.metrics.compare.algorithm.performance import Performance, performance
from tasks.numerics.arrays import Bools, Floats, Longs

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
    own: Bools
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
    """Why nothing can be trained on these rows; empty if something can. The reason tells no count."""
    if not people.inputs.shape[1]:
        return NO_FEATURE
    cells = np.bincount(people.label * 2 + people.protected, minlength=4)
    return "too few rows of a label in one of the groups" if cells.min() < LEAST else ""


def drawn(people: People, seed: int) -> People:
    """At most ``MOST_ROWS`` of the rows: all of a small group; labels keep their shares in each group."""
    n, own = len(people.label), int(people.protected.sum())
    if n <= MOST_ROWS:
        return people
    most = min(own, max(MOST_ROWS // 2, MOST_ROWS - (n - own)))
    parts = [(people.protected, most), (~people.protected, min(n - own, MOST_ROWS - most))]
    chosen = [_some(np.flatnonzero(group), people.label[group], count, seed) for group, count in parts]
    return people.rows(np.sort(np.concatenate(chosen)))


def _some(rows: Longs, label: Bools, count: int, seed: int) -> Longs:
    if count >= len(rows):
        return rows
    some: Longs = resample(rows, replace=False, n_samples=count, stratify=label, random_state=seed)
    return some


def split(people: People, columns: Columns, seed: int) -> Iterator[tuple[MitigationFold, Bools]]:
    """Yields the folds, each with the outcomes ``(t,)`` of its test rows."""
    cell = people.label * 2 + people.protected
    for fitted, held in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(cell, cell):
        mean, deviation = people.inputs[fitted].mean(axis=0), people.inputs[fitted].std(axis=0)
        inputs = (people.inputs - mean) / np.where(deviation > 0, deviation, 1.0)
        fold = MitigationFold(
            inputs[fitted],
            people.label[fitted],
            people.protected[fitted],
            inputs[held],
            people.protected[held],
            columns.covariate,
            columns.own,
            people.financial[fitted],
            columns.financial_names,
        )
        yield fold, people.label[held]


def compared(
    people: People, columns: Columns, mitigations: Mapping[str, Callable[[MitigationFold], Decided]], seed: int
) -> Iterator[tuple[str, list[Mean]]]:
    """Yields the means of every mitigation over the same folds, by its name."""
    folds = list(split(people, columns, seed))
    for name, mitigate in mitigations.items():
        yield name, means([_measured(mitigate(fold), fold, label) for fold, label in folds])


def means(several: Sequence[Performance | str]) -> list[Mean]:
    """Returns the mean and the standard deviation of each figure; a fold without decisions gives its reason."""
    refused = next((each for each in several if isinstance(each, str)), "")
    there = [each for each in several if not isinstance(each, str)]
    return [Mean(name, np.nan, np.nan, refused) if refused else _mean(name, there) for name in FIGURES]


def _mean(name: str, there: Sequence[Performance]) -> Mean:
    values = np.array([getattr(each, name) for each in there], np.float64)
    reason = "" if np.isfinite(values).all() else NO_SCORES if name == "auc" else UNDEFINED
    return Mean(name, float(values.mean()), float(values.std(ddof=1)), reason)


def _measured(decided: Decided, fold: MitigationFold, label: Bools) -> Performance | str:
    if decided.predicted is None:
        return decided.reason
    return performance(label, fold.test_protected, decided.predicted, decided.scores)
