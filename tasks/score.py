"""Score: the lender's decisions as given and, where asked for, those of a model of them fitted here.

By default every row is scored by a model that has not seen it (k-fold cross-fitting), so that all rows can be
explained; the paper's single holdout scores all rows and lets only the held-out ones be explained.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from schemas.applications import APPLICATIONS, DECISIONS, FEATURES, MEMBERSHIPS, MODEL_METRICS
from schemas.errors import DataQualityError
from schemas.settings import Model, StageSettings
from schemas.terms import DecisionMaker
from tasks._stage import Produced, stage

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class ScoreSettings(StageSettings):
    """What decides the scores."""

    model: Model
    seed: int


@stage(reads=(FEATURES, APPLICATIONS, MEMBERSHIPS), writes=(DECISIONS, MODEL_METRICS))
def score(features: pa.Table, applications: pa.Table, memberships: pa.Table, *, settings: ScoreSettings) -> Produced:
    """One decision per application and decision maker, and the model's metrics by group.

    Raises:
        DataQualityError: too few decisions of one kind to fit the model.
    """
    frame = (
        features.select(["row_id"])
        .to_pandas()
        .merge(applications.select(["row_id", "favourable", "outcome"]).to_pandas(), on="row_id", validate="one_to_one")
    )
    x = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    ids, y, outcome = frame["row_id"].to_numpy(), frame["favourable"].to_numpy(), frame["outcome"].to_numpy()
    n, none = len(frame), np.full(len(frame), np.nan)
    lender = _decisions(ids, DecisionMaker.LENDER, y, outcome, none, none, np.ones(n, dtype=bool))
    if settings.model.kind == "none":
        return Produced({DECISIONS.name: lender, MODEL_METRICS.name: MODEL_METRICS.empty()}, rows_in=n)
    scores, threshold, explained, model = _scored(x, y, settings)
    predicted = scores >= threshold
    model_rows = _decisions(ids, DecisionMaker.MODEL, predicted, outcome, scores, np.full(n, threshold), explained)
    groups = memberships.to_pandas().merge(frame[["row_id"]].assign(at=np.arange(n)), on="row_id")
    return Produced(
        {
            DECISIONS.name: pa.concat_tables([lender, model_rows]),
            MODEL_METRICS.name: _metrics(groups, y, predicted, scores, explained),
        },
        rows_in=2 * n,
        files={"model.skops": _stored(model)},
    )


def _stored(model: ClassifierMixin) -> bytes:
    """The model in a format that runs no code when it is read."""
    import skops.io  # seconds to import, and only a fit needs it

    content: bytes = skops.io.dumps(model)
    return content


def _estimator(settings: ScoreSettings) -> ClassifierMixin:
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: LogisticRegression(max_iter=1000, random_state=settings.seed),
        "random_forest": lambda: RandomForestClassifier(
            n_estimators=200, min_samples_leaf=5, random_state=settings.seed
        ),
        "gradient_boosting": lambda: HistGradientBoostingClassifier(random_state=settings.seed),
    }
    return kinds[settings.model.kind]()


def _scored(x: Floats, y: Bools, settings: ScoreSettings) -> tuple[Floats, float, Bools, ClassifierMixin]:
    """Scores ``(n,)``, threshold, which rows may be explained, and the model fitted last (on all training rows)."""
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
        explained = np.zeros(len(y), dtype=bool)
        explained[test] = True
        model = estimator.fit(x[train], y[train])
        scores = model.predict_proba(x)[:, 1]
        return scores, _threshold(scores[train], y[train], settings.model), explained, model
    scores = np.empty(len(y))
    folds = StratifiedKFold(settings.model.folds, shuffle=True, random_state=settings.seed)
    for train, test in folds.split(x, y):
        scores[test] = clone(estimator).fit(x[train], y[train]).predict_proba(x[test])[:, 1]
    return scores, _threshold(scores, y, settings.model), np.ones(len(y), dtype=bool), estimator.fit(x, y)


def _threshold(scores: Floats, y: Bools, model: Model) -> float:
    """The score from which a decision is favourable: as given, or such that predicted and observed denials agree."""
    if model.threshold != "rate_matched":
        return float(model.threshold)
    denied = int((~y).sum())
    ranked = np.sort(scores)
    return float(ranked[min(denied, len(ranked) - 1)])


def _decisions(
    ids: Any,
    maker: DecisionMaker,
    favourable: Bools,
    outcome: Bools,
    scores: Floats,
    threshold: Floats,
    explained: Bools,
) -> pa.Table:
    return DECISIONS.build(
        row_id=ids,
        decision_maker=[maker.value] * len(ids),
        favourable=favourable,
        outcome=outcome,
        score=scores,
        threshold=threshold,
        explained=explained,
    )


def _metrics(groups: Any, y: Bools, predicted: Bools, scores: Floats, explained: Bools) -> pa.Table:
    """Metrics of the model against the lender's decisions, on the rows that it had not seen, by group."""
    rows: dict[str, list[Any]] = {c.name: [] for c in MODEL_METRICS.columns}
    for (attribute, group), members in groups.groupby(["protected_attribute", "group"]):
        at = members["at"].to_numpy()
        at = at[explained[at]]
        for metric, value in _of_group(y[at], predicted[at], scores[at]).items():
            for name, cell in zip(rows, (attribute, group, metric, value, len(at)), strict=True):
                rows[name].append(cell)
    return MODEL_METRICS.build(**rows)


def _of_group(y: Bools, predicted: Bools, scores: Floats) -> dict[str, float | None]:
    if len(y) == 0:
        return {}
    tn, fp, fn, tp = confusion_matrix(y, predicted, labels=[False, True]).ravel()
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "auc": float(roc_auc_score(y, scores)) if 0 < y.sum() < len(y) else None,
        "predicted_denial_rate": float((~predicted).mean()),
        "true_positive_rate": float(tp / (tp + fn)) if tp + fn else None,
        "false_positive_rate": float(fp / (fp + tn)) if fp + tn else None,
    }
