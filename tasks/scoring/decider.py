"""The model's decisions on counterfactual applicants: by the rule, or by the model that decided on the real row.

Counterfactual and factual decisions are comparable only if the same model makes them. So nothing is fitted here: each
counterfactual applicant is decided on by the stored model and threshold that decided on the real one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.model import Model, Rule, TakenAs
from schemas.terms import DecisionMaker
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.preprocessing.columns import inputs_of
from tasks.scoring.model_reader.stored import stored
from tasks.scoring.models import Readable, probabilities

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
    own = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
    own_models = _StoredModels(stored(models, model), model.taken_as, encodings)
    return partial(_by_models, own_models, own["fold"].to_numpy(), own["threshold"].to_numpy())


def _by_rule(rule: Rule, columns: Columns, _: Longs) -> tuple[Bools, Floats]:
    scores = rule_scores(rule, columns)
    return passes(rule, scores), scores


@dataclass(frozen=True)
class _StoredModels:
    """Models by fold, with the form of their inputs."""

    models: dict[int, Readable]
    taken_as: TakenAs
    encodings: pa.Table


def _by_models(
    known: _StoredModels, fold: Longs, threshold: Floats, columns: Columns, rows: Longs
) -> tuple[Bools, Floats]:
    x, scores = inputs_of(columns, known.encodings, known.taken_as).x, np.empty(len(rows))
    for number, model in known.models.items():
        mine = fold[rows] == number
        if mine.any():
            scores[mine] = probabilities(model, x[mine])
    return scores >= threshold[rows], scores
