"""The recipe of a number column as SQL: which cells it reads by itself, and what it makes of them.

A cell that the guard takes is digits with the recipe's marks, between texts that Python has read beside other numbers:
`$`, ` %`, `-`. Every other cell is left to Python, each distinct text once. Scope: expressions. Queries: ``step``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tasks.ingest.hmda.canonical import literal
from tasks.ingest.intake.recipe import Reading, number_cell

MOST_PAIRS: Final = 12
"""Pairs of texts before and behind a number that one guard takes; those of the others are left to Python."""
_LONGEST: Final = 40
"""Bytes of a cell that the guard takes."""
_PARTS: Final = re.compile(r"([^0-9]*)[0-9](?:.*[0-9])?([^0-9]*)", re.DOTALL)
_LOOKALIKES: Final = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}
"""Characters that Python reads as a mark between digits."""


@dataclass(frozen=True)
class NumberSql:
    """SQL of a column of numbers: columns that build on each other, so that nothing is computed twice."""

    layers: tuple[Mapping[str, str], ...]
    """Name -> expression over the rows and the layers before."""
    in_sql: str
    """Whether SQL reads the cell."""
    value: str
    """The number of a cell that is taken, as canonical text; empty for a code."""
    signature: str
    """A number that is the same for cells that are taken and the same rules have read."""


def layered(rows: str, columns: Iterable[NumberSql]) -> str:
    """SQL of the rows with the layers of these columns."""
    for layer in zip(*(column.layers for column in columns), strict=True):
        expressions = "".join(f", {sql} AS {name}" for of_column in layer for name, sql in of_column.items())
        rows = f"(SELECT *{expressions} FROM {rows})"  # noqa: S608 names are ours, values are quoted
    return rows


class _Pair(NamedTuple):
    """Texts before and behind a number, and whether they make it negative."""

    before: str
    behind: str
    negative: bool


def number_sql(reading: Reading, at: int, texts: Iterable[str]) -> NumberSql:
    """The SQL of a column.

    Args:
        reading: of the column.
        at: its place among the columns of the source, whose cells are ``c0``, ``c1``, ...
        texts: some texts of the column.
    """
    cell, digits, short, signed, value = (f"{letter}{at}" for letter in "cdnsv")
    recipe = reading.recipe
    usual = str(recipe.decimal or "") or next((mark for mark in ".," if mark not in recipe.thousands), "")
    marks = [mark for listed in recipe.thousands for mark in _LOOKALIKES.get(listed, listed)]
    marks = [
        mark for mark in marks if len(mark) == 1 and number_cell(reading, f"1{mark}234{mark}567").text == "1234567"
    ]
    pairs = [*_pairs(reading, usual, marks, texts)] if usual else []  # else each cell has to prove its own marks
    integers = ["0", "[1-9][0-9]*", *(f"[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+" for mark in marks)]
    number = f"(?:{'|'.join(integers)})(?:{re.escape(usual)}[0-9]+)?"
    pattern = "|".join(f"{re.escape(pair.before)}{number}{re.escape(pair.behind)}" for pair in pairs)
    words = [word.strip() for word in (*reading.exempt, *reading.further)]
    apart = "".join(f" AND {cell} <> {literal(word)}" for word in words if re.search("[0-9]", word))
    guard = f"strlen({cell}) <= {_LONGEST} AND regexp_full_match({cell}, {literal(pattern)}){apart}"
    bare = cell
    affixes = sorted({text for pair in pairs for text in (pair.before, pair.behind) if text}, key=len, reverse=True)
    for text in [*affixes, *marks]:
        bare = f"replace({bare}, {literal(text)}, '')"
    bare = f"replace({bare}, ',', '.')" if usual == "," else bare
    trimmed = f"rtrim(rtrim({digits}, '0'), '.')"
    shorter = f"CASE WHEN suffix({digits}, '0') AND contains({digits}, '.') THEN {trimmed} ELSE {digits} END"
    thousand = f"regexp_full_match({short}, '[1-9][0-9]{{0,2}}[.][0-9]{{3}}')"
    # as Python writes it where commas stand before decimals: 1.234 would be read as a thousand
    longer = short if usual == "." else f"CASE WHEN {thousand} THEN {short} || '0' ELSE {short} END"
    negative = " OR ".join(f"starts_with({cell}, {literal(pair.before)})" for pair in pairs if pair.negative)
    with_sign = f"CASE WHEN ({negative}) AND {signed} <> '0' THEN '-' || {signed} ELSE {signed} END"
    with_sign = with_sign if negative else signed
    codes = ", ".join(map(literal, sorted(reading.codes)))
    last = f"CASE WHEN ({with_sign}) IN ({codes}) THEN '' ELSE {with_sign} END" if codes else with_sign
    tests = [f"{value} <> {cell}", *(f"contains({cell}, {literal(text)})" for text in affixes), f"{value} = ''"]
    signature = " + ".join(f"{2**i} * CAST({test} AS INTEGER)" for i, test in enumerate(tests))
    layers = ({digits: bare, f"g{at}": guard if pairs else "false"}, {short: shorter}, {signed: longer}, {value: last})
    return NumberSql(layers, f"g{at}", value, signature)


def _pairs(reading: Reading, usual: str, marks: list[str], texts: Iterable[str]) -> Iterator[_Pair]:
    """Pairs that change nothing of a number but its sign, the bare number first."""
    probes = ["7", "12", "480", "1234", "0", f"5{usual}25", f"12345{usual}5", *(f"1{mark}234" for mark in marks)]
    plain = ["7", "12", "480", "1234", "0", "5.25", "12345.5", *("1234" for _ in marks)]
    codes = reading.codes
    tests = [(probe, value) for probe, value in zip(probes, plain, strict=True) if value not in codes]
    candidates = {("", ""): 0}
    for text in texts:
        match = _PARTS.fullmatch(text)
        if match and usual not in (match[1], match[2]):  # which would be removed from between digits, too
            candidates[match[1], match[2]] = candidates.get((match[1], match[2]), 0) + 1
    frequent = sorted(candidates, key=lambda pair: (pair != ("", ""), -candidates[pair]))[:MOST_PAIRS]
    out: list[_Pair] = []
    for before, behind in frequent:
        results = [number_cell(reading, f"{before}{probe}{behind}") for probe, _ in tests]
        for sign in ("", "-"):
            expected = [value if value == "0" else sign + value for _, value in tests]
            if [cell.text for cell in results if cell.fate == "value"] == expected:
                out.append(_Pair(before, behind, sign == "-"))
    positive = [pair for pair in out if not pair.negative]
    yield from positive
    for pair in out:
        if pair.negative and pair.before and not any(other.before.startswith(pair.before) for other in positive):
            yield pair
