"""All other tables as they are published, column by column: what they say of a group goes with the group.

A column of whole numbers counts people, or values of theirs; other numbers get three digits. Columns of the key, and
settings such as the number of an epoch, stay.
"""

import re
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from schemas.table import Table
from schemas.tables.publication import published
from schemas.tables.validations import VALIDATIONS
from tasks.metrics.publish import shares
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import rounded, small
from tasks.metrics.publish.fates import Fates

Row = Mapping[str, Any]
_PEOPLE = ("n", "n_there", "rows")
"""Whole numbers that a row as a whole is about."""
_EVENTS = ("events", "denied", "raised", "lowered")
"""Whole numbers of those with an event: a few of them withhold the row under profiles that look at numerators."""
_PAIRED = ("raised", "lowered")
"""Events whose share is printed less one another: a few of them withhold the row under every profile."""
_SETTINGS = ("quantile", "times", "rung", "terms", "percentile", "network", "epoch", "df", "year", "bins")
_GROUPS = ("group", "to_group", "reference_group")
_TELLING = ("low", "high", "se", "unseen", "odds_ratio", "rv", "rv_alpha", "e_value", "e_value_near")
"""Numbers beside an effect that are functions of the same four counts, where nothing is held constant."""
_TEXTS = ("at",)
"""Texts that are a value of a column: the median, say, of applicants."""
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
_LARGE = 100


def published_table(declared: Table, table: pa.Table, fates: Fates) -> pa.Table:
    """A raw table as its published declaration has it."""
    target, rows = published(declared), table.to_pylist()
    if fates.policy.protects:
        rows = [_validation(row) if declared is VALIDATIONS else _row(declared, row, fates) for row in rows]
    return target.build(**{column.name: [row[column.name] for row in rows] for column in target.columns})


def _row(declared: Table, row: Row, fates: Fates) -> Row:
    numbers = [column for column in declared.columns if column.type in ("double", "int64")]
    mine = [c for c in numbers if c.name not in (*declared.key, *_SETTINGS)]
    if _is_gone(row, fates):
        return {**row, **dict.fromkeys(column.name for column in mine), **_unsaid(declared)}
    said = {c.name: _whole(c.name, row, fates) if c.type == "int64" else _double(c.name, row, fates) for c in mine}
    texts = {name: in_words(row[name], fates, people=False) for name in _TEXTS if row.get(name) and row["percentile"]}
    words = {"words": in_words(row["words"], fates)} if declared.name == "feasibility_facts" else {}
    if declared.name == "feasibility_facts":
        said["value"] = _fact(row["value"], fates)
    return {**row, **said, **_plainly(row, fates), **words, **texts}


def _plainly(row: Row, fates: Fates) -> Row:
    """A difference of two shares with nothing held constant: by counts as printed; all else of the row tells it too."""
    if row.get("rung") != 0 or row.get("value") is None:
        return {}
    plain = fates.plainly(row["protected_attribute"], row["group"], row["decision_maker"], row["value"])
    if plain is None:
        return {}
    return {**dict.fromkeys(_TELLING), "value": None if isnan(plain) else plain}


def _is_gone(row: Row, fates: Fates) -> bool:
    """Whether a row is about a withheld group, or about few."""
    policy, maker = fates.policy, row.get("decision_maker", "")
    attribute = row.get("protected_attribute") or ""
    groups = [row[name] for name in _GROUPS if row.get(name)]
    if any(fates.is_gone(attribute, group, maker) for group in groups):
        return True
    if (maker or "metric" in row) and any(fates.is_ranged(attribute, group, maker) for group in groups):
        return True
    for name in _PEOPLE:
        count = row.get(name)
        if count and groups and fates.printed(attribute, _group(row, name), maker, count) is None:
            return True
    n = next((row[name] for name in _PEOPLE if row.get(name)), 0)
    if any(row.get(name) and small(policy, row[name]) for name in _PAIRED):
        return True
    return any(row.get(name) is not None and small(policy, n, row[name]) for name in _EVENTS) and policy.events_too


def _group(row: Row, name: str) -> str:
    return str(row["to_group"] if name == "n_there" else row.get("group") or ALL)


def _unsaid(declared: Table) -> Row:
    """What is said in words of a row that is withheld."""
    said = {"words": "withheld", "reason": "withheld: it rests on few people"}
    return {column.name: said[column.name] for column in declared.columns if column.name in said}


def _whole(name: str, row: Row, fates: Fates) -> int | None:
    count, attribute = row[name], row.get("protected_attribute")
    if count is None:
        return None
    if attribute and row.get("group"):
        if name in _EVENTS and not fates.policy.events_too and 0 < count < fates.policy.smallest:
            return int(count)
        return fates.printed(attribute, _group(row, name), row.get("decision_maker", ""), count)
    return fates.of_all(count)


def _double(name: str, row: Row, fates: Fates) -> float | None:
    value = row[name]
    if value is None or shares.is_of_few(name, row):
        return None
    if name in ("p", "q", "p_holm"):
        return digits.p_value(fates.policy, value)
    if (n := shares.denominator(name, row, fates)) is not None:
        return shares.share(value, n, row, fates)
    return digits.significant(fates.policy, value) + 0.0


def _fact(value: float | None, fates: Fates) -> float | None:
    """A fact of the graph: a whole number is a count, and rounded as counts are."""
    if value is None or value != int(value):
        return None if value is None else digits.significant(fates.policy, value)
    count = int(value)
    if small(fates.policy, count):
        return None
    return digits.significant(fates.policy, float(rounded(fates.policy, count)))


def in_words(text: str, fates: Fates, people: bool = True) -> str:
    """A sentence with its numbers as they are published; ``fewer than 5`` for a small count of ``people``."""

    def said(found: re.Match[str]) -> str:
        plain = found.group().replace(",", "")
        if "." in plain or not people:
            return f"{digits.significant(fates.policy, float(plain)):g}"
        count = int(plain)
        if small(fates.policy, count):
            return f"fewer than {fates.policy.smallest}"
        known = fates.of_all(count)
        number = known if known is not None and _is_everybody(count, fates) else _fact(float(count), fates)
        return "some" if number is None else f"{number:,.0f}"

    return _NUMBER.sub(said, text)


def _is_everybody(count: int, fates: Fates) -> bool:
    every = fates.people.weights
    return every is not None and count >= int(every.sum()) * 9 // 10


def _validation(row: Row) -> Row:
    """Rows of tables count people of every stage, some of them several times: to one digit, none of a small table."""
    return {**row, **{name: _about(row[name]) for name in ("elements", "unexpected")}}


def _about(count: int) -> int | None:
    return int(float(f"{count:.0e}")) if count >= _LARGE else None if count else 0


def tables(raw: Sequence[tuple[Table, pa.Table]], fates: Fates) -> dict[str, pa.Table]:
    """The published tables by name."""
    return {published(declared).name: published_table(declared, table, fates) for declared, table in raw}
