"""Stage score: the lender's decisions as recorded and, if the spec requests it, those of a model.

Scope: the tables, and the check that a model file is the one of the stage's key. Fits, scores and decisions:
``decision_makers``.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.model import Model
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import InfrastructureError, TooFewError
from schemas.tables.applications import (
    APPLICANTS,
    APPLICATIONS,
    DECISIONS,
    ENCODINGS,
    EXCHANGED_DECISIONS,
    EXCHANGES,
    FEATURES,
    MEMBERSHIPS,
    MODEL_METRICS,
    MODEL_REFITS,
    MODELS,
)
from schemas.terms import DecisionMaker
from tasks.ingest.sources.raw import check_regular
from tasks.lake.store import sha256_of
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.encoding import Places
from tasks.pipeline.stage import Produced, stage
from tasks.preprocessing.columns import codes_of, columns_of, groups_of

if TYPE_CHECKING:
    from tasks.scoring.decision_makers import Scored
    from tasks.scoring.fitting import Refits


Coded = Mapping[str, tuple[Ints, tuple[str, ...]]]
"""By protected attribute the number of each row's group ``(n,)``, and the names of groups."""


class ScoreSettings(StageSettings):
    """Settings of the scores; a model file counts by its digest."""

    memory: ClassVar[Growth] = Growth(155, 5)

    model: Model
    model_sha256: str | None
    seed: int
    protected: tuple[Protected, ...]
    """For a given model, whose attributes are exchanged; none for one that is fitted here."""


def score_settings(spec: AuditSpec) -> ScoreSettings:
    """The stage's settings, with the digest of a given model as it is now.

    Raises:
        InfrastructureError: the file is not there.
    """
    model_file = spec.model.file
    sha256 = None if model_file is None else sha256_of(_located(model_file.path))
    return ScoreSettings.of(
        spec,
        model=spec.audited_model,
        model_sha256=sha256,
        protected=spec.protected if spec.model.is_given else (),
    )


@stage(
    reads=(FEATURES, APPLICATIONS, APPLICANTS, ENCODINGS, MEMBERSHIPS),
    writes=(DECISIONS, MODEL_METRICS, MODELS, MODEL_REFITS, EXCHANGES, EXCHANGED_DECISIONS),
)
def score(
    features: pa.Table,
    applications: pa.Table,
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    *,
    settings: ScoreSettings,
) -> Produced:
    """One decision per application and decision maker, the model's metrics by group, the model itself and its refits.

    A given model decides again with each protected attribute exchanged that it takes as an input. Without a model, and
    where complete rows are too few to fit one, the decisions are those of the lender alone.

    Raises:
        SpecError: the file is no model that is read here, or does not fit the columns.
        InfrastructureError: the file is not there, or changed since the audit was planned.
    """
    ids = features["row_id"].combine_chunks()
    at = pc.index_in(ids, applications["row_id"].combine_chunks())
    y, outcome = (
        applications[name].combine_chunks().take(at).to_numpy(zero_copy_only=False)
        for name in ("favourable", "outcome")
    )
    n, model = len(ids), settings.model
    from tasks.scoring import decision_makers, fitting  # these load what fits models

    lender = _decisions(ids, DecisionMaker.LENDER, outcome, decision_makers.Scored.unscored(y))
    alone = Produced({**{table.name: table.empty() for table in score.writes}, DECISIONS.name: lender}, rows_in=n)
    if model.kind == "none":
        return alone
    refitted = None
    if model.rule is not None:
        scored = decision_makers.ruled(model.rule, columns_of(applicants, encodings))
    elif model.kind == "object":
        scored = decision_makers.answered(columns_of(applicants, encodings), encodings, y, model)
    elif model.file is not None:
        content = _located(model.file.path).read_bytes()
        if hashlib.sha256(content).hexdigest() != settings.model_sha256:
            path = model.file.path
            raise InfrastructureError(f"{path} changed while the audit ran; run it again once it is at rest")
        scored = decision_makers.given(content, columns_of(applicants, encodings), encodings, y, model)
    else:
        names = features.column_names[1:]
        x = np.column_stack([features[name].to_numpy() for name in names])
        places = fitting.distinct(model, x)
        try:
            scored = decision_makers.fitted(x, y, model, settings.seed, names, places)
        except TooFewError:  # the summary of the run says so
            return alone
        refitted = fitting.refits(x, y, scored.explained, model, model.refits, settings.seed, places)
    attributes = sorted(pc.unique(memberships["protected_attribute"]).to_pylist())
    coded = dict(zip(attributes, codes_of(memberships, ids, attributes), strict=True))
    decisions = pa.concat_tables([lender, _decisions(ids, DecisionMaker.MODEL, outcome, scored)])
    models = MODELS.build(fold=range(len(scored.models)), content=scored.models)
    exchanged = _exchanged((applicants, encodings, memberships), models, decisions, settings)
    return Produced(
        {
            DECISIONS.name: decisions,
            MODEL_METRICS.name: _metrics(coded, y, scored),
            MODELS.name: models,
            MODEL_REFITS.name: MODEL_REFITS.empty() if refitted is None else _refits(coded, refitted, x, places),
            **exchanged,
        },
        rows_in=2 * n,
    )


def _located(path: str) -> Path:
    check_regular(Path(path), ("model", "file", "path"))
    if not Path(path).is_file():
        here = "" if Path(path).is_absolute() else f" (from {Path.cwd()})"
        raise InfrastructureError(
            f"no file at model.file.path {path!r}{here}; "
            "give the right one in the spec or with --set model.file.path=FILE"
        )
    return Path(path)


def _decisions(ids: pa.Array, maker: DecisionMaker, outcome: Bools, scored: "Scored") -> pa.Table:
    n = len(ids)
    return DECISIONS.build(
        row_id=ids,
        decision_maker=pa.repeat(maker.value, n),
        favourable=scored.favourable,
        outcome=outcome,
        score=scored.scores,
        threshold=np.full(n, scored.threshold),
        explained=scored.explained,
        fold=pa.nulls(n) if scored.fold is None else scored.fold,
    )


def _exchanged(
    of: tuple[pa.Table, pa.Table, pa.Table], models: pa.Table, decisions: pa.Table, settings: ScoreSettings
) -> dict[str, pa.Table]:
    """Decisions of a given model with each protected attribute exchanged that it takes; none of a fitted one."""
    from tasks.scoring.decider import decider
    from tasks.scoring.decision_makers import exchanges

    (applicants, encodings, memberships), model = of, settings.model
    decide = decider(model, models, encodings, decisions) if model.is_given else None
    if decide is None:
        return {EXCHANGES.name: EXCHANGES.empty(), EXCHANGED_DECISIONS.name: EXCHANGED_DECISIONS.empty()}
    ids = applicants["row_id"].to_numpy()
    groups = groups_of(memberships, ids, settings.protected)
    exchange_results = list(exchanges(columns_of(applicants, encodings), groups, settings.protected, model, decide))
    completed_exchanges = [
        (result.attribute, result.favourable) for result in exchange_results if result.favourable is not None
    ]
    table_columns = {
        name: [getattr(result, name) for result in exchange_results] for name in ("column", "value", "reason")
    }
    tables = [
        EXCHANGED_DECISIONS.build(row_id=ids, protected_attribute=[name] * len(ids), favourable=favourable)
        for name, favourable in completed_exchanges
    ]
    return {
        EXCHANGES.name: EXCHANGES.build(
            protected_attribute=[result.attribute for result in exchange_results], **table_columns
        ),
        EXCHANGED_DECISIONS.name: pa.concat_tables([EXCHANGED_DECISIONS.empty(), *tables]),
    }


def _metrics(coded: Coded, y: Bools, scored: "Scored") -> pa.Table:
    """Metrics of the model against the lender's decisions, on the rows that it had not seen, by group."""
    from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score  # with them comes scipy

    rows: dict[str, list[Any]] = {c.name: [] for c in MODEL_METRICS.columns}
    for attribute, (codes, groups) in coded.items():
        for number, group in enumerate(groups):
            at = np.flatnonzero((codes == number) & scored.explained)
            if len(at) == 0:
                continue
            observed, predicted = y[at], scored.favourable[at]
            tn, fp, fn, tp = confusion_matrix(observed, predicted, labels=[False, True]).ravel()
            metrics = {
                "accuracy": float(accuracy_score(observed, predicted)),
                "auc": float(roc_auc_score(observed, scored.ranks[at])) if 0 < observed.sum() < len(at) else None,
                "predicted_denial_rate": float((~predicted).mean()),
                "true_positive_rate": float(tp / (tp + fn)) if tp + fn else None,
                "false_positive_rate": float(fp / (fp + tn)) if fp + tn else None,
            }
            for metric, value in metrics.items():
                for name, cell in zip(rows, (attribute, group, metric, value, len(at)), strict=True):
                    rows[name].append(cell)
    return MODEL_METRICS.build(**rows)


def _refits(coded: Coded, refitted: "Refits", x: Floats, places: Places | None) -> pa.Table:
    """Rows and approvals of each resample by group, of the model that was fitted to the resample."""
    draws = len(refitted.cut)
    tallies = refitted.tallies(x, [(codes, len(groups)) for codes, groups in coded.values()], places)
    names = [(attribute, group) for attribute, (_, groups) in coded.items() for group in groups]
    tables = [
        MODEL_REFITS.build(
            refit=np.arange(draws, dtype=np.int32),
            protected_attribute=[attribute] * draws,
            group=[group] * draws,
            n=n,
            approved=approved,
        )
        for (attribute, group), n, approved in zip(names, *tallies, strict=True)
    ]
    return pa.concat_tables([MODEL_REFITS.empty(), *tables])
