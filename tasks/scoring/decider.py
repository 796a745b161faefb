"""Decides by a model, and explains it: inputs, fits and attributors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.model import Model, Rule, TakenAs
from schemas.errors import SpecError
from schemas.terms import DecisionMaker, Kind, Role
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import Differences, Linear, Module, Quadrature, log_odds, of_network
from tasks.numerics.encoding import Columns
from tasks.numerics.networks.network import Network
from tasks.numerics.problem import NOBODY, Attributor, ModelView, OpenModel, Refit
from tasks.pipeline.method import ProblemTables
from tasks.preprocessing.columns import columns_of, inputs_of
from tasks.scoring.model_reader.confined import stored
from tasks.scoring.models import LOG_ODDS, Apart, Readable, called, linear_form, named, probabilities

if TYPE_CHECKING:
    from tasks.scoring.fitting import Fit


# --------------------------------------------------------------------------------------------------------------------
# The model's decisions on counterfactual applicants: by the rule, or by the model that decided on the real row.
#
# Counterfactual and factual decisions are comparable only if the same model makes them. So nothing is fitted here: each
# counterfactual applicant is decided on by the stored model and threshold that decided on the real one.


Decide = Callable[[Columns, Longs], tuple[Bools, Floats]]
"""From imagined applicants, and the numbers of the real rows they were made from, to decisions and scores."""


def rule_scores(rule: Rule, columns: Columns) -> Floats:
    """The weighted sum of a rule, ``(n,)``, in the order in which its weights are listed."""
    terms = [weight * columns.values[:, columns.names.index(name)] for name, weight in rule.weights.items()]
    scores: Floats = np.sum(terms, axis=0)
    return scores if rule.decimals is None else np.round(scores, rule.decimals)


def passes(rule: Rule, scores: Floats) -> Bools:
    """Whether each sum makes the decision favourable."""
    return scores > rule.limit if rule.above else scores >= rule.limit


def decider(model: Model, models: pa.Table, encodings: pa.Table, decisions: pa.Table) -> Decide | None:
    """How the model decides again; None where the audit has none.

    Args:
        model: which model it is.
        models: those that the stage ``score`` left.
        encodings: how features were encoded for them.
        decisions: of all decision makers; the model's are in the order of the rows.

    Raises:
        IntegrityError: a stored model is not what the stage would have left.
    """
    if model.kind == "none":
        return None
    if model.rule is not None:
        return partial(_by_rule, model.rule)
    if not models.num_rows:  # the rows were too few to fit one
        return None
    model_decisions = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
    fold, threshold = model_decisions["fold"].to_numpy(), model_decisions["threshold"].to_numpy()
    return _StoredModels(stored(models, model), model.taken_as, encodings, fold, threshold)


def _by_rule(rule: Rule, columns: Columns, _: Longs) -> tuple[Bools, Floats]:
    scores = rule_scores(rule, columns)
    return passes(rule, scores), scores


@dataclass(frozen=True)
class _StoredModels:
    """Decides by stored models, each row by that of its fold and by its threshold."""

    models: dict[int, Readable]
    taken_as: TakenAs
    encodings: pa.Table
    fold: Longs
    threshold: Floats

    def __call__(self, columns: Columns, rows: Longs) -> tuple[Bools, Floats]:
        x, scores = inputs_of(columns, self.encodings, self.taken_as).x, np.empty(len(rows))
        for number, model in self.models.items():
            is_of_fold = self.fold[rows] == number
            if is_of_fold.any():
                scores[is_of_fold] = probabilities(model, x[is_of_fold])
        return scores >= self.threshold[rows], scores


# --------------------------------------------------------------------------------------------------------------------
# Attributors by kind of model: chooses how a model that was read is explained.
#
# Networks and linear models have a closed form or a gradient. Other classifiers are explained by the substitute if the
# spec permits it. Reading models: ``models``.


def attributor(model: Readable, name: str, substitute: bool = False) -> Attributor:
    """What makes the attributions of a model, by the best way that its kind allows.

    Args:
        model: A network, a module, or a classifier for the second of its classes; pipelines of StandardScalers that end
            in a logistic regression count as linear.
        name: How messages call it.
        substitute: Whether ``Differences`` may stand in where there is no gradient.

    Raises:
        SpecError: It has no gradient, and no substitute was chosen.
    """
    if isinstance(model, Network):
        return of_network(model)
    if isinstance(model, Module) or (isinstance(model, Apart) and model.facts.gradient):
        return Quadrature(model)
    if isinstance(model, Linear):
        return model
    linear = linear_form(model)
    if linear is not None:
        return linear
    kind = model.facts.kind if isinstance(model, Apart) else type(model).__name__
    if not substitute:
        message = f"{name} is a {kind}, which has no gradient to integrate; choose the substitute (path differences)"
        raise SpecError(f"{message} in the spec if that will do, or audit a network or a linear model")
    if isinstance(model, Apart):
        return Differences(model.logit if model.facts.log_odds else lambda x: log_odds(model.probability(x)))
    if kind in LOG_ODDS and model.loss == "log_loss":
        return Differences(lambda x: model.decision_function(named(model, x)))
    return Differences(lambda x: log_odds(probabilities(model, x)))


# --------------------------------------------------------------------------------------------------------------------
# Models that can be explained: their inputs, the fit that decided on each row, and its training rows.
#
# A lender's own decisions cannot be explained. Every row of a cross-fitted model is explained by the fit that had not
# seen it; after a holdout, only held-out rows are. Scope: from tables to ``ModelView``.


REFITTED = ("logistic_regression", "net")
"""Kinds of models that are fitted again on resampled rows."""


def look_into(tables: ProblemTables, encoded: Floats, maker: str, model: Model | None) -> OpenModel | None:
    """A function that opens the model for a method; None without a model that can be opened."""
    if maker != DecisionMaker.MODEL or model is None or model.kind == "none":
        return None
    return cache(partial(_explained, tables, encoded, model))  # one for the problems of all protected attributes


def refit(tables: ProblemTables, maker: str, model: Model | None, seed: int) -> Refit | None:
    """A function that fits the model again on resampled rows; None of other kinds than ``REFITTED``."""
    if maker != DecisionMaker.MODEL or model is None or model.kind not in REFITTED:
        return None
    from tasks.scoring.fitting import fit_of  # loads all that can be fitted

    lender = tables.decisions.filter(pc.equal(tables.decisions["decision_maker"], str(DecisionMaker.LENDER)))
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


def _explained(tables: ProblemTables, encoded: Floats, model: Model, substitute: bool) -> ModelView:
    """The rows as the model saw them.

    Raises:
        SpecError: No column is financial, or the model has no gradient and no substitute was chosen.
    """
    columns = columns_of(tables.applicants, tables.encodings)
    comparable, names = financial(columns, tables.encodings)
    maker_decisions = tables.decisions.filter(pc.equal(tables.decisions["decision_maker"], str(DecisionMaker.MODEL)))
    label = maker_decisions["outcome"].to_numpy(zero_copy_only=False)
    favourable = maker_decisions["favourable"].to_numpy(zero_copy_only=False)
    if model.rule is not None:
        return _of_rule(model.rule, columns, label, favourable, (comparable, names))
    models = [
        attributor(stored_model, called(model), substitute) for stored_model in stored(tables.models, model).values()
    ]
    inputs = inputs_of(columns, tables.encodings, model.taken_as, encoded)
    cut = float(log_odds(np.array([maker_decisions["threshold"][0].as_py()]))[0])
    cut -= 1e-9 * max(1.0, abs(cut))  # by a hair too low: the threshold is itself one of the scores
    if not model.is_given:
        unseen = maker_decisions["explained"].to_numpy(zero_copy_only=False)
        explainer, pools = explainers(maker_decisions["fold"].to_numpy().astype(np.int32), unseen)
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
        cuts=(cut,) * len(models),
        favourable=favourable if len(models) == 1 else None,
    )


def _of_rule(
    rule: Rule, columns: Columns, label: Bools, favourable: Bools, comparable: tuple[Floats, tuple[str, ...]]
) -> ModelView:
    """A rule is linear in what applicants handed in, and was not trained on any row: every row may be a match."""
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


def _everybody(n: int) -> tuple[Ints, tuple[Bools, ...]]:
    """One model that explains every row; it was not fitted here, and every row may be a match."""
    return np.zeros(n, np.int32), (np.ones(n, dtype=bool),)


def explainers(fold: Ints, unseen: Bools) -> tuple[Ints, tuple[Bools, ...]]:
    """Which fit explains each of ``(n,)`` rows, and for each fit the rows ``(n,)`` that it had learnt from.

    Args:
        fold: number of the fit that decided on each row.
        unseen: whether that fit had not seen it; after a holdout, those that it learnt from are told apart by this.
    """
    is_training = ~unseen
    if is_training.any():
        return np.where(is_training, NOBODY, fold).astype(np.int32), (is_training,)
    return fold, tuple(fold != number for number in range(int(fold.max()) + 1))


def financial(columns: Columns, encodings: pa.Table) -> tuple[Floats, tuple[str, ...]]:
    """The columns that make applicants comparable: numbers and ordered codes as they are, a column per category."""
    roles = dict(zip(encodings["feature"].to_pylist(), encodings["roles"].to_pylist(), strict=True))
    parts: list[Floats] = []
    names: list[str] = []
    for name, kind, categories, values in zip(
        columns.names, columns.kinds, columns.categories, columns.values.T, strict=True
    ):
        if Role.FINANCIAL in roles[name].split(","):
            nominal = kind is Kind.NOMINAL
            parts += [values == code for code in range(len(categories))] if nominal else [values]
            names += [f"{name}={category}" for category in categories] if nominal else [name]
    if not names:
        message = "no column has the role `financial`; CEC matches applicants by what makes them comparable borrowers"
        raise SpecError(f"{message}: set role: financial for such columns", ("columns",))
    return np.column_stack(parts).astype(np.float64), tuple(names)
