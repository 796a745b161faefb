"""Published findings, exclusions and all other tables."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor, isnan, log10
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.table import Column, Table
from schemas.tables.applications import ANY, ENCODINGS, VALIDATIONS
from schemas.tables.readings import VERDICT_FINDINGS
from schemas.tables.verdicts import (
    PUBLISHED_AGREEMENT,
    PUBLISHED_AGREEMENT_PAIRS,
    PUBLISHED_FINDINGS,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_WATERFALL,
    WITHHELD_TABLE,
    published,
)
from tasks.lake.storage import connected
from tasks.metrics.algorithm.agreement import EXPLAINS, FLAGGED, OF_DENIED, Pair, Speaker, codes, withheld
from tasks.metrics.publish import measures
from tasks.metrics.publish.algorithm import profiles
from tasks.metrics.publish.algorithm.populations import ALL, Place
from tasks.metrics.publish.algorithm.primary import Fate
from tasks.metrics.publish.algorithm.profiles import Policy, is_coarse, rounded, small
from tasks.metrics.publish.measures import GONE, Fates
from tasks.metrics.publish.people import DENIED, lacking_place, left_place, line_place, whole_of

Row = Mapping[str, Any]

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
# Whom two methods flag, of those whom both could judge.


_FLAGS = """
WITH costs AS (
    SELECT decision_maker, protected_attribute, median(statistic) AS usual
    FROM findings JOIN attributes USING (protected_attribute)
    WHERE method = 'raguel' AND "group" = reference_group AND refusal IS NULL GROUP BY ALL
)
SELECT row_id, method, decision_maker, protected_attribute, "group", verdict, CASE
    WHEN method = 'fgce' AND verdict = 'infeasible' THEN true
    WHEN refusal IS NOT NULL OR verdict = 'not_identified' THEN NULL
    WHEN method = 'fgce' THEN false
    WHEN method = 'cst' THEN verdict = 'detected' AND q < 0.05
    WHEN method = 'cec' THEN verdict IN ('different_reasons', 'flipped_different_reasons')
    WHEN method = 'gcfn' THEN verdict = 'decision_changes'
    WHEN method = 'raguel' THEN statistic > usual
END AS flag
FROM findings JOIN attributes USING (protected_attribute) LEFT JOIN costs USING (decision_maker, protected_attribute)
WHERE method IN ('fgce', 'cst', 'cec', 'gcfn', 'raguel') AND "group" <> reference_group
ORDER BY ALL
"""
_ALONE = """
SELECT protected_attribute, "group", decision_maker, method, count(*) AS rows,
       count(*) FILTER (flag) AS flagged, count(*) FILTER (NOT flag) AS unflagged,
       count(*) FILTER (verdict = 'not_identified') AS not_identified
FROM flags GROUP BY ALL ORDER BY ALL
"""
_TOGETHER = """
SELECT a.protected_attribute, a."group", a.decision_maker, a.method AS first, b.method AS second, count(*) AS rows,
       count(*) FILTER (a.flag AND b.flag) AS both, count(*) FILTER (a.flag AND NOT b.flag) AS first_alone,
       count(*) FILTER (NOT a.flag AND b.flag) AS second_alone, count(*) FILTER (NOT a.flag AND NOT b.flag) AS neither,
       count(*) FILTER (a.verdict = 'not_identified' OR b.verdict = 'not_identified') AS not_identified
FROM flags AS a JOIN flags AS b USING (row_id, protected_attribute, "group", decision_maker)
WHERE a.method < b.method GROUP BY ALL ORDER BY ALL
"""
_EVERYBODY = 'SELECT protected_attribute, "group", decision_maker, count(DISTINCT row_id) AS n FROM flags GROUP BY ALL'
_WHOSE = ("protected_attribute", "group", "decision_maker")


def flags(findings: pa.Table, references: Mapping[str, str]) -> pa.Table:
    """A row for each finding of five methods about a group that is compared, with its flag; null: not to be judged.

    Args:
        findings: of the run, in the shape of ``FINDINGS``.
        references: protected attribute -> its reference group.
    """
    with connected() as connection:
        connection.register("findings", findings)
        names = {"protected_attribute": [*references], "reference_group": [*references.values()]}
        connection.register("attributes", pa.table(names, schema=pa.schema([(name, pa.string()) for name in names])))
        return connection.sql(_FLAGS).to_arrow_table()


@dataclass(frozen=True)
class Pairing:
    """What pairs of methods are made with."""

    references: Mapping[str, str]
    """Protected attribute -> its reference group."""
    neighbours: int | None
    """Neighbours of an applicant in CST; None where it does not run."""
    fewest: int
    """People that a verdict needs."""
    seed: int


def agreement_pairs(findings: pa.Table, measured: pa.Table, pairing: Pairing, fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_AGREEMENT_PAIRS``: each pair of methods, by group and decision maker.

    A table with a small count is withheld whole, and so is one by which another's would be told. Where counts are
    rounded, all other numbers are made of the rounded ones.

    Args:
        findings: of the run.
        measured: the published measures.
        pairing: what pairs are made with.
        fates: the answer of the disclosure pass.
    """
    with connected() as connection:
        connection.register("flags", flags(findings, pairing.references))
        alone, together, people = (
            connection.sql(query).to_arrow_table().to_pylist() for query in (_ALONE, _TOGETHER, _EVERYBODY)
        )
    everybody = {tuple(row[name] for name in _WHOSE): row["n"] for row in people}
    singles: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
    for row in alone:
        singles[tuple(row[name] for name in _WHOSE)][row["method"]] = row
    pairs: dict[tuple[str, ...], dict[tuple[str, str], Row]] = defaultdict(dict)
    for row in together:
        pairs[tuple(row[name] for name in _WHOSE)][row["first"], row["second"]] = row
    facts_of_codes = {
        (*(row[name] for name in _WHOSE), row["method"], row["measure"]): row["value"]
        for row in _of_codes(measured)
        if row["measure"] != "support" or '"cst"' in row["parameters"]
    }
    rng, out = np.random.default_rng(pairing.seed), []
    for whose, of_group in pairs.items():
        attribute, group, maker = whose
        base = max(fates.base(maker), fates.policy.round_to)
        tables = {names: Pair(*(row[name] for name in _CELLS)) for names, row in of_group.items()}
        margins = {method: (row["flagged"], row["unflagged"]) for method, row in singles[whose].items()}
        hidden = withheld(tables, margins, everybody[whose], fates.policy.smallest)
        is_gone = fates.is_gone(attribute, group, maker) or fates.is_ranged(attribute, group, maker)
        for names, row in of_group.items():
            pair = Pair(*(rounded(fates.policy, count, base) for count in tables[names].cells))
            is_hidden = is_gone or names in hidden or is_coarse(fates.policy, base, pair.n)
            speakers = [
                Speaker(
                    method,
                    maker,
                    method in OF_DENIED,
                    prevalence=math.nan if is_hidden else share,
                    neighbours=pairing.neighbours if method == "cst" else None,
                    p=facts_of_codes.get((*whose, method, "share_significant_p")),
                    not_identified=0.0 if is_hidden else single["not_identified"] / single["rows"],
                    support=facts_of_codes.get((*whose, method, "support")),
                )
                for method, share in zip(names, pair.prevalences(), strict=True)
                for single in (singles[whose][method],)
            ]
            outside = {
                "not_asked": sum(singles[whose][method]["rows"] - row["rows"] for method in names),
                "refused": row["rows"] - tables[names].n - row["not_identified"],
                "not_identified": row["not_identified"],
            }
            if any(small(fates.policy, count) for count in outside.values()):
                outside = {}
            counts = {name: rounded(fates.policy, count, base) for name, count in outside.items()}
            numbers = {} if is_hidden else {**_numbers(pair, rng), **counts}
            # whether a withheld table is of few people is told of none
            why = codes(speakers[0], speakers[1], pairing.fewest if is_hidden else pair.n, pairing.fewest)
            out.append(
                {
                    **dict.fromkeys(column.name for column in PUBLISHED_AGREEMENT_PAIRS.columns),
                    **{name: row[name] for name in (*_WHOSE, "first", "second")},
                    **numbers,
                    "may_differ": "; ".join(why),
                    "first_flag": FLAGGED[names[0]],
                    "second_flag": FLAGGED[names[1]],
                    "withheld": is_hidden,
                }
            )
    return PUBLISHED_AGREEMENT_PAIRS.build(
        **{c.name: [row[c.name] for row in out] for c in PUBLISHED_AGREEMENT_PAIRS.columns}
    )


_CELLS = ("both", "first_alone", "second_alone", "neither")


def explained(agreement: pa.Table, measured: pa.Table, pairing: Pairing) -> pa.Table:
    """The published table of signs, with ranges of draws with permuted labels, and codes of why other signs may differ.

    Args:
        agreement: in the shape of ``PUBLISHED_AGREEMENT``.
        measured: the published measures.
        pairing: what codes are made with.
    """
    facts_of_codes = {
        (*(row[name] for name in _WHOSE), row["method"], row["measure"], row["parameters"]): row["value"]
        for row in _of_codes(measured)
    }
    is_null = pc.and_(pc.ends_with(measured["measure"], "_null"), pc.equal(measured["parameters"], "{}"))
    null_ranges = {
        tuple(row[name] for name in (*_WHOSE, "method", "measure")): {"null_low": row["low"], "null_high": row["high"]}
        for row in measured.filter(is_null).to_pylist()
    }
    rows, speakers = agreement.to_pylist(), list[Speaker]()
    for row in rows:
        whose = tuple(row[name] for name in (*_WHOSE, "method"))
        row |= null_ranges.get((*whose, f"{row['measure']}_null"), {})
        variant = json.dumps({"variant": row["measure"].removesuffix("_effect")})
        permuted = facts_of_codes.get((*whose, "st_effect_p", "{}")) if row["measure"] == "st_effect" else None
        speakers.append(
            Speaker(
                row["method"],
                row["decision_maker"],
                row["method"] in OF_DENIED,
                row["sign"],
                row["measure"],
                neighbours=pairing.neighbours if row["method"] == "cst" else None,
                p=row["p"] if permuted is None else permuted,
                not_identified=facts_of_codes.get((*whose, "not_identified_share", "{}")) or 0.0,
                support=facts_of_codes.get((*whose, "support", variant)),
            )
        )
    by_group: dict[tuple[str, str], list[tuple[Row, Speaker]]] = defaultdict(list)
    for row, speaker in zip(rows, speakers, strict=True):
        by_group[row["protected_attribute"], row["group"]].append((row, speaker))
    for row, speaker in zip(rows, speakers, strict=True):
        why: set[str] = set()
        for other_row, other in by_group[row["protected_attribute"], row["group"]]:
            if other.sign != speaker.sign:  # a withheld number of people is no reason
                n = min(of["n"] or pairing.fewest for of in (row, other_row))
                why |= set(codes(speaker, other, n, pairing.fewest))
        row["explains"] = "; ".join(code for code in EXPLAINS if code in why)
    return PUBLISHED_AGREEMENT.build(**{c.name: [row[c.name] for row in rows] for c in PUBLISHED_AGREEMENT.columns})


def _of_codes(measured: pa.Table) -> Iterator[Row]:
    """The measures of whole groups that codes are about: p with permuted labels, support, rows not identified."""
    names = pa.array(["share_significant_p", "st_effect_p", "support", "not_identified_share"])
    for row in measured.filter(pc.is_in(measured["measure"], names)).to_pylist():
        if row["subgroup"] == 0:
            yield row


def _numbers(pair: Pair, rng: np.random.Generator) -> dict[str, float | int | None]:
    """Numbers of a pair that is shown; null where one is not defined."""
    null_low, null_high = pair.null(rng.spawn(1)[0])
    (kappa_low, kappa_high), (ac1_low, ac1_high) = pair.intervals(rng)
    values = {
        **{"agreement": pair.agreement, "null_low": null_low, "null_high": null_high},
        **{"kappa": pair.kappa, "kappa_low": kappa_low, "kappa_high": kappa_high},
        **{"ac1": pair.ac1, "ac1_low": ac1_low, "ac1_high": ac1_high, "jaccard": pair.jaccard},
    }
    return {
        "n": pair.n,
        **dict(zip(_CELLS, pair.cells, strict=True)),
        **{name: round(value, 3) + 0.0 if math.isfinite(value) else None for name, value in values.items()},
    }


# --------------------------------------------------------------------------------------------------------------------
# The exclusion waterfall and missing values, as they are published.


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
    *("tests", "rejected", "dependent", "permutations", "as_good", "equivalent", "peers"),
)
_GROUPS = ("group", "to_group", "reference_group")
_TELLING = ("low", "high", "se", "unseen", "odds_ratio", "rv", "rv_alpha", "e_value", "e_value_near")
"""Numbers beside an effect that are functions of the same four counts, where nothing is held constant."""
_TEXTS = ("at",)
"""Texts that are a value of a column: the median, say, of applicants."""
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
FLOW = "flow"
"""Table of the ends of all applications, within which others count some."""
_COUNTS = re.compile(r"\d+% and \d+%|[\d,]+ of [\d,]+")
"""What a reason counts: loans that need not report a price, applicants of a sample."""
_LARGE = 100


def published_table(declared: Table, table: pa.Table, fates: Fates, crossed: Collection[int] = frozenset()) -> pa.Table:
    """A raw table as its published declaration has it.

    Args:
        declared: the raw declaration.
        table: the raw table.
        fates: what becomes of every count.
        crossed: places of rows that tell few people together with another table.
    """
    target, rows = published(declared), table.to_pylist()
    if fates.policy.protects and declared is VALIDATIONS:
        # Its rows count people of every stage, some of them several times: to one digit, none of a small table.
        for row in rows:
            for name in ("elements", "unexpected"):
                count = row[name]
                row[name] = int(float(f"{count:.0e}")) if count >= _LARGE else None if count else 0
            expected = json.loads(row["expected"])
            if "rows" in expected:  # a balance, with the exact number of rows: less another, few people
                row["expected"] = json.dumps({"rows": expected["rows"]})
    elif fates.policy.protects and declared is VERDICT_FINDINGS:
        # that something was found of a withheld group is not told either
        rows = [_row(declared, row, fates) for row in rows if not _is_gone(row, fates)]
    elif fates.policy.protects:
        if declared.parts:
            rows = _parts(declared, rows, fates, crossed)
        else:
            rows = [
                _blank(declared, row) if at in crossed else _row(declared, row, fates) for at, row in enumerate(rows)
            ]
    if declared is VERDICT_FINDINGS:
        for row in rows:
            counts = {name: "Some" if row[name] is None else f"{row[name]:,}" for name in ("n", "of")}
            row["sentence"] = row["sentence"].format(**counts)
    return target.build(**{column.name: [row[column.name] for row in rows] for column in target.columns})


def _parts(declared: Table, rows: Sequence[Row], fates: Fates, crossed: Collection[int] = frozenset()) -> list[Row]:
    """Rows of a table whose counts part people: those of parts as they are, or a row of each group that has none.

    Sums and differences would tell a single withheld count, those of other attributes and of shares included. Rows
    without a part that tell few people together with another table have no numbers either way.
    """
    parts = declared.parts
    out = [_blank(declared, row) if at in crossed else _row(declared, row, fates) for at, row in enumerate(rows)]
    parted = [at for at, row in enumerate(rows) if row[parts[0]]]
    counts = [c.name for c in declared.columns if c.type == "int64" and c.name not in _SETTINGS]
    lost = any(out[at][name] is None and rows[at][name] is not None for at in parted for name in counts)
    if not parted or not (
        lost or crossed or any(small(fates.policy, abs(count)) for count in _disclosed(declared, rows, counts))
    ):
        return out
    texts = {c.name: "" for c in declared.columns if c.type == "string" and (not c.codes or "" in c.codes)}
    first = {**rows[parted[0]], **texts, **{c.name: None for c in declared.columns if c.type in ("double", "int64")}}
    first |= dict.fromkeys(parts, "") | {n: WITHHELD_TABLE for n in (parts[0], "words", "reason") if n in first}
    whose: list[dict[str, Any]] = [{}]
    if "group" in declared.key:  # every group, since which of them has a row tells a count, too
        names = [(a.name, group) for a in fates.people.attributes for group in a.groups]
        whose = [{"protected_attribute": attribute, "group": group} for attribute, group in names]
    elif "of" in declared.key:
        whose = [{"of": of} for of in dict.fromkeys(row["of"] for row in rows)]
    kept = {name: rows[parted[0]][name] for name in declared.key if name not in parts}
    return [row for at, row in enumerate(out) if at not in set(parted)] + [{**first, **kept, **of} for of in whose]


_WHOLES = (("n", "events"), ("n", "named"), ("named", "events"), ("peers_n", "peers_events"))
_FAMILY = ("decision_maker", "protected_attribute", "group", "outcome", "of")


def _disclosed(declared: Table, rows: Sequence[Row], counts: Sequence[str]) -> Iterator[int]:
    """Counts of people that the rows of parts disclose: each, the rest of its whole, and differences of sums."""
    wholes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    products: dict[tuple[Any, ...], int] = defaultdict(int)
    sums: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
    family = [name for name in _FAMILY if name in declared.key and name not in declared.parts]
    across = next((name for name in ("protected_attribute", "of") if name in declared.key), None)
    apart = [name for name in declared.key if name not in ("group", across)]
    for row in rows:
        part, whose = row[declared.parts[0]], tuple(row[name] for name in family)
        for name in {"n", "n_reference", "peers_n"} & set(counts):
            wholes[name, *whose].append(row[name])
            products[name, *whose] += row[name] if part else 0
        for name in counts if part else ():
            yield row[name]
            if across:
                by_side = sums[name, *(row[column] for column in apart)]
                start = row.get("n_reference", 0) if name == "n" else 0
                by_side[row[across]] = by_side.get(row[across], start) + row[name]
        yield from (row[n] - row[k] for n, k in _WHOLES if part and {n, k} <= row.keys() and row[n] > row[k])
    for key, numbers in wholes.items():
        yield from (max(numbers) - number for number in (*numbers, products[key]))
    sided: dict[str, dict[Any, list[int]]] = defaultdict(dict)
    for (name, *_, part), by_side in sums.items():
        if name != "n_reference":  # a row of every group has them
            differences = [first - second for first, second in combinations(by_side.values(), 2)]
            sided[name][part] = [*by_side.values(), *differences]
            yield from differences
    for numbers_of in sided.values():
        for inner, outer in (pair for pair in declared.covered if {pair[0], *pair[1]} <= numbers_of.keys()):
            yield from (sum(many) - few for few, *many in zip(*(numbers_of[p] for p in (inner, *outer)), strict=True))


def _numeric(declared: Table) -> list[Column]:
    """Columns with numbers of people or of what was measured."""
    numbers = [column for column in declared.columns if column.type in ("double", "int64")]
    return [column for column in numbers if column.name not in (*declared.key, *_SETTINGS)]


def _blank(declared: Table, row: Row) -> Row:
    """A row without its numbers."""
    placeholders = {"words": "withheld", "reason": "withheld: it rests on few people"}
    unsaid = {column.name: placeholders[column.name] for column in declared.columns if column.name in placeholders}
    return {**row, **dict.fromkeys(column.name for column in _numeric(declared)), **unsaid}


def _row(declared: Table, row: Row, fates: Fates) -> Row:
    numeric_columns = _numeric(declared)
    if _is_gone(row, fates):
        return _blank(declared, row)
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
    lost = any(facts[c.name] is None and row[c.name] is not None for c in numeric_columns if c.type == "int64")
    if declared.of_counts and (lost or (fates.policy.round_to > 1 and row["events"] is not None)):
        shares = [c.name for c in declared.columns if c.name == declared.of_counts[0] and c.maximum == 1.0]
        n, events = facts["n"], facts["events"]
        facts |= dict.fromkeys(declared.of_counts)
        facts |= {name: profiles.share(int(events), int(n)) for name in shares if n and events is not None}
    if row.get("reason") and "protected_attribute" in row:
        words["reason"] = _COUNTS.sub("some", row["reason"])
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
    if value is None or measures.is_of_few(name, row, fates.policy):
        return None
    if name in ("p", "q", "p_holm"):
        return profiles.p_value(fates.policy, value)
    if name == "expected" and "race" in row:  # of the least members that an estimate needs: none of fewer
        count = None if row["value"] is None else fates.of_all(round(value))
        return None if count is None or small(fates.policy, row["n"], round(value)) else float(count)
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
    crossed = _crossed(raw, fates.policy) if fates.policy.protects else {}
    out = {
        declared.name: published_table(declared, table, fates, crossed.get(declared.name, ()))
        for declared, table in raw
    }
    for declared, table in raw:
        other = out.get(declared.goes_with)
        if other is not None and WITHHELD_TABLE in other.column(0).to_pylist():
            columns = {name: out[declared.name][name] for name in out[declared.name].column_names}
            columns |= dict.fromkeys(("n", "expected"), [None] * table.num_rows)
            out[declared.name] = published(declared).build(**columns)
    return {published(declared).name: out[declared.name] for declared, _ in raw}


def _crossed(raw: Sequence[tuple[Table, pa.Table]], policy: Policy) -> dict[str, set[int]]:
    """Name of each table -> places of its rows that differ in few people from rows that hold all of theirs."""
    rows_of = {declared.name: table.to_pylist() for declared, table in raw if declared.inside or declared.name == FLOW}
    out: dict[str, set[int]] = {}
    for declared, _ in raw:
        rows = rows_of[declared.name] if declared.inside else []
        groups = {(row["protected_attribute"], row["group"]) for row in rows}
        for name, parts in declared.inside:
            sizes = _sizes(rows_of.get(name, ()), parts)
            for at, row in enumerate(rows):
                if row.get("product"):  # a part of a row that is compared
                    continue
                attribute = row["protected_attribute"]
                of_group = [sizes[whose] for whose in ((attribute, row["group"]),) if whose in sizes]
                references = [size for whose, size in sizes.items() if whose[0] == attribute and whose not in groups]
                outside = [size - row["n"] for size in of_group]
                outside += [size - row["n_reference"] for size in references if "n_reference" in row]
                if any(small(policy, few) for few in outside):
                    out.setdefault(declared.name, set()).add(at)
    return out


def _sizes(rows: Sequence[Row], parts: Sequence[str]) -> dict[tuple[str, str], int]:
    """People of each attribute and group: those of some ends, or of the fullest row; empty: the reference group."""
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        attribute = row["protected_attribute"]
        if parts:
            sizes[attribute, row["group"]] += row["events"] if row["outcome"] in parts else 0
            continue
        for group, count in ((row["group"], row["n"]), ("", row["n_reference"])):
            sizes[attribute, group] = max(sizes[attribute, group], count)
    return sizes
