"""Score: the lender's decisions as given and, where asked for, those of a model fitted to them here or of a given rule.

By default every row is scored by a model that has not seen it (k-fold cross-fitting), so that all rows can be
explained; the paper's single holdout scores all rows and lets only the held-out ones be explained.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from schemas.applications import (
    APPLICANTS,
    APPLICATIONS,
    DECISIONS,
    ENCODINGS,
    FEATURES,
    MEMBERSHIPS,
    MODEL_METRICS,
    MODELS,
)
from schemas.errors import DataQualityError
from schemas.settings import Model, Rule, StageSettings
from schemas.terms import DecisionMaker
from tasks._columns import columns_of
from tasks._deciding import passes, rule_scores
from tasks._models import kept
from tasks._stage import Produced, stage
from tasks.algorithms.columns import Columns

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class ScoreSettings(StageSettings):
    """What decides the scores."""

    model: Model
    seed: int


@stage(reads=(FEATURES, APPLICATIONS, APPLICANTS, ENCODINGS, MEMBERSHIPS), writes=(DECISIONS, MODEL_METRICS, MODELS))
def score(
    features: pa.Table,
    applications: pa.Table,
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    *,
    settings: ScoreSettings,
) -> Produced:
    """One decision per application and decision maker, the model's metrics by group, and the model itself.

    Raises:
        DataQualityError: too few decisions of one kind to fit the model.
    """
    frame = (
        features.select(["row_id"])
        .to_pandas()
        .merge(applications.select(["row_id", "favourable", "outcome"]).to_pandas(), on="row_id", validate="one_to_one")
    )
    ids, y, outcome = frame["row_id"].to_numpy(), frame["favourable"].to_numpy(), frame["outcome"].to_numpy()
    n, model = len(frame), settings.model
    lender = _decisions(ids, DecisionMaker.LENDER, outcome, Scored.unscored(y))
    if model.kind == "none":
        tables = {DECISIONS.name: lender, MODEL_METRICS.name: MODEL_METRICS.empty(), MODELS.name: MODELS.empty()}
        return Produced(tables, rows_in=n)
    x = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    scored = _fitted(x, y, settings) if model.rule is None else _ruled(model.rule, columns_of(applicants, encodings))
    groups = memberships.to_pandas().merge(frame[["row_id"]].assign(at=np.arange(n)), on="row_id")
    return Produced(
        {
            DECISIONS.name: pa.concat_tables([lender, _decisions(ids, DecisionMaker.MODEL, outcome, scored)]),
            MODEL_METRICS.name: _metrics(groups, y, scored),
            MODELS.name: MODELS.build(fold=range(len(scored.models)), content=[kept(m) for m in scored.models]),
        },
        rows_in=2 * n,
    )


@dataclass(frozen=True)
class Scored:
    """What one decision maker decided, and on what ground. All arrays are ``(n,)``."""

    favourable: Bools
    ranks: Floats
    """What orders the rows from the least favoured to the most; NaN where nothing is known of that."""
    scores: Floats
    """Predicted probability of the favourable decision, NaN where there is none."""
    threshold: float
    explained: Bools
    fold: NDArray[np.int32] | None = None
    """Number of the model that decided."""
    models: tuple[ClassifierMixin, ...] = ()

    @classmethod
    def unscored(cls, favourable: Bools, ranks: Floats | None = None) -> "Scored":
        """Decisions that no probability stands behind."""
        none = np.full(len(favourable), np.nan)
        every = np.ones(len(favourable), dtype=bool)
        return cls(favourable, none if ranks is None else ranks, none, np.nan, every)


def _ruled(rule: Rule, columns: Columns) -> Scored:
    sums = rule_scores(rule, columns)
    return Scored.unscored(passes(rule, sums), sums)


def _estimator(settings: ScoreSettings) -> ClassifierMixin:
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: LogisticRegression(max_iter=1000, random_state=settings.seed),
        "random_forest": lambda: RandomForestClassifier(
            n_estimators=200, min_samples_leaf=5, random_state=settings.seed
        ),
        "gradient_boosting": lambda: HistGradientBoostingClassifier(random_state=settings.seed),
    }
    return kinds[settings.model.kind]()


def _fitted(x: Floats, y: Bools, settings: ScoreSettings) -> Scored:
    """Decisions of a model that had not seen the rows which may be explained."""
    needed = settings.model.folds if settings.model.split == "crossfit" else 4
    fewest = int(min(y.sum(), (~y).sum()))
    if fewest < needed:
        raise DataQualityError(
            f"the rarer decision occurs {fewest} times among {len(y)} complete rows; fitting a model needs {needed}: "
            "set model.kind: none to audit the lender's decisions alone, or model.folds lower"
        )
    estimator = _estimator(settings)
    if settings.model.split == "holdout":
        train, test = train_test_split(np.arange(len(y)), test_size=settings.model.holdout, random_state=settings.seed)
        explained, fold = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=np.int32)
        explained[test] = True
        model = estimator.fit(x[train], y[train])
        scores = model.predict_proba(x)[:, 1]
        threshold = _threshold(scores[train], y[train], settings.model)
        return Scored(scores >= threshold, scores, scores, threshold, explained, fold, (model,))
    scores, fold, models = np.empty(len(y)), np.empty(len(y), dtype=np.int32), []
    folds = StratifiedKFold(settings.model.folds, shuffle=True, random_state=settings.seed)
    for number, (train, test) in enumerate(folds.split(x, y)):
        models.append(clone(estimator).fit(x[train], y[train]))
        scores[test], fold[test] = models[-1].predict_proba(x[test])[:, 1], number
    threshold = _threshold(scores, y, settings.model)
    return Scored(scores >= threshold, scores, scores, threshold, np.ones(len(y), dtype=bool), fold, tuple(models))


def _threshold(scores: Floats, y: Bools, model: Model) -> float:
    """The score from which a decision is favourable: as given, or such that predicted and observed denials agree."""
    if model.threshold != "rate_matched":
        return float(model.threshold)
    denied = int((~y).sum())
    ranked = np.sort(scores)
    return float(ranked[min(denied, len(ranked) - 1)])


def _decisions(ids: Any, maker: DecisionMaker, outcome: Bools, scored: Scored) -> pa.Table:
    n = len(ids)
    return DECISIONS.build(
        row_id=ids,
        decision_maker=[maker.value] * n,
        favourable=scored.favourable,
        outcome=outcome,
        score=scored.scores,
        threshold=np.full(n, scored.threshold),
        explained=scored.explained,
        fold=[None] * n if scored.fold is None else scored.fold,
    )


def _metrics(groups: Any, y: Bools, scored: Scored) -> pa.Table:
    """Metrics of the model against the lender's decisions, on the rows that it had not seen, by group."""
    rows: dict[str, list[Any]] = {c.name: [] for c in MODEL_METRICS.columns}
    for (attribute, group), members in groups.groupby(["protected_attribute", "group"]):
        at = members["at"].to_numpy()
        at = at[scored.explained[at]]
        for metric, value in _of_group(y[at], scored.favourable[at], scored.ranks[at]).items():
            for name, cell in zip(rows, (attribute, group, metric, value, len(at)), strict=True):
                rows[name].append(cell)
    return MODEL_METRICS.build(**rows)


def _of_group(y: Bools, predicted: Bools, ranks: Floats) -> dict[str, float | None]:
    if len(y) == 0:
        return {}
    tn, fp, fn, tp = confusion_matrix(y, predicted, labels=[False, True]).ravel()
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "auc": float(roc_auc_score(y, ranks)) if 0 < y.sum() < len(y) else None,
        "predicted_denial_rate": float((~predicted).mean()),
        "true_positive_rate": float(tp / (tp + fn)) if tp + fn else None,
        "false_positive_rate": float(fp / (fp + tn)) if fp + tn else None,
    }
