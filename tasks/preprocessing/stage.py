"""Stage preprocess: encodes applications; refuses rows with a missing covariate, or imputes them on request.

Rows are encoded here once. The table ``encodings`` records the meaning of each encoded column, for decoding.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.model import Leakage
from schemas.audit.partition import Growth
from schemas.audit.source import KeptRefusals
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import DataQualityError, SpecError, nearest
from schemas.table import Column
from schemas.tables.applications import (
    ANY,
    APPLICANTS,
    APPLICATIONS,
    DECISION_DIRECTION,
    ENCODINGS,
    FEATURES,
    LEAKAGE,
    MEMBERSHIPS,
    MISSINGNESS,
    REFUSALS,
)
from schemas.tables.readings import COPIED_ROWS, COPIES
from schemas.terms import Kind, Refusal
from tasks.numerics import encoding
from tasks.numerics.arrays import Bools, Longs
from tasks.pipeline.stage import Keeping, Produced, stage
from tasks.preprocessing import algorithm, checks
from tasks.preprocessing.columns import cells_of, columns_of, encoded_features, groups_of

if TYPE_CHECKING:
    import pandas as pd

IMPUTED = "(missing)"
"""The level of a nominal column that stands for a missing value, where those are imputed."""


class PreprocessSettings(StageSettings):
    """Settings of the features."""

    memory: ClassVar[Growth] = Growth(100, 1.4)

    columns: dict[str, ColumnSpec]
    missing: Literal["exclude", "impute"]
    directions: dict[str, int]
    codes_decide: bool
    refusals: KeptRefusals
    leakage: Leakage
    protected: tuple[Protected, ...]
    copies: Literal["once", "keep"]
    """Whether one of several equal rows is audited, or all are."""
    fitted: bool
    """Whether a model is fitted to the decisions, which a column known only after them would tell it."""
    seed: int


WRITTEN = (FEATURES, APPLICANTS, ENCODINGS, MISSINGNESS, DECISION_DIRECTION, LEAKAGE, COPIES, COPIED_ROWS)


@stage(reads=(APPLICATIONS, MEMBERSHIPS), writes=WRITTEN)
def preprocess(applications: pa.Table, memberships: pa.Table, *, settings: PreprocessSettings) -> Produced:
    """Features in [0, 1], their encodings, and whether missing values predict the decision.

    Raises:
        DataQualityError: no complete row is left, a binary column has more than two values, or a column alone tells the
            decision that a model is fitted to.
    """
    features = {n: c for n, c in settings.columns.items() if c.used}
    copied, copies = _copied(applications, memberships, settings)
    once = applications.filter(pa.array(~copied)) if copied.any() else applications
    frame = once.select(["favourable", "exempt", *features]).to_pandas()  # its index: places in ``once``
    refusals, lacking = REFUSALS.empty(), _lacking(frame, list(features))
    looked_at = features if settings.fitted else {}
    leaks = checks.check_leakage(frame, looked_at, settings.leakage.allow)
    right_way = checks.check(frame, features, None if settings.codes_decide else settings.directions)
    if settings.missing == "exclude":
        frame, refusals = _complete(once, frame, list(features))
    else:
        for name, column in features.items():
            frame[name] = _imputed(frame[name], column)
    rows = [
        {"feature": name, "feature_index": index, **row}
        for index, (name, column) in enumerate(features.items())
        for row in _encoders(frame[name], name, column)
    ]
    encodings = ENCODINGS.build(**{c.name: [row.get(c.name) for row in rows] for c in ENCODINGS.columns})
    values = pa.Table.from_pandas(frame[list(features)], applications.select(list(features)).schema)
    row_ids = once["row_id"] if len(frame) == once.num_rows else once["row_id"].take(pa.array(frame.index))
    del frame
    schema = applications.select(["row_id", *features]).schema
    applicants = pa.table([row_ids, *values.columns], schema=schema)  # rows are kept where there is no feature
    names = [row["encoded"] for row in rows]
    columns = encoded_features(columns_of(applicants, encodings), encodings)
    arrays = [pa.array(column) for feature in columns for column in (feature.T if feature.ndim > 1 else (feature,))]
    tables = {
        FEATURES.name: pa.table([row_ids, *arrays], names=["row_id", *names]),
        APPLICANTS.name: applicants.replace_schema_metadata(),
        ENCODINGS.name: encodings,
        MISSINGNESS.name: lacking,
        DECISION_DIRECTION.name: right_way,
        LEAKAGE.name: leaks,
    }
    declared = {
        FEATURES.name: FEATURES.extended(Column(n, "double", "encoded feature", False, 0.0, 1.0) for n in names),
        APPLICANTS.name: APPLICANTS.extended(
            Column(n, "double" if c.type is Kind.CONTINUOUS else "string", c.label) for n, c in features.items()
        ),
    }
    copied_rows = applications.filter(pa.array(copied))
    tables |= {COPIES.name: copies, COPIED_ROWS.name: copied_rows.select(["row_id"])}
    refusals = pa.concat_tables([refusals, _refused_copies(copied_rows)])
    keeping = Keeping(settings.refusals.keep, settings.seed, memberships, failed=True)
    return Produced(tables, refusals, declared=declared, keeping=keeping)


def _copied(applications: pa.Table, memberships: pa.Table, settings: PreprocessSettings) -> tuple[Bools, pa.Table]:
    """Applications that are left out as copies, ``(n,)``, and the row of the table of copies."""
    ids = applications["row_id"].to_numpy()
    groups = [of.group for of in groups_of(memberships, ids, settings.protected).values()]
    result = algorithm.copies(cells_of(applications, groups))
    left_out = result.beyond_chance and settings.copies == "once"
    row = COPIES.build(
        rows=[len(ids)],
        sets=[result.sets],
        copied=[int(result.later.sum())],
        expected=[result.expected],
        beyond_chance=[result.beyond_chance],
        left_out=[left_out],
    )
    return result.later & left_out, row


def _refused_copies(rows: pa.Table) -> pa.Table:
    """Refusals of the copies."""
    n = rows.num_rows
    return REFUSALS.build(
        row_id=rows["row_id"],
        source_row=rows["source_row"],
        stage=["preprocess"] * n,
        reason=[Refusal.COPIED_ROW] * n,
        column=[None] * n,
        detail=[None] * n,
        favourable=rows["favourable"],
        weight=np.ones(n),
    )


def _lacking(frame: "pd.DataFrame", names: list[str]) -> pa.Table:
    """Missing values and decisions: a row for every feature and reason, and one for any of them."""
    gone, exempt = frame[names].isna().to_numpy(dtype=bool), frame["exempt"].notna().to_numpy()
    favourable = frame["favourable"].to_numpy(dtype=bool)
    flags = algorithm.by_reason(gone, exempt)
    named = _named(frame, names) + exempt * len(names)
    result = algorithm.lacking(np.column_stack([flags, gone.any(axis=1)]), favourable, named)
    have = ~np.column_stack([gone, gone, gone.any(axis=1)])
    reasons = [*[Refusal.MISSING_COVARIATE] * len(names), *[Refusal.EXEMPT_COVARIATE] * len(names), ANY]
    table = MISSINGNESS.build(
        feature=[*names, *names, ANY],
        reason=reasons,
        missing=result.flagged,
        favourable_missing=result.favourable,
        present=have.sum(axis=0),
        favourable_present=(have & favourable[:, None]).sum(axis=0),
        elsewhere=result.elsewhere,
        favourable_elsewhere=result.favourable_elsewhere,
        auc=[*(None for _ in flags.T), algorithm.auc_of_missingness(flags, favourable)],
    )
    return table.filter(np.append(result.flagged[:-1] > 0, True))


def _named(frame: "pd.DataFrame", names: list[str]) -> Longs:
    """``(n,)`` number of the column that the refusal of each row names: the exempt one, else the first missing one."""
    import pandas as pd

    if frame.empty or not names:
        return np.zeros(len(frame), np.int64)
    first: Longs = frame[names].isna().to_numpy().argmax(axis=1)
    codes, exempt = pd.factorize(frame["exempt"])
    places = np.array([*(names.index(name) for name in exempt), -1], np.int64)[codes]
    return np.where(places < 0, first, places)


def _complete(once: pa.Table, frame: "pd.DataFrame", names: list[str]) -> "tuple[pd.DataFrame, pa.Table]":
    """Complete rows, and refusals of the others: exempt where the spec's texts declare it, else missing.

    Args:
        once: the applications.
        frame: their features, decision and exemption.
        names: of the features.

    Raises:
        DataQualityError: no row is complete.
    """
    complete = frame[names].notna().all(axis=1)
    if not complete.any():
        missing = frame[names].isna().sum().sort_values(ascending=False, kind="stable")
        worst = "; ".join(
            f"{name} is missing in {'all ' * (n == len(frame))}{n}" for name, n in missing.head(3).items() if n
        )
        raise DataQualityError(
            f"no application has all features ({worst}); exclude such a column, or have it filled in with missing: "
            "impute"
        )
    refused = frame[~complete]
    of_refused = once.select(["row_id", "source_row"]).take(pa.array(refused.index))
    refusals = REFUSALS.build(
        row_id=of_refused["row_id"],
        source_row=of_refused["source_row"],
        stage=["preprocess"] * len(refused),
        reason=[
            Refusal.EXEMPT_COVARIATE if exempt else Refusal.MISSING_COVARIATE for exempt in refused["exempt"].notna()
        ],
        column=[names[place] for place in _named(refused, names)],
        detail=[None] * len(refused),
        favourable=refused["favourable"],
        weight=np.ones(len(refused)),
    )
    return frame if complete.all() else frame[complete], refusals


def _imputed(values: "pd.Series", column: ColumnSpec) -> "pd.Series":
    """Median of numbers and ordered categories, an extra level elsewhere. A labelled sensitivity run only."""
    if not values.isna().any():
        return values
    if values.isna().all():
        raise DataQualityError(
            f"column {values.name!r} has no value at all to impute from; exclude it (role: excluded)"
        )
    if column.type is Kind.CONTINUOUS:
        return values.fillna(values.median())
    if column.order:
        codes = encoding.category_codes(list(values.dropna()), column.order)
        return values.fillna(column.order[int(np.median(codes))])
    return values.fillna(values.mode()[0] if column.type is Kind.BINARY else IMPUTED)


def _encoders(values: "pd.Series", name: str, column: ColumnSpec) -> Iterator[dict[str, Any]]:
    """A row of ``encodings`` for each encoded column that a source column becomes."""
    low, high = column.plausible
    below = 0 if low is None else int((values < low).sum())
    implausible = below + (0 if high is None else int((values > high).sum()))
    row: dict[str, Any] = {
        "encoded": name,
        "kind": column.type,
        "roles": ",".join(column.role),
        "constraint": column.constraint,
        "clipped": 0,
        "implausible": implausible,
        "transitions": json.dumps({k: list(v) for k, v in column.transitions.items()}) if column.transitions else None,
    }
    if column.type is Kind.CONTINUOUS:
        numbers = values.to_numpy(dtype=float)
        scale = encoding.fit_scale(numbers, clip=column.clip, bins=column.bins)
        outside = int(((numbers < scale.low) | (numbers > scale.high)).sum())
        yield row | {"low": scale.low, "high": scale.high, "bins": scale.bins, "clipped": outside}
        return
    categories = list(column.order) or sorted(values.unique())
    # A misspelt category would silently lift a constraint.
    for start, ends in column.transitions.items():
        for category in (start, *ends):
            if category not in categories:
                where = ("columns", name, "transitions", start)
                raise SpecError(f"no category {category!r} in {name!r}; {nearest(category, categories)}", where)
    if column.type is Kind.BINARY and len(categories) > 2:
        raise DataQualityError(
            f"column {name!r} is declared binary and has {len(categories)} values {categories[:5]}; "
            "declare it nominal or ordinal"
        )
    row["categories"] = json.dumps(categories)
    if column.type is Kind.NOMINAL:
        yield from ({**row, "encoded": f"{name}={category}", "category": category} for category in categories)
        return
    yield row


def preprocess_settings(spec: AuditSpec) -> PreprocessSettings:
    """The stage's settings."""
    fitted = (
        spec.audited_model.kind not in ("none", "rule", "file", "object") or bool(spec.compare) or spec.methods.train()
    )
    derived = {"directions": spec.directions(), "codes_decide": spec.codes_decide, "fitted": fitted}
    return PreprocessSettings.of(spec, **derived, copies=spec.verdicts.copies)
