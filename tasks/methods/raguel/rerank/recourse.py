"""Reads what recourse costs need of a decision maker: its inputs, decision boundary and decisions.

Scope: decision makers. Lists of applicants: ``lists``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from scipy.special import logit

from schemas.audit.column import Recourse
from schemas.audit.model import Model, TakenAs
from schemas.terms import Constraint, DecisionMaker, Kind
from tasks.counterfactuals.algorithm.recourse.targets import Boundary
from tasks.methods.raguel.algorithm.offers import Answers
from tasks.methods.raguel.algorithm.units import Attribute, Space
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions.linear import Linear
from tasks.numerics.columns import Columns
from tasks.numerics.encoding import Scale
from tasks.preprocessing.columns import Inputs, inputs_of
from tasks.scoring.decider import Decide, decider
from tasks.scoring.linear_forms import linear_form
from tasks.scoring.model_reader.stored import stored

MARGIN = 1e-9
"""Of a score, relatively: a boundary is crossed by so much, or rounding would decide on those who go to it."""

_DIRECTIONS = {Constraint.UP: 1, Constraint.DOWN: -1}


@dataclass(frozen=True)
class Maker:
    """What recourse needs of a decision maker. Arrays are aligned by row."""

    name: str
    inputs: Inputs
    taken_as: TakenAs
    fold: Ints
    """``(n,)`` number of the model that decided on each row."""
    linear: Mapping[int, Linear] | None
    """By number of the model, above 0 for a favourable decision; None without such a form."""
    answers: Answers | None
    """None where it cannot be asked."""
    scores: Floats
    """``(n,)`` probabilities; NaN where there are none."""

    def boundaries(self, space: Space) -> dict[int, Boundary] | None:
        """Returns the boundaries of its models in a space; None without a linear form."""
        if self.linear is None:
            return None
        return {
            number: Boundary(each.coefficients * space.unit, each.intercept) for number, each in self.linear.items()
        }


def maker_of(name: str, model: Model, models: pa.Table, columns: Columns, encodings: pa.Table, made: pa.Table) -> Maker:
    """Returns a decision maker; a lender gets the inputs of a model, and its reasons are unknown.

    Args:
        name: Of the decision maker.
        model: That of the audit.
        models: Those that the stage ``score`` left.
        columns: What applicants handed in.
        encodings: How it is encoded.
        made: Its decisions, in the order of the rows.
    """
    n, scores = made.num_rows, made["score"].to_numpy()
    if name != DecisionMaker.MODEL:
        inputs = inputs_of(columns, encodings, "encoded")
        return Maker(name, inputs, "encoded", np.zeros(n, np.int32), None, None, np.full(n, np.nan))
    taken_as: TakenAs = "codes" if model.rule is not None else model.taken_as
    inputs = inputs_of(columns, encodings, taken_as)
    answers = _answers(model, models, columns, encodings, made)
    if model.rule is not None:
        weights = np.array([model.rule.weights.get(each, 0.0) for each in columns.names])
        form = {0: above(Linear(weights), model.rule.limit)}
        return Maker(name, inputs, taken_as, np.zeros(n, np.int32), form, answers, scores)
    forms = {number: linear_form(each) for number, each in stored(models, model).items()}
    cut = float(logit(made["threshold"][0].as_py()))
    linear = {number: above(each, cut) for number, each in forms.items() if each is not None}
    fold = made["fold"].to_numpy().astype(np.int32)
    return Maker(name, inputs, taken_as, fold, linear if len(linear) == len(forms) else None, answers, scores)


def above(form: Linear, cut: float) -> Linear:
    """How far the logit lies above the cut, and a trifle less, so that the boundary is crossed."""
    return Linear(form.coefficients, form.intercept - cut - MARGIN * max(1.0, abs(cut)))


def _answers(model: Model, models: pa.Table, columns: Columns, encodings: pa.Table, made: pa.Table) -> Answers | None:
    decide = decider(model, models, encodings, made)
    cut = None if model.rule is not None else float(logit(made["threshold"][0].as_py()))
    return None if decide is None else partial(_asked, decide, columns, cut)


def _asked(decide: Decide, columns: Columns, cut: float | None, rows: Longs, values: Floats) -> tuple[Bools, Floats]:
    """Decisions on columns as they would be, and scores: of a model log odds above the cut, of a rule its sum."""
    favourable, scores = decide(Columns(columns.names, columns.kinds, columns.categories, values), rows)
    return favourable, scores if cut is None else logit(scores) - cut


def attributes_of(
    maker: Maker, columns: Columns, encodings: pa.Table, recourse: Mapping[str, Recourse], fixed: Sequence[str]
) -> tuple[Attribute | None, ...]:
    """Returns the attribute of each input of a decision maker; None for one of several categories.

    Args:
        maker: The decision maker.
        columns: What applicants handed in.
        encodings: How it is encoded, and in which direction it may change.
        recourse: What the spec says of each column.
        fixed: Columns that a protected attribute is made of: to change them is no recourse.
    """
    firsts = {row["feature"]: row for row in encodings.to_pylist()}
    ordered = [kind in (Kind.ORDINAL, Kind.BINARY) and maker.taken_as != "one_hot" for kind in columns.kinds]
    found: list[Attribute | None] = []
    for at in maker.inputs.column.tolist():
        name, known, first = columns.names[at], columns.categories[at], firsts[columns.names[at]]
        if known and not ordered[at]:
            found.append(None)
            continue
        scale = None
        if maker.taken_as == "encoded":
            scale = Scale(0.0, max(len(known) - 1.0, 1.0), None) if known else _scale(first)
        bound = first["constraint"] == Constraint.IMMUTABLE or first["transitions"] is not None or name in fixed
        found.append(
            Attribute(
                name,
                known,
                scale,
                recourse[name].weight,
                recourse[name].step,
                recourse[name].limits,
                _DIRECTIONS.get(first["constraint"], 0),
                not bound,
            )
        )
    return tuple(found)


def _scale(first: Mapping[str, float]) -> Scale:
    return Scale(first["low"], first["high"], None if first["bins"] is None else int(first["bins"]))
