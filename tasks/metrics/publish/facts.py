"""Published findings, exclusions and all other tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import floor, isnan, log10
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.table import Table
from schemas.tables.applications import ANY, ENCODINGS, VALIDATIONS
from schemas.tables.readings import VERDICT_FINDINGS
from schemas.tables.verdicts import PUBLISHED_FINDINGS, PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL, published
from tasks.lake.storage import connected
from tasks.metrics.publish import measures
from tasks.metrics.publish.algorithm import profiles
from tasks.metrics.publish.algorithm.populations import ALL, Place
from tasks.metrics.publish.algorithm.primary import Fate
from tasks.metrics.publish.algorithm.profiles import Policy, rounded, small
from tasks.metrics.publish.measures import GONE, Fates
from tasks.metrics.publish.people import DENIED, lacking_place, left_place, line_place, whole_of

# --------------------------------------------------------------------------------------------------------------------
# Publishes the ends of encoded columns, without values of fewer people than the policy permits.


def encodings(table: pa.Table, applications: pa.Table, policy: Policy) -> pa.Table:
    """The table with each end withheld that fewer than ``smallest`` applicants reach.

    Columns are cut off at quantiles; in a small table, or where that is turned off, an end is one person's value.
    """
    rows = table.to_pylist()
    for row in rows if policy.protects else ():
        if row["low"] is None or row["feature"] not in applications.column_names:
            continue
        values = applications[row["feature"]]
        reached = {"low": pc.less_equal(values, row["low"]), "high": pc.greater_equal(values, row["high"])}
        row |= {end: None for end, mask in reached.items() if (pc.sum(mask).as_py() or 0) < policy.smallest}
    return ENCODINGS.build(**{column.name: [row[column.name] for row in rows] for column in ENCODINGS.columns})


# --------------------------------------------------------------------------------------------------------------------
# Findings as they are published: counted by group and by what was found.


_COUNTED = """
WITH cells AS (
    SELECT method, decision_maker, protected_attribute, "group", verdict, coalesce(refusal, '') AS refusal,
           count(*) AS findings, avg(statistic) AS mean_statistic
    FROM findings GROUP BY ALL
)
SELECT *, min(findings) OVER whole AS fewest, sum(findings) OVER whole AS units FROM cells
WINDOW whole AS (PARTITION BY method, decision_maker, protected_attribute, "group")
ORDER BY method, decision_maker, protected_attribute, "group", verdict, refusal
"""


def findings(table: pa.Table, fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_FINDINGS``. Counts are rounded like their sum, which they would disclose."""
    with connected() as connection:
        connection.register("findings", table)
        rows = connection.sql(_COUNTED).to_arrow_table().to_pylist()
    row_by_key: dict[tuple[str, ...], dict[str, object]] = {}
    for row in rows:
        whose = row["protected_attribute"], row["group"], row["decision_maker"]
        gone = fates.is_gone(*whose) or fates.is_ranged(*whose)
        if gone or small(fates.policy, row["fewest"]):
            # which verdicts occur is told of nobody: a group of three that all have one would be told
            row |= {"verdict": "withheld", "refusal": "", "findings": None, "mean_statistic": None}
            row_by_key[row["method"], *whose, ""] = row
            continue
        row_by_key[row["method"], *whose, row["verdict"], row["refusal"]] = row
        row["findings"] = rounded(fates.policy, row["findings"], fates.base_of(*whose, int(row["units"])))
        if row["mean_statistic"] is not None:
            row["mean_statistic"] = profiles.significant(fates.policy, row["mean_statistic"])
    return PUBLISHED_FINDINGS.build(
        **{c.name: [row[c.name] for row in row_by_key.values()] for c in PUBLISHED_FINDINGS.columns}
    )


# --------------------------------------------------------------------------------------------------------------------
# The exclusion waterfall and missing values, as they are published.


Row = Mapping[str, Any]


def waterfall(fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_WATERFALL``."""
    rows = [row for attribute in fates.people.attributes for row in _lines(fates, attribute.name, attribute.groups)]
    return PUBLISHED_WATERFALL.build(**{c.name: [row[c.name] for row in rows] for c in PUBLISHED_WATERFALL.columns})


def in_order(fates: Fates, attribute: str, groups: Sequence[str]) -> list[str]:
    """Groups by falling published size; those withheld last, by name: their order would disclose which is larger."""
    sizes = {group: fates.number(whole_of(attribute, group, fates.crowd.source)) for group in groups}
    return sorted(groups, key=lambda group: (sizes[group] is None, -(sizes[group] or 0), group))


def _lines(fates: Fates, attribute: str, groups: Sequence[str]) -> Iterator[Row]:
    groups = in_order(fates, attribute, groups)
    crowd, nothing = fates.crowd, ("", "", "")
    places: list[tuple[str, Place, tuple[str, str, str]]] = [("source", crowd.source, nothing)]
    for at, line in enumerate(crowd.lines):
        places.append(("refused", line_place(line), line))
        if at + 1 < len(crowd.lines) and crowd.lines[at + 1][0] != line[0]:
            places.append(("left", left_place(line[0]), (line[0], "", "")))
    places.append(("used", crowd.used, nothing))
    for number, (kind, place, line) in enumerate(places):
        stage, reason, column = line
        for group in (ALL, *groups):
            entry = fates.entry(whole_of(attribute, group, place))
            share = _approved(fates, attribute, group, place, line) if kind == "refused" else (None, False)
            yield {
                **{"protected_attribute": attribute, "line": number, "kind": kind, "stage": stage},
                **{"reason": reason, "column": column, "group": group, "n": entry.number},
                **{"approval": share[0], "withheld": entry.fate in GONE or share[1]},
            }


def _approved(fates: Fates, attribute: str, group: str, place: Place, line: tuple[str, str, str]) -> tuple[Any, bool]:
    """Share approved of refused records, and whether it is withheld; neither where decisions could not be read."""
    population = whole_of(attribute, group, place)
    entry, n = fates.entry(population, DENIED), fates.number(population)
    if not fates.crowd.readable(line) or entry.number == 0 == n:
        return None, False
    denied = fates.share_denied(attribute, group, place)
    if denied is None:
        return None, entry.fate in (*GONE, Fate.RANGE) or fates.is_coarse(population)
    return round(1 - denied, profiles.decimals(n or 1)), False


def missingness(lacks: Sequence[Row], fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_MISSINGNESS``, from the rows of ``MISSINGNESS``."""
    first, rows = fates.people.attributes[0].name if lacks else "", []
    for lack in lacks:
        place = lacking_place(lack["feature"], lack["reason"])
        entry = fates.entry(whole_of(first, ALL, place))
        gone, denied = entry.fate in GONE, fates.share_denied(first, ALL, place)
        auc = lack["auc"] if lack["reason"] == ANY and not gone else None
        present = None if gone or not lack["present"] else lack["favourable_present"] / lack["present"]
        missing = None if denied is None else round(1 - denied, profiles.decimals(entry.number or 1))
        rows.append(
            {
                **{"feature": lack["feature"], "reason": lack["reason"], "missing": entry.number},
                "approval_missing": missing,
                "approval_present": present if present is None else blunt(fates.policy, present, lack["present"]),
                "auc": None if auc is None else profiles.significant(fates.policy, auc),
                "withheld": gone or (denied is None and bool(lack["missing"])),
            }
        )
    return PUBLISHED_MISSINGNESS.build(**{c.name: [row[c.name] for row in rows] for c in PUBLISHED_MISSINGNESS.columns})


def blunt(policy: Policy, share: float, n: int) -> float:
    """A share of ``n`` people, not printed, with so few decimals that a few people more or less make no difference."""
    if not policy.protects:
        return share
    return round(share, max(floor(log10(max(n, 10) / (2 * policy.smallest))), 1))


# --------------------------------------------------------------------------------------------------------------------
# All other tables as they are published, column by column: what they say of a group goes with the group.
#
# A column of whole numbers counts people, or values of theirs; other numbers get three digits. Columns of the key, and
# settings such as the number of an epoch, stay.

_PEOPLE = ("n", "n_there", "rows")
"""Whole numbers that a row as a whole is about."""
_EVENTS = ("events", "denied", "raised", "lowered")
"""Whole numbers of those with an event: a few of them withhold the row under profiles that look at numerators."""
_PAIRED = ("raised", "lowered")
"""Events whose share is printed less one another: a few of them withhold the row under every profile."""
_SETTINGS = (
    *("quantile", "times", "rung", "terms", "percentile", "network", "epoch", "df", "year", "bins"),
    *("tests", "rejected", "dependent", "permutations", "as_good", "equivalent"),
)
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
    if fates.policy.protects and declared is VALIDATIONS:
        # Its rows count people of every stage, some of them several times: to one digit, none of a small table.
        for row in rows:
            for name in ("elements", "unexpected"):
                count = row[name]
                row[name] = int(float(f"{count:.0e}")) if count >= _LARGE else None if count else 0
    elif fates.policy.protects and declared is VERDICT_FINDINGS:
        # that something was found of a withheld group is not told either
        rows = [_row(declared, row, fates) for row in rows if not _is_gone(row, fates)]
    elif fates.policy.protects:
        rows = [_row(declared, row, fates) for row in rows]
    if declared is VERDICT_FINDINGS:
        for row in rows:
            counts = {name: "Some" if row[name] is None else f"{row[name]:,}" for name in ("n", "of")}
            row["sentence"] = row["sentence"].format(**counts)
    return target.build(**{column.name: [row[column.name] for row in rows] for column in target.columns})


def _row(declared: Table, row: Row, fates: Fates) -> Row:
    numbers = [column for column in declared.columns if column.type in ("double", "int64")]
    numeric_columns = [c for c in numbers if c.name not in (*declared.key, *_SETTINGS)]
    if _is_gone(row, fates):
        placeholders = {"words": "withheld", "reason": "withheld: it rests on few people"}
        unsaid = {column.name: placeholders[column.name] for column in declared.columns if column.name in placeholders}
        return {**row, **dict.fromkeys(column.name for column in numeric_columns), **unsaid}
    facts = {
        c.name: _count(c.name, row, fates) if c.type == "int64" else _double(c.name, row, fates)
        for c in numeric_columns
    }
    texts = {name: in_words(row[name], fates, people=False) for name in _TEXTS if row.get(name) and row["percentile"]}
    words = {"words": in_words(row["words"], fates)} if declared.name == "feasibility_facts" else {}
    if declared.name == "feasibility_facts":
        facts["value"] = _fact(row["value"], fates)
    if row.get("rung") == 0 and row.get("value") is not None:
        # A difference of two shares with nothing held constant is made of printed counts, as all else discloses it.
        plain = fates.plainly(row["protected_attribute"], row["group"], row["decision_maker"], row["value"])
        if plain is not None:
            facts |= {**dict.fromkeys(_TELLING), "value": None if isnan(plain) else plain}
    return {**row, **facts, **words, **texts}


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


def _count(name: str, row: Row, fates: Fates) -> int | None:
    count, attribute = row[name], row.get("protected_attribute")
    if count is None:
        return None
    if not attribute or not row.get("group"):
        return fates.of_all(count)
    if name in _EVENTS and not fates.policy.events_too and 0 < count < fates.policy.smallest:
        return int(count)
    return fates.printed(attribute, _group(row, name), row.get("decision_maker", ""), count)


def _double(name: str, row: Row, fates: Fates) -> float | None:
    value = row[name]
    if value is None or measures.is_of_few(name, row):
        return None
    if name in ("p", "q", "p_holm"):
        return profiles.p_value(fates.policy, value)
    if (n := measures.denominator(name, row, fates)) is not None:
        return measures.share(value, n, row, fates)
    return profiles.significant(fates.policy, value) + 0.0


def _fact(value: float | None, fates: Fates) -> float | None:
    """A fact of the graph: a whole number is a count, and rounded as counts are."""
    if value is None or value != int(value):
        return None if value is None else profiles.significant(fates.policy, value)
    count = int(value)
    if small(fates.policy, count):
        return None
    return profiles.significant(fates.policy, float(rounded(fates.policy, count)))


def in_words(text: str, fates: Fates, people: bool = True) -> str:
    """A sentence with its numbers as they are published; ``fewer than 5`` for a small count of ``people``."""

    def published_number(match: re.Match[str]) -> str:
        plain = match.group().replace(",", "")
        if "." in plain or not people:
            return f"{profiles.significant(fates.policy, float(plain)):g}"
        count = int(plain)
        if small(fates.policy, count):
            return f"fewer than {fates.policy.smallest}"
        printed, every = fates.of_all(count), fates.people.weights
        is_everybody = every is not None and count >= int(every.sum()) * 9 // 10
        number = printed if printed is not None and is_everybody else _fact(float(count), fates)
        return "some" if number is None else f"{number:,.0f}"

    return _NUMBER.sub(published_number, text)


def tables(raw: Sequence[tuple[Table, pa.Table]], fates: Fates) -> dict[str, pa.Table]:
    """The published tables by name."""
    return {published(declared).name: published_table(declared, table, fates) for declared, table in raw}
