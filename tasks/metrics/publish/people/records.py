"""The records of the source: applications and refused rows that are kept, each for itself, and the others by kind.

What became of an application is known row by row, from the table ``refusals`` or from what it lacks, as ``preprocess``
refuses it; the exact counts say how many other records there are of each kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import IntegrityError
from schemas.terms import Refusal

ORDER = ("ingest", "preprocess", "score", "connect")
"""Stages in the order in which they refuse."""
UNKNOWN = "(not readable)"
"""Group of records whose group could not be read."""
_LINE = ["stage", "reason", "column"]
_LACKING = [str(Refusal.MISSING_COVARIATE), str(Refusal.EXEMPT_COVARIATE)]


@dataclass(frozen=True)
class Told:
    """What the stages wrote of the rows, as tables."""

    applications: pa.Table
    memberships: pa.Table
    refusals: pa.Table
    refusal_counts: pa.Table


@dataclass(frozen=True, eq=False)
class Records:
    """Records in one order."""

    frame: pd.DataFrame
    """Index ``row_id``, or the kind. Columns: stage, reason, column of the refusal (null where used), favourable,
    ``applied`` and ``weight``, the number of records that a row stands for."""
    groups: pd.DataFrame
    """Group of each by attribute; index and order of ``frame``."""
    given: pd.DataFrame
    """Of applications: ``favourable``, ``exempt`` and the features; index ``row_id``."""

    @classmethod
    def of(cls, told: Told, names: Sequence[str], features: Sequence[str]) -> "Records":
        """From the tables.

        Args:
            told: the tables.
            names: of the protected attributes.
            features: that some application lacks, in the order in which ``preprocess`` looks at them.

        Raises:
            IntegrityError: more applications are refused than the counts say.
        """
        columns = ["row_id", "favourable", "exempt", *features]
        given = told.applications.select(columns).to_pandas().set_index("row_id").sort_index()
        wide = _groups(told.memberships, given.index, names)
        lines = _lines(told, given, list(features)).assign(applied=True, weight=1)
        rows = _rows(told, given)
        whose = _groups(told.memberships, rows.index, names)
        seen = pd.concat([lines.join(wide), rows.join(whose)]) if len(rows) else lines.join(wide)
        others, theirs = _others(told.refusal_counts, seen, list(names))
        lines["favourable"] = given["favourable"].astype("boolean")
        parts = [
            part for part in (lines, rows.assign(favourable=rows["favourable"].astype("boolean")), others) if len(part)
        ]
        frame = pd.concat(parts) if len(parts) > 1 else lines
        return cls(frame, pd.concat([wide, whose, theirs]).fillna(UNKNOWN), given)


def _groups(memberships: pa.Table, ids: "pd.Index[Any]", names: Sequence[str]) -> pd.DataFrame:
    mine = memberships.filter(pc.is_in(memberships["row_id"], value_set=pa.array(ids, pa.string())))
    wide = mine.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group")
    return wide.reindex(index=ids, columns=list(names))


def _lines(told: Told, given: pd.DataFrame, features: list[str]) -> pd.DataFrame:
    """Stage, reason, column and the decision as the refusal has it, of each application; null of one that is used."""
    lines = pd.DataFrame(None, index=given.index, columns=[*_LINE, "favourable"], dtype=object)
    by_code = pc.any(pc.is_in(told.refusal_counts["reason"], value_set=pa.array(_LACKING))).as_py()
    gone = given[features].isna().to_numpy()
    lacks = gone.any(axis=1) if by_code and features else np.zeros(len(given), dtype=bool)
    if lacks.any():
        exempt, decided = given["exempt"][lacks], given["favourable"][lacks]
        reasons = np.where(exempt.notna(), _LACKING[1], _LACKING[0])
        first = np.array(features, dtype=object)[gone[lacks].argmax(axis=1)]
        lines.loc[lacks, _LINE[0]] = "preprocess"
        lines.loc[lacks, _LINE[1]] = reasons
        lines.loc[lacks, _LINE[2]] = np.where(exempt.notna(), exempt, first)
        lines.loc[lacks, "favourable"] = decided.astype(object)
    kept = told.refusals.select(["row_id", *_LINE, "favourable"]).to_pandas().set_index("row_id")
    kept = kept[kept.index.isin(given.index)]
    lines.loc[kept.index, kept.columns] = kept.assign(column=kept["column"].fillna("")).astype(object)
    return lines


def _rows(told: Told, given: pd.DataFrame) -> pd.DataFrame:
    """The refused rows that are kept and are no applications, as ``Records.frame``."""
    kept = told.refusals.select(["row_id", *_LINE, "favourable"]).to_pandas().set_index("row_id")
    kept = kept[~kept.index.isin(given.index)]
    return kept.assign(column=kept["column"].fillna(""), applied=False, weight=1).astype({"favourable": object})


def _others(counts: pa.Table, lines: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Kinds of refused rows that are no applications, as ``Records.frame``, and their groups."""
    long = counts.to_pandas()
    long["column"] = long["column"].fillna("")
    whose = ["stage", "kind"]
    kinds = long.drop_duplicates(whose).set_index(whose)[["reason", "column", "favourable", "n"]].reset_index("stage")
    wide = long.pivot(index=whose, columns="protected_attribute", values="group").reindex(columns=names)
    wide = wide.reset_index("stage", drop=True)
    index = pd.Index([f"{stage} {kind}" for stage, kind in zip(kinds["stage"], kinds.index, strict=True)])
    kinds.index = wide.index = index
    like = [*_LINE, "favourable", *names]
    seen = _keys(lines[lines["stage"].notna()], like).value_counts()
    keys = _keys(kinds.join(wide), like)
    left = kinds["n"].to_numpy() - seen.reindex(keys).fillna(0).to_numpy(dtype=np.int64)
    if (left < 0).any() or not seen.index.isin(keys).all():
        raise IntegrityError(
            "more applications are refused than the table refusal_counts has: the tables of this run are not of one "
            "audit; run it again"
        )
    more = kinds.assign(applied=False, weight=left).drop(columns="n")[left > 0]
    return more.assign(favourable=more["favourable"].astype("boolean")), wide[left > 0]


def _keys(frame: pd.DataFrame, columns: list[str]) -> pd.Series:
    """What rows of one kind have alike, as one text: pandas joins no missing value to another."""
    texts = [frame[name].astype(object).where(frame[name].notna(), "\x00").astype(str) for name in columns]
    joined = pd.Series("", index=frame.index)
    for text in texts:
        joined = joined + "\x1f" + text
    return joined
