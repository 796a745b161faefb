"""The recipe of a number column as SQL: which cells it reads by itself, and what it makes of them.

A cell that the guard takes is digits with the recipe's marks, between texts that Python has read beside other numbers:
`$`, ` %`, `-`. Every other cell is left to Python, each distinct text once. Scope: expressions. Queries: ``step``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from tasks.ingest.hmda.canonical import literal
from tasks.ingest.intake.recipe import Reading, codes_of, number_cell

MOST_PAIRS: Final = 24
"""Pairs of texts before and behind a number that one guard takes; those of the others are left to Python."""
_LONGEST: Final = 40
"""Bytes of a cell that the guard takes."""
_PARTS: Final = re.compile(r"([^0-9]*)[0-9](?:.*[0-9])?([^0-9]*)", re.DOTALL)
_LOOKALIKES: Final = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}
"""Characters that Python reads as a mark between digits."""


@dataclass(frozen=True)
class NumberSql:
    """SQL of a column of numbers."""

    guard: str
    """Whether SQL reads the cell."""
    value: str
    """The number of a cell that the guard takes, as canonical text; empty for a code."""
    signature: str
    """A number that is the same for cells that the guard takes and the same rules have read."""


class _Pair(NamedTuple):
    """Texts before and behind a number, and whether they make it negative."""

    before: str
    behind: str
    negative: bool


def number_sql(reading: Reading, cell: str, texts: Iterable[str]) -> NumberSql:
    """The SQL of a column.

    Args:
        reading: of the column.
        cell: SQL of a cell.
        texts: some texts of the column.
    """
    recipe = reading.recipe
    usual = recipe.decimal or next((mark for mark in ".," if mark not in recipe.thousands), None)
    if usual is None:
        return NumberSql("false", "''", "0")
    marks = [mark for listed in recipe.thousands for mark in _LOOKALIKES.get(listed, listed)]
    marks = [
        mark for mark in marks if len(mark) == 1 and number_cell(reading, f"1{mark}234{mark}567").text == "1234567"
    ]
    pairs = [*_pairs(reading, usual, marks, texts)]
    whole = ["0", "[1-9][0-9]*", *(f"[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+" for mark in marks)]
    number = f"(?:{'|'.join(whole)})(?:{re.escape(usual)}[0-9]+)?"
    pattern = "|".join(f"{re.escape(pair.before)}{number}{re.escape(pair.behind)}" for pair in pairs)
    words = [word.strip() for word in (*reading.exempt, *reading.missing, *recipe.missing)]
    apart = "".join(f" AND {cell} <> {literal(word)}" for word in words if re.search("[0-9]", word))
    guard = f"(strlen({cell}) <= {_LONGEST} AND regexp_full_match({cell}, {literal(pattern)}){apart})"
    value = _value(cell, usual, marks, pairs)
    affixes = {text for pair in pairs for text in (pair.before, pair.behind) if text}
    bits = "".join(
        f" + {2**i} * CAST(contains({cell}, {literal(t)}) AS INTEGER)" for i, t in enumerate(sorted(affixes), 1)
    )
    codes = sorted(codes_of(reading))
    if codes:
        is_code = f"{value} IN ({', '.join(map(literal, codes))})"
        value = f"(CASE WHEN {is_code} THEN '' ELSE {value} END)"
        bits += f" + {2 ** (len(affixes) + 1)} * CAST({value} = '' AS INTEGER)"
    return NumberSql(guard, value, f"(CAST({value} <> {cell} AS INTEGER){bits})")


def _pairs(reading: Reading, usual: str, marks: list[str], texts: Iterable[str]) -> Iterator[_Pair]:
    """Pairs that change nothing of a number but its sign, the bare number first."""
    probes = ["7", "12", "480", "1234", "0", f"5{usual}25", f"12345{usual}5", *(f"1{mark}234" for mark in marks)]
    plain = ["7", "12", "480", "1234", "0", "5.25", "12345.5", *("1234" for _ in marks)]
    codes = codes_of(reading)
    kept = [(probe, value) for probe, value in zip(probes, plain, strict=True) if value not in codes]
    candidates = {("", ""): 0}
    for text in texts:
        match = _PARTS.fullmatch(text)
        if match and usual not in (match[1], match[2]):  # which would be removed from between digits, too
            candidates[match[1], match[2]] = candidates.get((match[1], match[2]), 0) + 1
    frequent = sorted(candidates, key=lambda pair: (pair != ("", ""), -candidates[pair]))[:MOST_PAIRS]
    out: list[_Pair] = []
    for before, behind in frequent:
        read = [number_cell(reading, f"{before}{probe}{behind}") for probe, _ in kept]
        for sign in ("", "-"):
            wanted = [value if value == "0" else sign + value for _, value in kept]
            if [cell.text for cell in read if cell.fate == "value"] == wanted:
                out.append(_Pair(before, behind, sign == "-"))
    positive = [pair for pair in out if not pair.negative]
    yield from positive
    for pair in out:
        if pair.negative and pair.before and not any(other.before.startswith(pair.before) for other in positive):
            yield pair


def _value(cell: str, usual: str, marks: list[str], pairs: list[_Pair]) -> str:
    digits = cell
    texts = {text for pair in pairs for text in (pair.before, pair.behind) if text}
    for text in [*sorted(texts, key=len, reverse=True), *marks]:
        digits = f"replace({digits}, {literal(text)}, '')"
    digits = digits if usual == "." else f"replace({digits}, ',', '.')"
    shorter = f"rtrim(rtrim({digits}, '0'), '.')"
    value = f"(CASE WHEN suffix({digits}, '0') AND contains({digits}, '.') THEN {shorter} ELSE {digits} END)"
    if usual != ".":  # as Python writes it: 1.234 would be read as a thousand
        value = (
            f"({value} || CASE WHEN regexp_full_match({value}, '[1-9][0-9]{{0,2}}[.][0-9]{{3}}') THEN '0' ELSE '' END)"
        )
    negative = " OR ".join(f"starts_with({cell}, {literal(pair.before)})" for pair in pairs if pair.negative)
    return f"(CASE WHEN ({negative}) AND {value} <> '0' THEN '-' || {value} ELSE {value} END)" if negative else value
