"""What ingest gives, by the pandas form that it had: the meaning of its SQL, against which tests hold it.

Every cell is a Python object here, so it is for small tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Keep, Source
from schemas.audit.spec import Decision, Protected
from schemas.bounds import canonical
from schemas.errors import DataQualityError, InfrastructureError, SpecError, TooFewError, nearest
from schemas.table import Column
from schemas.tables.applications import (
    APPLICATIONS,
    INTAKE_CELLS,
    INTAKE_RULES,
    MEMBERSHIPS,
    REFUSALS,
    SOURCE_READ,
)
from schemas.tables.counterfactuals import COUNTERFACTUALS
from schemas.tables.readings import UNDECIDED
from schemas.terms import Kind, Refusal
from tasks.ingest import registry
from tasks.ingest.sources import raw
from tasks.ingest.sources.raw import Unread
from tasks.ingest.stage import IngestSettings
from tasks.ingest.statement import REASONS_UNDECIDED
from tasks.pipeline.stage import Keeping, Produced

Bools = NDArray[np.bool_]


def reference(*, settings: IngestSettings) -> Produced:
    """Applications as the audit spec types them.

    Raises:
        DataQualityError: no row is left, or rows that are kept are of another year than the spec says.
        TooFewError: every decision is the same, or a protected attribute has one group only.
        SpecError: a group that no row has, or a reserved column name.
    """
    columns = {n: c for n, c in settings.columns.items() if c.kept}
    features = [n for n, c in columns.items() if c.used]
    _check_names(columns)
    told = _year_column(settings.source)
    raw = registry.reader_of(settings.source).read(settings.source, _columns(settings, columns, told))
    if registry.digest(settings.source) != settings.source_sha256:
        raise InfrastructureError("the source changed while it was read; run the audit again once it is at rest")
    frame = raw.table.to_pandas().astype(object)
    frame = frame.apply(lambda column: column.map(canonical))
    unlisted = derive(frame, settings.source)
    missing = missing_cells(frame, settings.source, columns)
    exempt = frame.isin(settings.source.exempt) & ~missing
    refused = Refused(len(frame))
    for (reason, column), rows in raw.quarantined.items():
        refused.mark(rows, reason, column)
    ids = row_ids(frame, raw.source_row, settings.row_id, missing, refused)
    kept = keep_only(frame, missing, settings.source.keep, refused)
    year = _year(frame.loc[kept, told][~missing.loc[kept, told]], settings) if told else None
    for name, rows in unlisted.items():
        refused.mark(rows, Refusal.UNKNOWN_CATEGORY, name)
    _check_decision(frame, missing, settings.decision)
    favourable = decide(frame, missing, settings.decision, refused)
    outcome = favourable if settings.outcome is None else decide(frame, missing, settings.outcome, refused)
    absent = missing | exempt
    typed = {n: typed_column(frame[n], absent[n], n, c, refused) for n, c in columns.items()}
    first_exempt = _first(exempt[features])
    memberships = _memberships(frame, absent, ids, settings.protected)
    ok = refused.reason == ""
    _check_usable(favourable[ok], refused, settings)
    _check_groups(memberships, np.asarray(ids)[ok], settings.protected)
    applications = _applications(np.asarray(ids), raw.source_row, favourable, outcome, first_exempt, typed, columns, ok)
    declared = APPLICATIONS.extended(_column(n, c) for n, c in columns.items())
    rows = len(frame) + len(raw.unread)
    words, sha256 = [settings.source.words], [settings.source_sha256]
    read = SOURCE_READ.build(source=words, sha256=sha256, rows=[rows], year=[year], lender=[None])
    undecided = int(np.isin(refused.reason, REASONS_UNDECIDED).sum())
    no_recipe = {
        UNDECIDED.name: UNDECIDED.build(rows=[undecided]),
        INTAKE_RULES.name: INTAKE_RULES.empty(),
        INTAKE_CELLS.name: INTAKE_CELLS.empty(),
    }
    return Produced(
        {APPLICATIONS.name: applications, MEMBERSHIPS.name: memberships, SOURCE_READ.name: read, **no_recipe},
        pa.concat_tables([refused.table(ids, raw.source_row, favourable), _unread(raw.unread)]),
        rows_in=rows,
        declared={APPLICATIONS.name: declared},
        keeping=Keeping(settings.refusals.keep, settings.seed, memberships),
    )


def _check_names(columns: dict[str, ColumnSpec]) -> None:
    reserved = [c.name for table in (APPLICATIONS, COUNTERFACTUALS) for c in table.columns]
    for name in columns:
        if name in reserved:
            raise SpecError(
                f"{name!r} is a name of our own; rename the column in the source, or exclude it (role: excluded)",
                ("columns", name),
            )


def _year_column(source: Source) -> str | None:
    """The column that tells the year of each row; of HMDA one that every file has once it is converted."""
    if source.kind == "hmda":
        return raw.COLUMNS[0]
    return raw.column_of(source, registry.reader_of(source).header(source))


def _year(values: pd.Series, settings: IngestSettings) -> int | None:
    """The year by the rows that are kept and have one."""
    counts = values.value_counts().to_dict()
    return raw.year_of(settings.source.words, str(values.name), counts, settings.year)


def _columns(settings: IngestSettings, columns: dict[str, ColumnSpec], year: str | None) -> list[str]:
    """The columns to read: all that the spec names, but for those that are derived, and that of the year."""
    named = [settings.row_id] if settings.row_id else []
    named += [settings.decision.column, *([settings.outcome.column] if settings.outcome else [])]
    named += [c for p in settings.protected for c in p.columns]
    named += [*settings.source.keep, *columns, *(d.column for d in settings.source.derive.values())]
    named += [year] if year else []
    return list(dict.fromkeys(name for name in named if name not in settings.source.derive))


def _first(flags: pd.DataFrame) -> list[str | None]:
    """Name of the first flagged column of each row."""
    any_, first = flags.any(axis=1).to_numpy(), flags.to_numpy().argmax(axis=1)
    return [flags.columns[i] if yes else None for yes, i in zip(any_, first, strict=True)]


def _memberships(
    frame: pd.DataFrame, absent: pd.DataFrame, ids: list[str], protected: tuple[Protected, ...]
) -> pa.Table:
    parts = []
    single = {p.columns[0]: p for p in reversed(protected) if len(p.columns) == 1}
    for p in protected:
        each = [
            _groups(frame[column], absent[column], single.get(column, p) if len(p.columns) > 1 else p)
            for column in p.columns
        ]
        groups = [" and ".join(labels) for labels in zip(*each, strict=True)]
        parts.append(MEMBERSHIPS.build(row_id=ids, protected_attribute=[p.name] * len(ids), group=groups))
    return pa.concat_tables(parts)


def _groups(values: pd.Series, absent: pd.Series, p: Protected) -> list[str]:
    """Groups of one column, by the attribute over it; of a crossed one that lists no groups, its values."""
    group_of = {value: group for group, listed in p.groups.items() for value in listed}
    known = values.map(lambda v: group_of.get(v, p.unlisted)) if p.groups else values
    return [str(v) for v in known.where(~absent | values.isin(group_of), p.missing)]


def _check_decision(frame: pd.DataFrame, missing: pd.DataFrame, decision: Decision) -> None:
    """A side of the decision that no row has, beside values of neither side, is a misspelling."""
    found = frame.loc[~missing[decision.column], decision.column]
    neither = sorted(set(found) - {*decision.favourable, *decision.unfavourable})
    for side in ("favourable", "unfavourable"):
        wanted = getattr(decision, side)
        if neither and not found.isin(wanted).any():
            hint = nearest(wanted[0], neither)
            raise SpecError(f"no row of {decision.column!r} holds any of {list(wanted)}; {hint}", ("decision", side))


def _check_usable(favourable: np.ndarray[Any, Any], refused: Refused, settings: IngestSettings) -> None:
    name = " and ".join(settings.source.paths) or settings.source.kind
    if len(refused.reason) == 0:
        raise DataQualityError(f"{name} has no rows: at least one application is needed; give a table with rows")
    if len(favourable) == 0:
        reasons = Counter(zip(refused.reason, refused.column, strict=True)).most_common(3)
        told = "; ".join(f"{n} rows: {reason} ({column})" for (reason, column), n in reasons)
        raise DataQualityError(
            f"no row of {name} can be used: {told}; look at `decision`, `columns` and `source` in the spec"
        )
    if favourable.all() or not favourable.any():
        side = "favourable" if favourable[0] else "unfavourable"
        every = f"all {len(favourable):,} usable decisions are" if len(favourable) > 1 else "the one usable decision is"
        raise TooFewError(
            f"{every} {side}, so there is nothing to compare: add rows of both kinds, or correct the spec; "
            f"decision.column is {settings.decision.column!r}, favourable {list(settings.decision.favourable)}"
        )


def _check_groups(memberships: pa.Table, usable: np.ndarray[Any, Any], protected: tuple[Protected, ...]) -> None:
    frame = memberships.to_pandas()
    seen_by = frame.groupby("protected_attribute")["group"].agg(set)
    left = frame[frame["row_id"].isin(usable)].groupby("protected_attribute")["group"].agg(set)
    for i, p in enumerate(protected):
        seen = sorted(seen_by[p.name])
        for group in (*p.groups, p.reference):
            if group not in seen:
                where = ("groups", group) if group in p.groups else ("reference",)
                raise SpecError(f"no row belongs to group {group!r}; {nearest(group, seen)}", ("protected", i, *where))
        if len(left[p.name]) == 1:
            raise TooFewError(
                f"protected attribute {p.name!r} has one group only among the {len(usable):,} usable rows "
                f"({next(iter(left[p.name]))!r}): there is no group to compare it with"
            )
        if p.reference not in left[p.name]:
            raise TooFewError(
                f"every row of the reference group {p.reference!r} of {p.name!r} was refused: "
                "look at `columns` (types and bounds), or choose another reference"
            )


def _applications(
    ids: np.ndarray[Any, Any],
    source_row: list[int],
    favourable: Any,
    outcome: Any,
    exempt: list[str | None],
    typed: dict[str, Any],
    columns: dict[str, ColumnSpec],
    ok: np.ndarray[Any, np.dtype[np.bool_]],
) -> pa.Table:
    fixed = APPLICATIONS.build(
        row_id=ids[ok],
        source_row=np.asarray(source_row)[ok],
        favourable=favourable[ok].astype(bool),
        outcome=outcome[ok].astype(bool),
        exempt=np.asarray(exempt, dtype=object)[ok],
    )
    for name, column in columns.items():
        kind = pa.float64() if column.type is Kind.CONTINUOUS else pa.string()
        fixed = fixed.append_column(pa.field(name, kind), pa.array(typed[name][ok], kind, from_pandas=True))
    return fixed


def _column(name: str, column: ColumnSpec) -> Column:
    kind = "double" if column.type is Kind.CONTINUOUS else "string"
    low, high = column.bounds
    return Column(name, kind, column.label, nullable=True, minimum=low, maximum=high, codes=column.order)  # type: ignore[arg-type]


def _unread(rows: Sequence[Unread]) -> pa.Table:
    """The rows of which nothing could be read."""
    return REFUSALS.build(
        row_id=[f"line-{each.row}" for each in rows],
        source_row=[each.row for each in rows],
        stage=["ingest"] * len(rows),
        reason=[each.reason for each in rows],
        column=[each.column for each in rows],
        detail=[each.detail for each in rows],
        favourable=[None] * len(rows),
        weight=[1.0] * len(rows),
    )


def missing_cells(frame: pd.DataFrame, source: Source, features: dict[str, ColumnSpec]) -> pd.DataFrame:
    """Which cells hold a text that means missing, in the source or in their own column."""
    missing = frame.isin([*source.missing, ""])
    for name, column in features.items():
        missing[name] |= frame[name].isin(column.missing)
    return missing


class Refused:
    """The first reason for which each row is refused, with the column to blame."""

    def __init__(self, rows: int) -> None:
        self.reason = np.full(rows, "", dtype=object)
        self.column = np.full(rows, None, dtype=object)

    def mark(self, rows: Bools, reason: Refusal, column: str | None = None) -> None:
        """Refuse rows that are not refused yet; ``rows`` is ``(n,)``."""
        new = rows & (self.reason == "")
        self.reason[new], self.column[new] = reason.value, column

    def table(self, ids: list[str], source_row: list[int], favourable: NDArray[Any]) -> pa.Table:
        """The refused rows, in the shape of ``REFUSALS``."""
        at = np.flatnonzero(self.reason != "")
        return REFUSALS.build(
            row_id=[ids[i] for i in at],
            source_row=[source_row[i] for i in at],
            stage=["ingest"] * len(at),
            reason=self.reason[at],
            column=self.column[at],
            detail=[None] * len(at),
            favourable=favourable[at],
            weight=np.ones(len(at)),
        )


def row_ids(
    frame: pd.DataFrame, source_row: list[int], column: str | None, missing: pd.DataFrame, refused: Refused
) -> list[str]:
    """Unique identifiers. Rows that share one are all refused, since none of them can be called the right one."""
    if column is None:
        return [str(i) for i in source_row]
    refused.mark(missing[column].to_numpy(), Refusal.MISSING_ROW_ID, column)
    twice = frame[column].duplicated(keep=False).to_numpy() & ~missing[column].to_numpy()
    refused.mark(twice, Refusal.DUPLICATE_ROW_ID, column)
    unique = ~(twice | missing[column].to_numpy())
    return [v if ok else f"{v}#{row}" for v, ok, row in zip(frame[column], unique, source_row, strict=True)]


def derive(frame: pd.DataFrame, source: Source) -> dict[str, Bools]:
    """Add the derived columns; gives by name the rows ``(n,)`` whose value the mapping does not list.

    Texts that mean missing or exempt are carried over where the mapping does not list them.
    """
    unlisted = {}
    for name, derived in source.derive.items():
        value_of = {code: value for value, codes in derived.values.items() for code in codes}
        values = frame[derived.column]
        unlisted[name] = ~values.isin([*value_of, "", *source.missing, *source.exempt]).to_numpy()
        frame[name] = values.map(lambda cell, known=value_of: known.get(cell, cell)).mask(unlisted[name], "")
    return unlisted


def keep_only(frame: pd.DataFrame, missing: pd.DataFrame, keep: dict[str, Keep], refused: Refused) -> Bools:
    """Refuse the rows that the spec does not keep; gives ``(n,)`` those that it keeps."""
    kept = np.ones(len(frame), dtype=bool)
    for name, rule in keep.items():
        own = _kept(frame[name], missing[name], rule)
        refused.mark(~own, Refusal.FILTERED, name)
        kept &= own
    return kept


def _kept(values: pd.Series, absent: pd.Series, rule: Keep) -> Bools:
    if rule.ranged:
        low = -np.inf if rule.minimum is None else rule.minimum
        high = np.inf if rule.maximum is None else rule.maximum
        within = pd.to_numeric(values, errors="coerce").between(low, high)  # false of a cell that is no number
        return np.asarray(within & ~absent, dtype=bool)
    return np.asarray(~absent if rule.present else values.isin(rule.values), dtype=bool)


def decide(frame: pd.DataFrame, missing: pd.DataFrame, decision: Decision, refused: Refused) -> NDArray[np.object_]:
    """True, False, or None where the value is neither."""
    values = frame[decision.column]
    out = np.full(len(frame), None, dtype=object)
    out[values.isin(decision.favourable).to_numpy()] = True
    out[values.isin(decision.unfavourable).to_numpy()] = False
    unknown = np.array([decided is None for decided in out], dtype=bool)
    absent = missing[decision.column].to_numpy()
    refused.mark(unknown & absent, Refusal.MISSING_DECISION, decision.column)
    refused.mark(unknown & ~absent, Refusal.DECISION_NOT_AUDITED, decision.column)
    return out


def typed_column(values: pd.Series, absent: pd.Series, name: str, column: ColumnSpec, refused: Refused) -> Any:
    """The column as numbers or text, None where absent; a value that does not fit refuses its row."""
    gone = absent.to_numpy()
    if column.type is Kind.CONTINUOUS:
        numbers = pd.to_numeric(values.where(~absent), errors="coerce").to_numpy(dtype=float)
        words = values.str.lower().str.lstrip("+-").isin(["nan", "inf", "infinity"]).to_numpy()
        refused.mark(np.isnan(numbers) & ~gone & ~words, Refusal.NOT_A_NUMBER, name)
        refused.mark((np.isinf(numbers) | words) & ~gone, Refusal.NOT_FINITE, name)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if column.order:
        refused.mark(~values.isin(column.order).to_numpy() & ~gone, Refusal.UNKNOWN_CATEGORY, name)
    return np.where(gone, None, values.to_numpy())
