"""Folds of the comparison of mitigations, performance of classifiers, and paired differences between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import norm
from scipy.stats import t as student
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


REPEATS: Final = 5
"""Repeats of the folds, each with another seed."""


@dataclass(frozen=True)
class OutOfFold:
    """Decisions of one mitigation on ``n`` rows, each by the model that did not see the row."""

    decided: Floats
    """``(repeats, n)`` probability of a favourable decision: 0 or 1 where none is drawn."""
    scores: Floats | None
    """``(repeats, n)``, on the scale of its fold; None for a model without scores."""
    fold: Longs
    """``(repeats, n)`` number of the fold of each row."""
    cec: Floats | None = None
    """``(repeats, n)`` CEC of members of the group, NaN of others and without a score; None without a single logit."""

    @property
    def drawn(self) -> float:
        """Share of rows with a drawn decision, a mean over the repeats."""
        return float(((self.decided > 0) & (self.decided < 1)).mean())


@dataclass(frozen=True)
class Trained:
    """One mitigation over all folds and repeats."""

    name: str
    means: list[Mean]
    """Over the folds of the first repeat."""
    rows: OutOfFold | None
    """None where some fold has no decisions."""


def compared(
    people: People,
    columns: Columns,
    mitigations: Mapping[str, Callable[[MitigationFold], Decided]],
    seed: int,
) -> Iterator[Trained]:
    """Yields every mitigation, trained on the same folds: the seed of repeat r is ``seed + r``."""
    repeats = REPEATS
    cell = people.label * 2 + people.protected
    folds = [list(split(people, columns, seed + repeat)) for repeat in range(repeats)]
    tests = [
        [rows for _, rows in StratifiedKFold(FOLDS, shuffle=True, random_state=seed + r).split(cell, cell)]
        for r in range(repeats)
    ]
    shape = (repeats, len(people.label))
    for name, mitigate in mitigations.items():
        performances: list[Performance | str] = []
        (decided, scores, cec), number = np.full((3, *shape), np.nan), np.zeros(shape, np.int64)
        for repeat in range(repeats):
            for at, ((fold, label), rows) in enumerate(zip(folds[repeat], tests[repeat], strict=True)):
                held_out = mitigate(fold)
                number[repeat, rows] = at
                if held_out.predicted is not None:
                    drawn_from = held_out.predicted if held_out.expected is None else held_out.expected
                    decided[repeat, rows] = drawn_from
                    scores[repeat, rows] = np.nan if held_out.scores is None else held_out.scores
                if held_out.explained is not None:
                    cec[repeat, rows] = held_out.explained(label, people.financial[rows])
                if repeat == 0 and held_out.predicted is None:
                    performances.append(held_out.reason)
                elif repeat == 0 and held_out.predicted is not None:
                    performances.append(performance(label, fold.test_protected, held_out.predicted, held_out.scores))
            if np.isnan(decided[repeat]).any():
                break  # a model that cannot be trained on some fold is not compared
        has_scores = bool(np.isfinite(scores).all())
        reasons = cec if np.isfinite(cec).any(axis=1).all() else None
        out_of_fold = OutOfFold(decided, scores if has_scores else None, number, reasons)
        yield Trained(name, means(performances), None if np.isnan(decided).any() else out_of_fold)


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


# --------------------------------------------------------------------------------------------------------------------
# Differences between two models, with paired intervals.
#
# Rows are resampled within the four cells of group and label, the same draw for all models. An interval that takes the
# fitted models as given is too short: the spread between repeats of the folds is added to its variance. Source:
# evidence specification, sections 4 and 9.


DRAWS: Final = 2_000
LEVEL: Final = 0.95
BATCH: Final = 200
"""Draws at a time. The AUC has one batch: it costs as much as all other quantities of ten."""
QUANTITIES: Final = (
    *("accuracy", "balanced_accuracy", "auc", "approval_ratio", "sp_gap", "eo_gap", "flips", "decisions_changed"),
    "cec",
)
"""``sp_gap`` is signed, reference less group; ``eo_gap`` is the larger gap in error rates; ``approval_ratio`` is the
group's approval over the reference group's; ``flips`` is the share of the group whose decision is not that of the most
similar reference applicant; ``decisions_changed`` is the share whose decision is another one; ``cec`` is the mean CEC
of the group's members that have one."""
UNMATCHED: Final = "no column is financial, by which applicants are matched"
UNEXPLAINED: Final = "no single logit of one of both models can be explained, or no applicant is matched"


@dataclass(frozen=True)
class Difference:
    """Of one quantity, the second model less the first."""

    quantity: str
    value: float
    """NaN where a model lacks scores or a single logit, no reference applicant is approved, or no column matches."""
    low: float
    high: float
    p: float
    """Two-sided, of no difference; 1 for equal models."""


@dataclass(frozen=True)
class Resampled:
    """Quantities of some models, as they are and in every draw of rows."""

    points: Mapping[str, Floats]
    """Quantity -> ``(models, repeats)``."""
    draws: Mapping[str, Floats]
    """Quantity -> ``(models, draws)`` of the means over repeats."""


def resampled(people: People, models: Sequence[OutOfFold], rng: np.random.Generator, draws: int = DRAWS) -> Resampled:
    """Resample rows within group and label, and compute every quantity of every model in each draw.

    Args:
        people: The rows.
        models: Their decisions.
        rng: Draws the rows.
        draws: Their number.
    """
    cell = people.label.astype(np.int64) * 2 + people.protected
    counts = np.bincount(cell, minlength=4).astype(np.float64)
    decided = np.stack([model.decided for model in models])  # (models, repeats, n)
    cec = np.stack([np.full(model.decided.shape, np.nan) if model.cec is None else model.cec for model in models])
    has_cec = np.isfinite(cec)
    by_row = (
        decided,
        np.abs(decided - decided[:1]),
        _flips(decided, people),
        np.where(has_cec, cec, 0.0),
        1.0 * has_cec,
    )
    now = [_by_cell(values, cell) for values in by_row]
    then = [np.empty((4, draws, *decided.shape[:2])) for _ in by_row]
    weights = np.zeros((min(BATCH, draws), len(cell)))
    for number in range(4):
        rows = np.flatnonzero(cell == number)
        # multiples of 2^-24: sums of them are exact in any order, so that equal models differ by exactly nothing
        flat = [np.round(values[:, :, rows].reshape(-1, len(rows)).T * 2.0**24) / 2.0**24 for values in by_row]
        for start in range(0, draws, BATCH):
            size = min(BATCH, draws - start)
            drawn_rows = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size).astype(np.float64)
            for at, values in enumerate(flat):
                sums = (drawn_rows @ values).reshape(size, *decided.shape[:2])
                then[at][number, start : start + size] = sums / len(rows)
            if start == 0:
                weights[:, rows] = drawn_rows
    points = _quantities(now, counts)
    of_draws = {name: values.mean(axis=-1).T for name, values in _quantities(then, counts).items()}
    aucs = [_auc(model, people.label, np.ones((1, len(cell)))) for model in models]
    points["auc"] = np.stack([auc[0] for auc in aucs])
    of_draws["auc"] = np.stack([_auc(model, people.label, weights).mean(axis=1) for model in models])
    return Resampled(points, of_draws)


def _flips(decided: Floats, people: People) -> Floats:
    """``(models, repeats, n)`` probability that a member's decision is not that of the reference applicant like them.

    That is the one with the same outcome who is nearest by the financial columns, each over its standard deviation; no
    model has a say in it (as in CEC, section on matching). 0 for reference applicants; NaN without such columns.
    """
    if not people.financial.shape[1]:
        return np.full(decided.shape, np.nan)
    place = people.financial / np.where((spread := people.financial.std(axis=0)) > 0, spread, 1.0)
    flips: Floats = np.zeros(decided.shape)
    for label in (False, True):
        member = np.flatnonzero((people.label == label) & people.protected)
        reference = np.flatnonzero((people.label == label) & ~people.protected)
        like = reference[cKDTree(place[reference]).query(place[member])[1]]
        group_share, like_share = decided[:, :, member], decided[:, :, like]
        flips[:, :, member] = group_share * (1 - like_share) + (1 - group_share) * like_share
    return flips


def _by_cell(values: Floats, cell: Longs) -> Floats:
    """Means ``(4, models, repeats)`` by cell of values ``(models, repeats, n)``."""
    return np.stack([values[:, :, cell == number].mean(axis=-1) for number in range(4)])


def _quantities(by_cell: Sequence[Floats], counts: Floats) -> dict[str, Floats]:
    """Quantities ``(...)`` of means of rows by cell ``(4, ...)``: cells 0 to 3 are label * 2 + group."""
    favourable, changed, flips, cec, has_cec = by_cell
    n = counts.sum()
    shaped = counts.reshape(4, *[1] * (favourable.ndim - 1))
    reference = (favourable[0] * counts[0] + favourable[2] * counts[2]) / (counts[0] + counts[2])
    group = (favourable[1] * counts[1] + favourable[3] * counts[3]) / (counts[1] + counts[3])
    right = np.concatenate([1 - favourable[:2], favourable[2:]])
    specificity = (right[:2] * shaped[:2]).sum(axis=0) / counts[:2].sum()
    sensitivity = (right[2:] * shaped[2:]).sum(axis=0) / counts[2:].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(reference > 0, group / reference, np.nan)
        mean_cec = (cec[1] * counts[1] + cec[3] * counts[3]) / (has_cec[1] * counts[1] + has_cec[3] * counts[3])
    return {
        "accuracy": (right * shaped).sum(axis=0) / n,
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "approval_ratio": ratio,
        "sp_gap": reference - group,
        "eo_gap": np.maximum(np.abs(favourable[2] - favourable[3]), np.abs(favourable[0] - favourable[1])),
        "flips": (flips[1] * counts[1] + flips[3] * counts[3]) / (counts[1] + counts[3]),
        "decisions_changed": (changed * shaped).sum(axis=0) / n,
        "cec": mean_cec,
    }


def _auc(model: OutOfFold, label: Bools, weights: Floats) -> Floats:
    """``(w, repeats)`` AUC under weights ``(w, n)``: means over folds, since scores of folds differ in scale."""
    repeats = len(model.decided)
    if model.scores is None:
        return np.full((len(weights), repeats), np.nan)
    out = np.zeros((len(weights), repeats))
    for repeat in range(repeats):
        for number in range(FOLDS):
            rows = np.flatnonzero(model.fold[repeat] == number)
            score = model.scores[repeat, rows]
            order = rows[np.argsort(score, kind="stable")]
            ends = np.searchsorted(np.sort(score), np.sort(score), side="right") - 1
            starts = np.searchsorted(np.sort(score), np.sort(score), side="left")
            negative = np.cumsum(weights[:, order] * ~label[order], axis=1)
            padded = np.concatenate([np.zeros((len(weights), 1)), negative], axis=1)
            below = (padded[:, starts] + padded[:, ends + 1]) / 2  # ties count half
            positive = weights[:, order] * label[order]
            pairs = positive.sum(axis=1) * negative[:, -1]
            with np.errstate(invalid="ignore", divide="ignore"):
                out[:, repeat] += np.where(pairs > 0, (positive * below).sum(axis=1) / pairs, 0.5) / FOLDS
    return out


def difference(sample: Resampled, quantity: str, first: int, second: int) -> Difference:
    """The second model less the first, by one quantity.

    The interval has the percentiles of the draws, widened so that a model that is trained once more lies inside as
    often as it says: to the variance of the draws comes that between the R repeats of the folds, times 1 + 1/R, with
    the t distribution on Satterthwaite's degrees. Equal models give exactly 0 with the interval [0, 0].
    """
    of_repeats = sample.points[quantity][second] - sample.points[quantity][first]
    of_draws = sample.draws[quantity][second] - sample.draws[quantity][first]
    value, of_draws = float(of_repeats.mean()), of_draws[np.isfinite(of_draws)]
    if not np.isfinite(value) or not len(of_draws):
        return Difference(quantity, np.nan, np.nan, np.nan, np.nan)
    repeats, sampling = len(of_repeats), float(of_draws.var())
    between = float(of_repeats.var(ddof=1)) * (1 + 1 / repeats) if repeats > 1 else 0.0
    error, tail = (sampling + between) ** 0.5, (1 - LEVEL) / 2
    degrees = (sampling + between) ** 2 / (between**2 / (repeats - 1)) if between > 0 else np.inf
    reach = float(student.ppf(1 - tail, degrees)) * error
    low, high = value - reach, value + reach
    if sampling > 0:
        widened = reach / float(norm.ppf(1 - tail)) / sampling**0.5
        low, high = (value + (end - value) * widened for end in np.quantile(of_draws, [tail, 1 - tail]))
    p = 2 * float(student.sf(abs(value) / error, degrees)) if error > 0 else float(value == 0)
    return Difference(quantity, value, float(low), float(high), p)


def gap_change(sample: Resampled, first: int, second: int) -> Difference:
    """By how much the size of the gap in approvals is larger with the second model than with the first."""
    sizes = [{"sp_gap": np.abs(values["sp_gap"])} for values in (sample.points, sample.draws)]
    return difference(Resampled(*sizes), "sp_gap", first, second)


DOMINATED, NOT_DOMINATED, CANNOT_TELL = "dominated", "not_dominated", "cannot_tell"
COMPARABLE, WORSE = "comparable", "worse"


def dominance(sample: Resampled, model: int) -> str:
    """Whether another model is better than this one on accuracy and on the size of the gap in approvals.

    ``dominated`` where one is on both axes with its whole paired interval; ``not_dominated`` where each other one is
    worse on an axis with its whole interval; else ``cannot_tell``.
    """
    axes = Resampled(
        {"accuracy": sample.points["accuracy"], "sp_gap": -np.abs(sample.points["sp_gap"])},
        {"accuracy": sample.draws["accuracy"], "sp_gap": -np.abs(sample.draws["sp_gap"])},
    )
    worse = []
    for other in range(len(sample.points["accuracy"])):
        if other != model:
            pair = [difference(axes, quantity, model, other) for quantity in axes.points]
            if all(axis.low > 0 for axis in pair):
                return DOMINATED
            worse.append(any(axis.high < 0 for axis in pair))
    return NOT_DOMINATED if all(worse) else CANNOT_TELL


def comparable(sample: Resampled, first: int, second: int, quantity: str, margin: float) -> str:
    """Whether the second model performs no worse than the first by a margin: non-inferiority at 95 %, one-sided.

    ``comparable`` where the lower end lies above minus the margin, ``worse`` where the upper end lies below it.
    """
    gain = difference(sample, quantity, first, second)
    if not np.isfinite(gain.value):
        return CANNOT_TELL
    one_sided = float(norm.ppf(LEVEL) / norm.ppf((1 + LEVEL) / 2))
    low, high = gain.value + one_sided * (gain.low - gain.value), gain.value + one_sided * (gain.high - gain.value)
    return COMPARABLE if low > -margin else WORSE if high < -margin else CANNOT_TELL
