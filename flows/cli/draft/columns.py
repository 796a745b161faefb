"""Columns of a drafted spec: each is a feature, or left out for a reason that the spec names.

Nothing can change until somebody says that it can: a column that is thought free would be advised to applicants.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from flows.cli.draft import people, vocabulary
from flows.cli.draft.table import Column, Table
from schemas.audit.intake import ColumnRecipe
from schemas.tables.applications import APPLICATIONS
from schemas.tables.counterfactuals import COUNTERFACTUALS
from tasks.ingest.intake import numbers, units
from tasks.preprocessing.algorithm import LEAST, STOPS, area_of_categories

AFTER: Final = "known after the decision"
MOST_FEATURES: Final = 200
_MOST_CATEGORIES: Final = 50
_MOST_MISSING: Final = 0.5
_UNIQUE: Final = 0.9
_FEW_ROWS: Final = 20
_ONE_SIDE, _OTHER_SIDE, _DIFFERENCE = 0.01, 0.3, 0.5
"""Shares of filled cells: next to none on one side and many on the other, or shares that differ by half."""
_TELLS: Final = 0.9
_FEWER, _MORE = 2, 15
_NOT_FILLED: Final = frozenset(("0", "0.0", "00000000", "0000-00-00"))
_YEAR: Final = re.compile(r"(19|20)\d\d")
_FIRST_SECOND, _LAST_SECOND = 631_152_000, 2_524_608_000
"""1990 and 2050 in seconds since 1970."""
_CLOCKS: Final = (("at",), ("epoch",), ("unix",), ("utc",))
_PADDED: Final = re.compile(r"\d{6,}")
_RESERVED: Final = {column.name for table in (APPLICATIONS, COUNTERFACTUALS) for column in table.columns}
_WORDS_OF_TEXT: Final = 4
_GROUP_LOSS: Final = 0.10

Reason = Literal[
    "", "id", "constant", "date", "year", "after", "weight", "text", "place", "copy", "missing", "units", "nested",
    "protected", "reserved", "chosen",
]  # fmt: skip
"""Why a column is left out; empty of a feature."""


@dataclass(frozen=True)
class Entry:
    """A column's entry: its type, and why it is left out if it is."""

    name: str
    type: str
    why: str
    reason: Reason = ""
    order: tuple[str, ...] = ()
    recipe: ColumnRecipe | None = None
    """How its cells are read, where that is more than text."""
    doubt: str = ""
    """What has to be confirmed of the way it is read."""

    @property
    def excluded(self) -> bool:
        """Whether it is no feature."""
        return bool(self.reason)


@dataclass(frozen=True)
class Split:
    """The rows of both sides of the decision."""

    favourable: NDArray[np.bool_]
    unfavourable: NDArray[np.bool_]
    areas: dict[str, float] = field(default_factory=dict)
    """Column -> how well it alone ranks them, as far as that was asked."""

    @cached_property
    def decided(self) -> NDArray[np.bool_]:
        """``(rows,)`` whether a row has a decision."""
        return self.favourable | self.unfavourable


def entries(table: Table, decision: str, split: Split, attributes: Collection[str], row_id: str | None) -> list[Entry]:
    """An entry for every column but the decision, in the order of the table."""
    out, first_names = [], dict[bytes, str]()
    days = [name for name, column in table.columns.items() if column.form == "date"]
    decided_on = next((name for name in days if vocabulary.is_named(name, "decided")), "")
    for name, column in table.columns.items():
        if name == decision:
            continue
        entry = feature(column)
        reason, why = _left_out(table, column, split, attributes, row_id, decided_on)
        if not reason:
            cells = column.numbers if column.is_number and column.distinct > _MOST_CATEGORIES else column.groups
            twin = first_names.setdefault(blake2b(cells.tobytes(), digest_size=20).digest(), name)
            if twin != name and twin not in table.parts:  # a column with the meaning of its codes stands for it
                reason, why = "copy", f"tells the same as {twin}, value by value"
        if reason:
            recipe = entry.recipe if reason in ("protected", "date", "year") else None
            entry = Entry(name, "nominal", why, reason, recipe=recipe, doubt=entry.doubt if recipe else "")
        out.append(entry)
    return out


def part(entry: Entry, derived: str) -> Entry:
    """The entry of a column that another one is made of."""
    return Entry(entry.name, "nominal", f"{derived!r} is made of it", "copy")


def recipe_of(column: Column) -> ColumnRecipe | None:
    """How the cells of a column are read; None where they are text without codes for missing."""
    codes = column.missing_codes
    if column.form in ("number", "few numbers") and column.number is not None:
        recipe = column.number.recipe
        if column.form == "few numbers":
            return ColumnRecipe(read="text", codes=codes) if codes else None
        return recipe.model_copy(update={"codes": codes})
    if column.form == "date":
        return ColumnRecipe(read="date", format=column.formats, codes=codes)
    if column.form == "bands":
        return ColumnRecipe(read="bands", order=column.order, codes=codes)
    return ColumnRecipe(read="text", codes=codes) if codes else None


def feature(column: Column) -> Entry:
    """The entry of a column as a feature, without a check against it."""
    absent = column.absent_rows
    missing = f", {absent:,} missing" if absent else ""
    recipe, doubts = recipe_of(column), []
    if column.missing_codes:
        rows = sum(n for text, n in column.counts.items() if text in column.absent_texts and _is_code(text, column))
        doubts.append(f"{', '.join(column.missing_codes)} stands for a missing value ({rows:,} rows)")
    if column.form == "number" and column.number is not None:
        present = (cells := column.numbers)[np.isfinite(cells)]
        span = f"{present.min():g} to {present.max():g}" if len(present) else "no value"
        unit = f" {recipe.unit}" if recipe and recipe.unit else ""
        doubts += [column.number.question] if column.number.question else []
        if zeros := doubtful_zeros(column):
            doubts.append(f"0 is kept as the income of {'1 row' if zeros == 1 else f'{zeros:,} rows'}")
        return Entry(column.name, "continuous", f"{span}{unit}{missing}", recipe=recipe, doubt="; ".join(doubts))
    doubts += [column.doubt] if column.doubt else []
    values = sorted(column.values)
    if column.form == "bands":
        return Entry(
            column.name, "ordinal", f"{len(column.order)} bands in order{missing}", order=column.order, recipe=recipe,
            doubt="; ".join(doubts),
        )  # fmt: skip
    if len(values) == _FEWER:
        return Entry(
            column.name, "binary", f"2 values{missing}", order=tuple(values), recipe=recipe, doubt="; ".join(doubts)
        )
    if column.form == "few numbers":
        doubts.append(f"{len(values)} whole numbers, read as categories")
    return Entry(column.name, "nominal", f"{len(values):,} values{missing}", recipe=recipe, doubt="; ".join(doubts))


def doubtful_zeros(column: Column) -> int:
    """Rows with an income of 0, which may mean a blank cell."""
    return column.kept_zeros if column.is_number and units.names_income(column.name) else 0


def _is_code(text: str, column: Column) -> bool:
    return text in column.missing_codes or (
        column.number is not None and numbers.parse(text, column.number.recipe) in column.missing_codes
    )


def find_row_id(table: Table, decision: str) -> str | None:
    """The first column that is called an identifier and is one, rows that repeat others aside; None without any."""
    for name, column in table.columns.items():
        if name == decision or column.absent.any() or not _is_identifier(column, table.repeats):
            continue
        if len(column.texts) == table.rows - int(table.repeats.sum()):
            return name
    return None


def shared_ids(table: Table, decision: str) -> tuple[str, int, int] | None:
    """A column of ids with several different rows for some: its name, these ids and their rows."""
    once = ~table.repeats
    for name, column in table.columns.items():
        if name != decision and _is_identifier(column, table.repeats) and not column.absent.any():
            times = np.bincount(column.codes[once], minlength=len(column.texts))
            if (times > 1).any():
                return name, int((times > 1).sum()), int(times[times > 1].sum())
    return None


def _is_identifier(column: Column, repeats: NDArray[np.bool_]) -> bool:
    """Whether a column identifies rows: by its name and values that hardly repeat, rows that repeat others aside."""
    if not any(vocabulary.is_named(column.name, kind) for kind in ("id", "id_if_unique")):
        return False
    if not _is_unique(column, repeats):
        return False
    if vocabulary.ends_as_identifier(column.name):
        return column.number is None or not column.number.marked
    return not _is_amount(column)


def _is_unique(column: Column, repeats: NDArray[np.bool_]) -> bool:
    present = int((~column.absent & ~repeats).sum())
    return present > 0 and len(column.texts) - len(column.absent_texts) >= _UNIQUE * present


def _is_amount(column: Column) -> bool:
    if not column.is_number or column.number is None:
        return column.form in ("date", "bands")
    return column.number.marked or units.names_amount(column.name) or units.names_rate(column.name)


def _left_out(
    table: Table, column: Column, split: Split, attributes: Collection[str], row_id: str | None, decided_on: str
) -> tuple[Reason, str]:
    """Why a column is no feature; two empty texts of a feature."""
    name = column.name
    if name == row_id:
        return "id", "identifies the row"
    if name in attributes:
        return "protected", "protected attribute"
    if name in _RESERVED:
        return "reserved", "a name that Evenhand uses itself: rename it to use it"
    kind = people.kind_of(column)
    if kind == "age" and column.form == "date":
        lacking = "no column has the date of the decision" if people.births(column) else "years have two digits"
        return "protected", f"dates of birth, of which no age follows: {lacking}"
    if kind:
        return "protected", f"describes people ({kind}); a feature only if the lender may use it"
    return (
        _by_name(column, table.repeats)
        or _by_values(table, column)
        or _by_decision(column, split)
        or _later(table, column, decided_on)
        or _unreadable(column)
        or ("", "")
    )


def _by_name(column: Column, repeats: NDArray[np.bool_]) -> tuple[Reason, str] | None:
    name = column.name
    if vocabulary.is_named(name, "after"):
        return "after", f"{AFTER}, by its name"
    if _is_identifier(column, repeats):
        return "id", "an identifier, by its name and values"
    if "id" in vocabulary.parts(name)[-1:]:
        return "id", "an identifier, by its name"
    if vocabulary.is_named(name, "weight") and column.form in ("number", "few numbers"):
        values = column.numbers[np.isfinite(column.numbers)]
        long = len(vocabulary.parts(name)) > 1 or name.casefold() not in ("weight", "peso", "waga", "vikt", "gewicht")
        if len(values) and (values > 0).all() and (long or (values != np.round(values)).any()):
            return "weight", "weights of rows: an audit counts each row once"
    if vocabulary.is_named(name, "year") and column.values and all(_YEAR.fullmatch(value) for value in column.values):
        return "year", "a year"
    if _is_clock(column):
        return "date", "times as computers count them"
    if vocabulary.is_named(name, "place") and not column.is_number | (len(column.values) == _FEWER):
        return "place", "a place: who lives there tells who somebody is"
    if vocabulary.is_named(name, "place") and not _is_amount(column) and not vocabulary.decision_rank(name):
        return "place", "a place: who lives there tells who somebody is"
    return None


def _is_clock(column: Column) -> bool:
    """Whether its numbers are milliseconds since 1970, or seconds in a column that is called a time."""
    values = column.numbers[np.isfinite(column.numbers)] if column.is_number else np.array([])
    is_fine = bool(len(values)) and values.min() > _LAST_SECOND
    seconds = values / 1000 if is_fine else values
    is_time = is_fine or vocabulary.is_named(column.name, "date") or vocabulary.parts(column.name)[-1:] in _CLOCKS
    return is_time and bool(len(seconds)) and bool(((seconds >= _FIRST_SECOND) & (seconds <= _LAST_SECOND)).all())


def _by_values(table: Table, column: Column) -> tuple[Reason, str] | None:
    """By its cells, without the decision."""
    if column.distinct <= 1 and not column.unread:
        return "constant", "one value" if column.distinct else "no value"
    if column.form == "date":
        return "date", "a date"
    if not _is_unique(column, table.repeats) or _is_amount(column) or table.rows < _FEW_ROWS:
        return None
    present = column.numbers[np.isfinite(column.numbers)] if column.is_number else np.array([])
    if len(present) == table.rows and len(set(np.diff(np.sort(present)))) == 1:
        return "id", "numbers in equal steps, another in each row"
    texts = [text for text in column.texts if text not in column.absent_texts]
    is_padded = any(text.startswith("0") for text in texts) and all(map(_PADDED.fullmatch, texts))
    if is_padded and len(set(map(len, texts))) == 1:
        return "id", "numbers of one length, another in each row"
    if not column.is_number and column.form == "category" and np.median([len(t.split()) for t in texts]) < _FEWER:
        return "id", "another text in each row"
    return None


def _by_decision(column: Column, split: Split) -> tuple[Reason, str] | None:
    """The column alone predicts the decision: by where it is filled in, or by its values."""
    if not (split.favourable.any() and split.unfavourable.any()):
        return None
    zeros = [column.texts.index(text) for text in _NOT_FILLED if text in column.counts]
    empty = column.absent | np.isin(column.codes, zeros) if zeros else column.absent
    good, bad = (float((~empty[side]).mean()) for side in (split.favourable, split.unfavourable))
    zeros_aside = (float((~column.absent[side]).mean()) for side in (split.favourable, split.unfavourable))
    first, second = zeros_aside
    if (min(good, bad) <= _ONE_SIDE and max(good, bad) >= _OTHER_SIDE) or abs(first - second) >= _DIFFERENCE:
        return "after", f"{AFTER}: filled in for {good:.0%} of the favourable decisions, {bad:.0%} of the others"
    area = tells(column, split)
    if area >= STOPS:
        return "after", f"{AFTER}, as it seems: by itself it tells the decision with an AUC of {area:.2f}"
    return None


def tells(column: Column, split: Split) -> float:
    """AUC with which a column alone ranks the decision; 0.5 where it has too few rows."""
    if column.name not in split.areas:
        split.areas[column.name] = _by_numbers(column, split) if column.is_number else _by_categories(column, split)
    return split.areas[column.name]


def _by_categories(column: Column, split: Split) -> float:
    if len(column.values) > _MOST_CATEGORIES:
        return 0.5
    rows = split.decided & (column.groups >= 0)
    area = area_of_categories(column.groups[rows].astype(np.int64), split.favourable[rows])
    return 0.5 if np.isnan(area) else area


def _by_numbers(column: Column, split: Split) -> float:
    """As `association` has it, by the number of rows of each text on either side."""
    texts = column.numbers_of_texts
    finite = np.isfinite(texts)
    decided = np.bincount(column.codes[split.decided], minlength=len(texts))
    of_good = np.bincount(column.codes[split.favourable], minlength=len(texts))
    good, bad = of_good[finite], (decided - of_good)[finite]
    if min(good.sum(), bad.sum()) < LEAST:
        return 0.5
    order = np.argsort(texts[finite])
    good, bad, numbers_in_order = good[order], bad[order], texts[finite][order]
    first = np.flatnonzero(np.diff(numbers_in_order, prepend=np.nan) != 0)  # of equal numbers
    good, bad = np.add.reduceat(good, first), np.add.reduceat(bad, first)
    area = float(good @ (np.cumsum(bad) - bad / 2) / (good.sum() * bad.sum()))
    return max(area, 1 - area)


def _later(table: Table, column: Column, decided_on: str) -> tuple[Reason, str] | None:
    if column.form != "date" or not decided_on or column.name == decided_on:
        return None
    day, decided = (np.array(c.days)[c.codes] for c in (column, table.columns[decided_on]))
    dated = (day != "") & (decided != "")
    if dated.any() and (day[dated] > decided[dated]).mean() >= _TELLS:
        return "after", f"{AFTER}: later than {decided_on}"
    return None


def _unreadable(column: Column) -> tuple[Reason, str] | None:
    if column.number is not None and column.number.excluded:
        return "units", column.number.question or "several units"
    if column.missing_share > _MOST_MISSING:
        return "missing", f"missing in {column.missing_share:.0%} of the rows"
    if column.form == "category":
        texts = [text for text in column.texts if text not in column.absent_texts]
        if texts and texts[0][:1] in "[{" and texts[0][-1:] in "]}":
            return "nested", "lists or records in its cells"
        words = float(np.mean([len(text.split()) for text in texts])) if texts else 0.0
        if len(column.values) > _MOST_CATEGORIES or (len(column.values) > _MORE and words >= _WORDS_OF_TEXT):
            return "text", f"text of {len(column.values):,} values"
    return None


# --------------------------------------------------------------------------------------------------------------------
# What the rows without a value cost, and which features are worth their place.


@dataclass(frozen=True)
class Loss:
    """Rows of a group with a missing feature."""

    attribute: str
    group: str
    complete: int
    rows: int
    causes: tuple[str, ...]

    def words(self) -> str:
        """The loss as a sentence."""
        return (
            f"of {self.group} applicants {self.complete:,} of {self.rows:,} have every feature (missing: "
            f"{', '.join(self.causes)})"
        )


def complete(table: Table, features: Sequence[str], split: Split) -> NDArray[np.bool_]:
    """``(rows,)`` whether a row has a decision and every feature."""
    complete_rows = split.decided.copy()
    for name in features:
        complete_rows &= ~table.columns[name].absent
    return complete_rows


def losses(
    table: Table, features: Sequence[str], split: Split, groups: Mapping[str, Mapping[str, NDArray[np.bool_]]]
) -> Iterator[Loss]:
    """Groups that lose ten points more of their rows to missing features than the group that loses least, or all."""
    complete_rows = complete(table, features, split)
    for attribute, members in groups.items():
        decided = {group: rows & split.decided for group, rows in members.items()}
        shares = {
            group: float(complete_rows[rows].mean()) for group, rows in decided.items() if rows.sum() >= people.FEWEST
        }
        for group, share in shares.items():
            if max(shares.values()) - share <= _GROUP_LOSS and share > 0:
                continue
            rows = decided[group]
            absent = {name: float(table.columns[name].absent[rows].mean()) for name in features}
            causes = sorted((name for name in absent if absent[name] > 0), key=lambda name: -absent[name])[:3]
            yield Loss(attribute, group, int(complete_rows[rows].sum()), int(rows.sum()), tuple(causes))


def best(table: Table, features: Sequence[str], split: Split) -> list[str]:
    """The features with the best AUC, where there are more than a spec should have."""
    return sorted(features, key=lambda name: -tells(table.columns[name], split))[:MOST_FEATURES]
