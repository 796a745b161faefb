"""Columns of a drafted spec: their types, and why a column is no feature.

Nothing can change until somebody says that it can: a column that is thought free would be advised to applicants.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from flows.cli.draft import vocabulary
from flows.cli.draft.decision import Sides
from flows.cli.draft.table import Table
from schemas.tables.applications import APPLICATIONS
from schemas.tables.counterfactuals import COUNTERFACTUALS
from tasks.preprocessing.algorithm.leakage import STOPS, auc

AFTER: Final = "known after the decision"
DIFFERENCE: Final = 0.5
"""Difference of the shares missing, approved against denied, from which a column counts as filled by the decision."""
_ORDERED_UP_TO = 15
"""Up to this many distinct numbers a column reads as categories when it is a code, and is offered as nominal."""
_CATEGORIES = 50
_MOST_MISSING = 0.5
_CAUSES = 3
"""Missing features that are named as the cause of rows left out."""
_UNIQUE, _TELLS, _DATES = 0.9, 0.9, 0.95
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?:[ T]\d{1,2}:\d{2}.*)?"
_RESERVED = {column.name for each in (APPLICATIONS, COUNTERFACTUALS) for column in each.columns}


@dataclass(frozen=True)
class Entry:
    """A column's entry: its type, whether it is left out, and why."""

    name: str
    type: str
    why: str
    excluded: bool = False
    order: tuple[str, ...] = ()
    after: bool = False
    """Whether it is left out as known after the decision only."""


@dataclass(frozen=True)
class Split:
    """The rows of both sides of the decision, and the columns that are taken for something else."""

    favourable: NDArray[np.bool_]
    unfavourable: NDArray[np.bool_]
    attributes: Collection[str]
    row_id: str | None


def entries(table: Table, decision: str, sides: Sides, attributes: Collection[str], row_id: str | None) -> list[Entry]:
    """An entry for every column but the decision, in the order of the table."""
    values = table.frame[decision]
    split = Split(
        values.isin(sides.favourable).to_numpy(), values.isin(sides.unfavourable).to_numpy(), attributes, row_id
    )
    return [_entry(table, name, split) for name in table.names if name != decision]


def row_id(table: Table, decision: str) -> str | None:
    """The first column that is called an identifier and is one; None without any."""
    named = [name for name in table.names if name != decision and vocabulary.is_identifier(name)]
    unique = (name for name in named if table.frame[name].is_unique and not table.absent(name).any())
    return next(unique, None)


def complete(table: Table, decision: str, sides: Sides, kept: Collection[Entry]) -> tuple[int, int]:
    """Rows with a decision and every feature, and rows with a decision."""
    decided = table.frame[decision].isin([*sides.favourable, *sides.unfavourable])
    absent = pd.concat([table.absent(e.name) for e in kept if not e.excluded] or [~decided], axis=1).any(axis=1)
    return int((decided & ~absent).sum()), int(decided.sum())


def incomplete_groups(
    table: Table, decision: str, sides: Sides, features: Collection[Entry], attribute: str
) -> Iterator[str]:
    """Sentences on the groups of an attribute that lose half of their decided rows or more to missing features."""
    decided = table.frame[decision].isin([*sides.favourable, *sides.unfavourable]) & ~table.absent(attribute)
    absent = pd.DataFrame({e.name: table.absent(e.name) for e in features if not e.excluded}, index=decided.index)
    for group, rows in absent[decided].groupby(table.frame[attribute][decided]):
        used = int((~rows.any(axis=1)).sum())
        if 2 * used <= len(rows):
            shares = rows.mean().sort_values(ascending=False)
            causes = ", ".join(str(name) for name in shares.index[shares > 0][:_CAUSES])
            yield f"of {group} applicants {used:,} of {len(rows):,} have every feature (missing: {causes})"


def _entry(table: Table, name: str, split: Split) -> Entry:
    for rule in _RULES:
        why = rule(table, name, split)
        if why:
            return Entry(name, "nominal", why, excluded=True, after=why.startswith(AFTER))
    return _feature(table, name)


def _feature(table: Table, name: str) -> Entry:
    present, absent = table.present(name), int(table.absent(name).sum())
    unique = sorted(present.unique())
    numbers = pd.to_numeric(present, errors="coerce")
    missing = f", {absent:,} missing" if absent else ""
    if len(unique) == 2:
        return Entry(name, "binary", f"2 values{missing}", order=tuple(unique))
    if numbers.notna().mean() > 0.95 and len(unique) > _ORDERED_UP_TO:
        return Entry(name, "continuous", f"{np.nanmin(numbers):g} to {np.nanmax(numbers):g}{missing}")
    ordered = "; `ordinal` with an order if they have one" if numbers.notna().all() else ""
    return Entry(name, "nominal", f"{len(unique):,} values{missing}{ordered}")


def _attribute(_: Table, name: str, split: Split) -> str:
    if name in split.attributes:
        return "protected attribute"
    kind = vocabulary.protected_kind(name)
    return f"names a protected attribute ({kind}); a feature only if the lender may use it" if kind else ""


def _own_name(_: Table, name: str, split: Split) -> str:
    if name == split.row_id:
        return "identifies the row"
    return "a name that Evenhand uses itself: rename it to use it" if name in _RESERVED else ""


def _named_after(_: Table, name: str, __: Split) -> str:
    if vocabulary.is_after(name):
        return f"{AFTER}, by its name"
    return f"{AFTER}: its name is that of a decision or an outcome" if vocabulary.is_outcome(name) else ""


def _filled_after(table: Table, name: str, split: Split) -> str:
    absent = table.absent(name).to_numpy()
    if not split.favourable.any() or not split.unfavourable.any():
        return ""
    of_favourable, of_unfavourable = absent[split.favourable].mean(), absent[split.unfavourable].mean()
    if abs(of_favourable - of_unfavourable) < DIFFERENCE:
        return ""
    return f"{AFTER}: missing in {of_favourable:.0%} of the favourable, {of_unfavourable:.0%} of the others"


def _constant(table: Table, name: str, _: Split) -> str:
    values = table.present(name).nunique()
    return "" if values > 1 else "one value" if values else "no value"


def _sparse(table: Table, name: str, _: Split) -> str:
    share = float(table.absent(name).mean())
    return f"missing in {share:.0%} of the rows" if share > _MOST_MISSING else ""


def _date(table: Table, name: str, _: Split) -> str:
    present = table.present(name)
    if vocabulary.is_year(name) and present.str.fullmatch(r"(19|20)\d\d").mean() > _DATES:
        return "a year"
    return "a date" if present.str.fullmatch(_DATE).mean() >= _DATES else ""


def _identifier(table: Table, name: str, _: Split) -> str:
    present = table.present(name)
    unique, numbers = present.nunique() / len(present), pd.to_numeric(present, errors="coerce")
    if vocabulary.is_identifier(name):
        return "an identifier, by its name"
    if unique > _UNIQUE and len(present) > _CATEGORIES:
        if numbers.isna().mean() > 1 - _UNIQUE:
            return f"text of {present.nunique():,} values"
        if (numbers.diff().iloc[1:] == 1).mean() > _UNIQUE:
            return "the number of the row"
    return ""


def _place(_: Table, name: str, __: Split) -> str:
    return "a place: who lives there tells who somebody is" if vocabulary.is_place(name) else ""


def _text(table: Table, name: str, _: Split) -> str:
    present = table.present(name)
    is_text = pd.to_numeric(present, errors="coerce").notna().mean() <= 0.95
    return f"text of {present.nunique():,} values" if is_text and present.nunique() > _CATEGORIES else ""


def _tells(table: Table, name: str, split: Split) -> str:
    """A column that nearly is the decision: an outcome under another name."""
    values, decided = table.frame[name].to_numpy(), split.favourable | split.unfavourable
    if table.present(name).nunique() > _ORDERED_UP_TO or not decided.any():
        return ""
    both = pd.crosstab(values[decided], split.favourable[decided])
    right, blind = both.max(axis=1).sum() / decided.sum(), both.sum().max() / decided.sum()
    share = 1 - (1 - right) / (1 - blind) if blind < 1 else 0.0
    return f"{AFTER}, as it seems: by itself it tells {right:.0%} of the decisions" if share > _TELLS else ""


def _ranks(table: Table, name: str, split: Split) -> str:
    """A number that ranks the decisions as well as an audit's check of its columns refuses."""
    decided = split.favourable | split.unfavourable
    numbers = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=float)
    known = decided & np.isfinite(numbers)
    area = auc(numbers[known], split.favourable[known])
    return f"{AFTER}, as it seems: by itself it tells the decision with an AUC of {area:.2f}" if area >= STOPS else ""


_Rule = Callable[[Table, str, Split], str]
_RULES: tuple[_Rule, ...] = (
    *(_own_name, _attribute, _named_after, _filled_after, _constant, _sparse, _date, _identifier, _place, _text),
    _tells,
    _ranks,
)
"""Why a column is no feature: the first reason that holds."""


def year(table: Table) -> tuple[int, bool] | None:
    """The year of most rows, by a column that is called so, and whether all rows are of it."""
    for name in table.names:
        if vocabulary.is_year(name):
            years = table.present(name)[table.present(name).str.fullmatch(r"(19|20)\d\d")]
            if len(years):
                return int(years.mode()[0]), years.nunique() == 1
    return None


def left_out(of: Collection[Entry]) -> Iterator[str]:
    """Names of the columns that are known after the decision only."""
    return (entry.name for entry in of if entry.after)
