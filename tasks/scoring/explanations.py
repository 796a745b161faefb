"""Models that can be explained: their inputs, the fit that decided on each row, and its training rows.

A lender's own decisions cannot be explained. Every row of a cross-fitted model is explained by the fit that had not
seen it; after a holdout, only held-out rows are. Scope: from tables to ``ModelView``.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.model import Model, Rule
from schemas.errors import SpecError
from schemas.terms import DecisionMaker, Kind, Role
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions.differences import log_odds
from tasks.numerics.attributions.linear import Linear
from tasks.numerics.columns import Columns
from tasks.numerics.explanation import NOBODY, ModelView
from tasks.numerics.problem import OpenModel, Refit
from tasks.pipeline.given import ProblemTables
from tasks.preprocessing.columns import columns_of, inputs_of
from tasks.scoring.attributors import attributor
from tasks.scoring.model_reader.stored import stored
from tasks.scoring.models import called

if TYPE_CHECKING:
    from tasks.scoring.fitting import Fit

REFITTED = ("logistic_regression", "net")
"""Kinds of models that are fitted again on resampled rows."""


def look_into(given: ProblemTables, encoded: Floats, maker: str, model: Model | None) -> OpenModel | None:
    """A function that opens the model for a method; None without a model that can be opened."""
    if maker != DecisionMaker.MODEL or model is None or model.kind == "none":
        return None
    return partial(_explained, given, encoded, model)


def refit(given: ProblemTables, maker: str, model: Model | None, seed: int) -> Refit | None:
    """A function that fits the model again on resampled rows; None of other kinds than ``REFITTED``."""
    if maker != DecisionMaker.MODEL or model is None or model.kind not in REFITTED:
        return None
    from tasks.scoring.fitting import fit_of  # loads all that can be fitted

    lender = given.decisions.filter(pc.equal(given.decisions["decision_maker"], str(DecisionMaker.LENDER)))
    learnt = lender["favourable"].to_numpy(zero_copy_only=False)
    return partial(_refitted, learnt, fit_of(model.kind, seed), called(model))


def _refitted(learnt: Bools, fit: "Fit", name: str, explained: ModelView, rows: Longs) -> ModelView | None:
    """Models fitted to the decisions ``(n,)`` of resampled rows. Where they begin to be favourable stays as it was."""
    x, decided, pools = explained.x[rows], learnt[rows], tuple(pool[rows] for pool in explained.pools)
    if any(decided[pool].all() or not decided[pool].any() for pool in pools):
        return None
    return replace(
        explained,
        x=x,
        label=explained.label[rows],
        financial=explained.financial[rows],
        explainer=explained.explainer[rows],
        models=tuple(attributor(fit(x[pool], decided[pool]), name) for pool in pools),
        pools=pools,
        favourable=None if explained.favourable is None else explained.favourable[rows],
    )


def _explained(given: ProblemTables, encoded: Floats, model: Model, substitute: bool) -> ModelView:
    """The rows as the model saw them.

    Raises:
        SpecError: No column is financial, or the model has no gradient and no substitute was chosen.
    """
    columns = columns_of(given.applicants, given.encodings)
    comparable, names = financial(columns, given.encodings)
    own = given.decisions.filter(pc.equal(given.decisions["decision_maker"], str(DecisionMaker.MODEL)))
    label = own["outcome"].to_numpy(zero_copy_only=False)
    favourable = own["favourable"].to_numpy(zero_copy_only=False)
    if model.rule is not None:
        return _of_rule(model.rule, columns, label, favourable, (comparable, names))
    models = [attributor(one, called(model), substitute) for one in stored(given.models, model).values()]
    inputs = inputs_of(columns, given.encodings, model.taken_as, encoded)
    if model.file is None:
        unseen = own["explained"].to_numpy(zero_copy_only=False)
        explainer, pools = explainers(own["fold"].to_numpy().astype(np.int32), unseen)
    else:
        explainer, pools = _everybody(len(label))
    return ModelView(
        x=inputs.x,
        feature_of_column=inputs.column,
        features=columns.names,
        label=label,
        financial=comparable,
        financial_names=names,
        explainer=explainer,
        models=tuple(models),
        pools=pools,
        cuts=(_cut(own["threshold"][0].as_py()),) * len(models),
        favourable=favourable if len(models) == 1 else None,
    )


def _of_rule(
    rule: Rule, columns: Columns, label: Bools, favourable: Bools, comparable: tuple[Floats, tuple[str, ...]]
) -> ModelView:
    """A rule is linear in what applicants handed in, and was learnt from nobody: everybody may be a match."""
    at = [columns.names.index(name) for name in rule.weights]
    explainer, pools = _everybody(len(label))
    return ModelView(
        x=columns.values[:, at],
        feature_of_column=np.arange(len(at), dtype=np.int32),
        features=tuple(rule.weights),
        label=label,
        financial=comparable[0],
        financial_names=comparable[1],
        explainer=explainer,
        models=(Linear(np.array(list(rule.weights.values())), -rule.limit),),
        pools=pools,
        favourable=favourable,
    )


def _cut(threshold: float) -> float:
    """The logit from which decisions are favourable, by a hair too low: the threshold is itself one of the scores."""
    cut = float(log_odds(np.array([threshold]))[0])
    return cut - 1e-9 * max(1.0, abs(cut))


def _everybody(n: int) -> tuple[Ints, tuple[Bools, ...]]:
    """One model that explains every row; it was not fitted here, and every row may be a match."""
    return np.zeros(n, np.int32), (np.ones(n, dtype=bool),)


def explainers(fold: Ints, unseen: Bools) -> tuple[Ints, tuple[Bools, ...]]:
    """Which fit explains each of ``(n,)`` rows, and for each fit the rows ``(n,)`` that it had learnt from.

    Args:
        fold: number of the fit that decided on each row.
        unseen: whether that fit had not seen it; after a holdout, those that it learnt from are told apart by this.
    """
    seen = ~unseen
    if seen.any():
        return np.where(seen, NOBODY, fold).astype(np.int32), (seen,)
    return fold, tuple(fold != number for number in range(int(fold.max()) + 1))


def financial(columns: Columns, encodings: pa.Table) -> tuple[Floats, tuple[str, ...]]:
    """The columns that make applicants comparable: numbers and ordered codes as they are, a column per category."""
    roles = dict(zip(encodings["feature"].to_pylist(), encodings["roles"].to_pylist(), strict=True))
    parts: list[Floats] = []
    names: list[str] = []
    for name, kind, known, values in zip(
        columns.names, columns.kinds, columns.categories, columns.values.T, strict=True
    ):
        if Role.FINANCIAL in roles[name].split(","):
            nominal = kind is Kind.NOMINAL
            parts += [values == code for code in range(len(known))] if nominal else [values]
            names += [f"{name}={category}" for category in known] if nominal else [name]
    if not names:
        message = "no column has the role `financial`; CEC matches applicants by what makes them comparable borrowers"
        raise SpecError(f"{message}: set role: financial for such columns", ("columns",))
    return np.column_stack(parts).astype(np.float64), tuple(names)
