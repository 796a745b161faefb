"""Decision makers beside the lender: a model fitted here, one from a file, or a rule, each with its scores.

By default every row is scored by a model that has not seen it (k-fold cross-fitting), so that all rows can be
explained. The paper's single holdout scores all rows, and only the held-out ones can be explained. A given model or
rule decides on every row, and all can be explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
from sklearn.model_selection import StratifiedKFold, train_test_split

from schemas.audit.model import Model, Rule, TakenAs
from schemas.errors import SpecError, TooFewError
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.columns import Columns
from tasks.preprocessing.columns import Inputs, inputs_of
from tasks.scoring.decider import passes, rule_scores
from tasks.scoring.fitting import fit_of
from tasks.scoring.model_reader.confined import UnansweredError, opened
from tasks.scoring.models import ModelFile, Readable, inputs_taken, kept, names_of, probabilities

SHOWN = 6
"""Inputs that a message names."""


@dataclass(frozen=True)
class Scored:
    """Decisions of one decision maker, with scores. All arrays are ``(n,)``."""

    favourable: Bools
    ranks: Floats
    """What orders the rows from the least favoured to the most; NaN where nothing is known of that."""
    scores: Floats
    """Predicted probability of the favourable decision, NaN where there is none."""
    threshold: float
    explained: Bools
    fold: Ints | None = None
    """Number of the model that decided."""
    models: tuple[bytes, ...] = ()

    @classmethod
    def unscored(cls, favourable: Bools, ranks: Floats | None = None) -> "Scored":
        """Decisions without probabilities."""
        none = np.full(len(favourable), np.nan)
        every = np.ones(len(favourable), dtype=bool)
        return cls(favourable, none if ranks is None else ranks, none, np.nan, every)


def ruled(rule: Rule, columns: Columns) -> Scored:
    """Decisions of a rule on every row."""
    sums = rule_scores(rule, columns)
    return Scored.unscored(passes(rule, sums), sums)


def fitted(x: Floats, y: Bools, model: Model, seed: int, names: Sequence[str] = ()) -> Scored:
    """Decisions of a model that had not seen the rows which may be explained.

    Args:
        x: ``(n, q)`` encoded features.
        y: ``(n,)`` the lender's decisions.
        model: kind, split and threshold.
        seed: of the split and of the fit.
        names: of the features, kept with the coefficients.

    Raises:
        TooFewError: too few decisions of one kind.
    """
    _check_enough(y, model.folds if model.split == "crossfit" else 4)
    n, fit = len(y), fit_of(model.kind, seed)
    if model.split == "holdout":
        train, test = train_test_split(np.arange(n), test_size=model.holdout, random_state=seed)
        _check_enough(y[train], 1)
        one = fit(x[train], y[train])
        scores = probabilities(one, x)
        explained = np.isin(np.arange(n), test)
        threshold = _threshold(scores[train], y[train], model)
        return _by_scores(scores, threshold, explained, np.zeros(n, np.int32), (kept(one, names),))
    scores, fold, models = np.empty(n), np.empty(n, np.int32), []
    folds = StratifiedKFold(model.folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(x, y)):
        one = fit(x[train], y[train])
        scores[test], fold[test] = probabilities(one, x[test]), number
        models.append(kept(one, names))
    return _by_scores(scores, _threshold(scores, y, model), np.ones(n, dtype=bool), fold, tuple(models))


def given(content: bytes, columns: Columns, encodings: pa.Table, y: Bools, model: Model) -> Scored:
    """Decisions of a model from a file on every row.

    Args:
        content: the file.
        columns: what ``n`` applicants handed in.
        encodings: how it is encoded.
        y: ``(n,)`` the lender's decisions; a rate-matched threshold denies as many.
        model: what the spec says of the file, and the threshold.

    Raises:
        SpecError: the file is no model that is read here, takes other inputs, or gives no numbers.
    """
    file = ModelFile.of(model, content)
    try:
        one = opened(file)
        _check_inputs(one, file.name, columns, encodings, model.taken_as)
        scores = _scores_of(one, file.name, inputs_of(columns, encodings, model.taken_as))
    except SpecError as error:
        raise SpecError(str(error), ("model", "file")) from error
    n = len(y)
    return _by_scores(scores, _threshold(scores, y, model), np.ones(n, dtype=bool), np.zeros(n, np.int32), (content,))


def _check_enough(y: Bools, needed: int) -> None:
    fewest = int(min(y.sum(), (~y).sum()))
    if fewest < needed:
        raise TooFewError(
            f"the rarer decision occurs {fewest} times among {len(y)} complete rows; fitting a model needs {needed}: "
            "set model.kind: none to audit the lender's decisions alone, or model.folds lower"
        )


def _threshold(scores: Floats, y: Bools, model: Model) -> float:
    """The score from which a decision is favourable: as given, or such that predicted and observed denials agree."""
    if model.threshold != "rate_matched":
        return float(model.threshold)
    denied = int((~y).sum())
    ranked = np.sort(scores)
    return float(ranked[min(denied, len(ranked) - 1)])


def _by_scores(scores: Floats, threshold: float, explained: Bools, fold: Ints, models: tuple[bytes, ...]) -> Scored:
    return Scored(scores >= threshold, scores, scores, threshold, explained, fold, models)


def _check_inputs(model: Readable, name: str, columns: Columns, encodings: pa.Table, taken_as: TakenAs) -> None:
    """Hold the inputs that a model was fitted on against those that it gets, as far as it tells."""
    nobody = columns.rows(np.zeros(0, np.int64))
    ways = {way: inputs_of(nobody, encodings, way).names for way in get_args(TakenAs)}
    names, taken, own = ways[taken_as], inputs_taken(model), names_of(model)
    if taken not in (None, len(names)):
        widths = ", ".join(f"{way} {len(others)}" for way, others in ways.items())
        raise SpecError(
            f"{name} takes {taken} inputs and would get {len(names)} ({_shown(names)}); set model.file.inputs to what "
            f"it was fitted on ({widths}), or name in the spec the columns that it takes, in its order"
        )
    for place, (theirs, ours) in enumerate(zip(own, names, strict=False), 1):
        if theirs != ours and theirs in names:
            raise SpecError(
                f"{name} was fitted with {theirs!r} as input {place}, and would get {ours!r} there; put the columns of "
                "the spec in the order of its inputs"
            )


def _scores_of(model: Readable, name: str, inputs: Inputs) -> Floats:
    """The scores of a user's model."""
    try:
        scores = probabilities(model, inputs.x)
    except UnansweredError as error:
        names = _shown(inputs.names)
        raise SpecError(
            f"{name} does not take the {len(inputs.names)} inputs that it gets ({names}): {error.told}; set "
            "model.file.inputs to what it was fitted on, or name in the spec the columns that it takes, in its order"
        ) from error
    blank = int(np.count_nonzero(~np.isfinite(scores)))
    if blank:
        raise SpecError(f"{name} gives no finite number for {blank:,} of {len(scores):,} rows; look at its inputs")
    return scores


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
