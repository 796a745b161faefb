"""Decision makers: models fitted or given, and their scores of rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import pyarrow as pa
from sklearn.model_selection import StratifiedKFold, train_test_split

from schemas.audit.column import is_personal, kind_of
from schemas.audit.model import Model, Rule, TakenAs
from schemas.audit.spec import Protected
from schemas.errors import SpecError, TooFewError
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.encoding import Columns, Places
from tasks.preprocessing.columns import Grouped, inputs_of
from tasks.scoring.decider import Decide, passes, rule_scores
from tasks.scoring.fitting import fit_of, fit_to
from tasks.scoring.model_reader.confined import UnansweredError, opened
from tasks.scoring.models import ModelFile, Readable, inputs_taken, kept, names_of, probabilities

# --------------------------------------------------------------------------------------------------------------------
# What a given model decides with a protected attribute exchanged: its own answer to whether equals are treated alike.
#
# Each applicant is decided on again as if of the reference group, all other columns as they are. Only a model from a
# file, or a rule, can answer: a model that is fitted here has learnt from decisions on the very groups. Nothing of an
# applicant follows the attribute, as it would in the causal model: what reaches the decision through other columns is
# the theory ``total``.
#
# Scope: one column of a single attribute. Where the model takes the group in other columns too, exchanging one of them
# would make applicants who cannot be, and it is refused.


@dataclass(frozen=True)
class Exchanged:
    """A protected attribute that the model takes as an input."""

    attribute: str
    favourable: Bools | None = None
    """``(n,)`` decisions with the attribute exchanged; None where it is not."""
    column: str | None = None
    value: str | None = None
    """Of the column in the reference group."""
    reason: str = ""
    """Why it is not exchanged."""


def exchanges(
    columns: Columns, groups: Mapping[str, Grouped], protected: Sequence[Protected], model: Model, decide: Decide
) -> Iterator[Exchanged]:
    """Every protected attribute that the model takes; none where it takes no column of it.

    Args:
        columns: what ``n`` applicants handed in.
        groups: by name of the attribute.
        protected: the attributes.
        model: a rule, or a model from a file.
        decide: how it decides.
    """
    input_names = model.takes(columns.names)
    attributes = {column for p in protected for column in p.columns}
    for p in protected:
        protected_inputs = [name for name in p.columns if name in input_names]
        proxy_inputs = [
            name
            for name in input_names
            if name not in p.columns and _is_proxy(name, p, columns, groups[p.name], attributes)
        ]
        if not protected_inputs and not proxy_inputs:
            continue
        reason = ""
        if not groups[p.name].compared:
            reason = f"no complete application belongs to {p.reference}, the reference group"
        elif len(p.columns) > 1:
            reason = f"{p.name} crosses {' and '.join(p.columns)}: only an attribute of one column is exchanged"
        elif not protected_inputs:
            reason = f"the model takes {', '.join(proxy_inputs)}, which tells the group, and not {p.columns[0]}"
        elif proxy_inputs:
            inputs_text = f"the model takes {', '.join(proxy_inputs)} beside {protected_inputs[0]}"
            reason = f"{inputs_text}: exchanging one alone makes nobody who could be"
        if reason:
            yield Exchanged(p.name, reason=reason)
        else:
            yield _exchanged(p.name, columns, columns.names.index(protected_inputs[0]), groups[p.name], decide)


def _exchanged(attribute: str, columns: Columns, at: int, grouped: Grouped, decide: Decide) -> Exchanged:
    name, categories = columns.names[at], columns.categories[at]
    reference_values = np.unique(columns.values[grouped.group == grouped.reference, at])
    if len(reference_values) > 1:
        number = len(reference_values)
        reason = f"the reference group has {number} values of {name}: name the one that the others are exchanged to"
        return Exchanged(attribute, column=name, reason=reason)
    values = columns.values.copy()
    values[:, at] = reference_values[0]
    favourable, _ = decide(replace(columns, values=values), np.arange(len(values)))
    return Exchanged(
        attribute, favourable, name, categories[int(reference_values[0])] if categories else f"{reference_values[0]:g}"
    )


NEARLY_TELLS = 0.9
"""Share of a group and of the reference group, on average, that a proxy tells from the other."""
ROWS_A_VALUE = 20
"""With fewer rows for each value a column tells groups by chance."""


def _is_proxy(name: str, p: Protected, columns: Columns, grouped: Grouped, attributes: set[str]) -> bool:
    """Whether a column is a proxy of the group: by its name, or because the two agree in the data, nearly or always."""
    kinds = {kind_of(column_name) for column_name in (p.name, *p.columns)} - {""}
    if is_personal(name) and kind_of(name) in kinds and name not in attributes:
        return True
    values, many = columns.values[:, columns.names.index(name)], len(grouped.groups)
    parts = [values[grouped.group == number] for number in range(many)]
    if np.ptp(values) > 0 and all(np.ptp(part) == 0 for part in parts if len(part)):
        return True  # each group has one value
    distinct_values, codes = np.unique(values, return_inverse=True)
    if 2 * len(distinct_values) > len(values):
        return False  # an amount: hardly two rows have the same value
    # Each value lies in one group, and not all in the same.
    cells = np.bincount(codes * many + grouped.group, minlength=many * len(distinct_values)).reshape(-1, many)
    if ROWS_A_VALUE * len(distinct_values) <= len(values):
        shares = cells / np.maximum(cells.sum(axis=0), 1)
        of_reference = shares[:, [grouped.reference]]
        # each value counts for the group where it is commoner
        accuracy = np.maximum(shares, of_reference).sum(axis=0) / 2
        if (accuracy[cells.sum(axis=0) > 0] > NEARLY_TELLS).any():
            return True
    return bool((np.count_nonzero(cells, axis=1) <= 1).all() and np.count_nonzero(cells.any(axis=0)) > 1)


# --------------------------------------------------------------------------------------------------------------------
# Decision makers besides the lender: a model fitted here, one from a file, or a rule, each with its scores.
#
# By default every row is scored by a model that has not seen it (k-fold cross-fitting), so that all rows can be
# explained. The paper's single holdout scores all rows, and only the held-out ones can be explained. A given model or
# rule decides on every row, and all can be explained.


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


def fitted(
    x: Floats, y: Bools, model: Model, seed: int, names: Sequence[str] = (), places: Places | None = None
) -> Scored:
    """Decisions of a model that had not seen the rows which may be explained.

    Args:
        x: ``(n, q)`` encoded features.
        y: ``(n,)`` the lender's decisions.
        model: kind, split and threshold.
        seed: of the split and of the fit.
        names: of the features, kept with the coefficients.
        places: as ``fitting.distinct`` has them.

    Raises:
        TooFewError: too few decisions of one kind.
    """
    _check_enough(y, model.folds if model.split == "crossfit" else 4)
    n, fit = len(y), fit_of(model.kind, seed)
    if model.split == "holdout":
        train, test = train_test_split(np.arange(n), test_size=model.holdout, random_state=seed)
        _check_enough(y[train], 1)
        classifier = fit_to(fit, x, y, train, places)
        scores = probabilities(classifier, x)
        explained = np.isin(np.arange(n), test)
        threshold = _threshold(scores[train], y[train], model)
        return _by_scores(scores, threshold, explained, np.zeros(n, np.int32), (kept(classifier, names),))
    scores, fold, models = np.empty(n), np.empty(n, np.int32), []
    folds = StratifiedKFold(model.folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(x, y)):
        classifier = fit_to(fit, x, y, train, places)
        scores[test], fold[test] = probabilities(classifier, x[test]), number
        models.append(kept(classifier, names))
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
        classifier = opened(file)
        _check_inputs(classifier, file.name, columns, encodings, model.taken_as)
        inputs = inputs_of(columns, encodings, model.taken_as)
        try:
            scores = probabilities(classifier, inputs.x)
        except UnansweredError as error:
            raise SpecError(
                f"{file.name} does not take the {len(inputs.names)} inputs that it gets ({_shown(inputs.names)}): "
                f"{error.detail}; set model.file.inputs to what it was fitted on, or name in the spec the columns that "
                "it takes, in its order"
            ) from error
        if blank := int(np.count_nonzero(~np.isfinite(scores))):
            raise SpecError(
                f"{file.name} gives no finite number for {blank:,} of {len(scores):,} rows; look at its inputs"
            )
    except SpecError as error:
        raise SpecError(str(error), ("model", "file")) from error
    n = len(y)
    return _by_scores(scores, _threshold(scores, y, model), np.ones(n, dtype=bool), np.zeros(n, np.int32), (content,))


def answered(columns: Columns, encodings: pa.Table, y: Bools, model: Model) -> Scored:
    """Decisions of a model in memory on every row, by the columns as applicants handed them in.

    Raises:
        SpecError: the spec was read from a file, which holds no model in memory, or the model gives no numbers.
    """
    if model.instance is None:
        raise SpecError("a model of kind `object` is one in Python; save it, and give the file", ("model", "kind"))
    instance = model.instance.knowing(columns.categories)
    scores = instance.probability(inputs_of(columns, encodings, model.taken_as).x)
    if blank := int(np.count_nonzero(~np.isfinite(scores))):
        raise SpecError(f"the model gives no finite number for {blank:,} of {len(scores):,} rows; look at its inputs")
    n = len(y)
    content = json.dumps(columns.categories).encode()
    return _by_scores(scores, _threshold(scores, y, model), np.ones(n, dtype=bool), np.zeros(n, np.int32), (content,))


def _check_enough(y: Bools, minimum: int) -> None:
    fewest = int(min(y.sum(), (~y).sum()))
    if fewest < minimum:
        raise TooFewError(
            f"the rarer decision occurs {fewest} times among {len(y)} complete rows; fitting a model needs {minimum}: "
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
    """Check the inputs that a model was fitted on against those that it gets, as far as it declares them."""
    nobody = columns.rows(np.zeros(0, np.int64))
    ways = {way: inputs_of(nobody, encodings, way).names for way in get_args(TakenAs)}
    names, number_of_inputs, model_names = ways[taken_as], inputs_taken(model), names_of(model)
    if number_of_inputs not in (None, len(names)):
        widths = ", ".join(f"{way} {len(way_names)}" for way, way_names in ways.items())
        raise SpecError(
            f"{name} takes {number_of_inputs} inputs and would get {len(names)} ({_shown(names)}); "
            "set model.file.inputs to what "
            f"it was fitted on ({widths}), or name in the spec the columns that it takes, in its order"
        )
    for place, (theirs, ours) in enumerate(zip(model_names, names, strict=False), 1):
        if theirs != ours and theirs in names:
            raise SpecError(
                f"{name} was fitted with {theirs!r} as input {place}, and would get {ours!r} there; put the columns of "
                "the spec in the order of its inputs"
            )


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
