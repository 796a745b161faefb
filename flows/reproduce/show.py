"""The lines of a reproduction, for people and for programmes.

Many cells agree, and nobody reads them: the short form has one row per table, quantity and group with the number of
cells that agree, and one row for every cell that does not.

Scope: the form of the output. What a verdict means: ``tasks.proof.lines``.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from tasks.proof.lines import CONFIRMED, Line, Value, Verdict
from tasks.proof.published import ASKED, BESIDE, REPRODUCED

_STYLE = {Verdict.AGREES: "green", Verdict.DIFFERS: "bold red", Verdict.OTHERWISE: "yellow", Verdict.INFORMATION: "dim"}

_COLUMNS = ("source", "what", "group", "published", "obtained", "difference", "verdict")

_OTHERWISE = (
    f"'{CONFIRMED.capitalize()}' means that the authors' own code, or a faster derivation checked against it, "
    "gives our figure for that cell, and that it is the paper that prints another."
)

_AT = {
    "coverage": ("d", "k"),
    "coverage_on_kauc_grid": ("d", "k"),
    "least_cost": ("c", "k"),
    "acf": ("attribute",),
    "smallest_cost": ("c",),
    **dict.fromkeys(("p_c", "p_t", "delta", "low", "high", "unfair"), ("complainant",)),
    "imagined": ("complainant", "column"),
    "coefficient": ("column", "cause"),
    **dict.fromkeys(("factual_values_differing", "counterfactual_values_differing"), ("column",)),
    **dict.fromkeys(("blocks_made_fair", "unfair_blocks"), ("blocks", "t")),
    "overall_ratio": ("t", "blocks"),
    **dict.fromkeys(("unfair_before", "unfair_after"), ("blocks", "t")),
    **dict.fromkeys(("rkl_by_records", "rnd_by_records", "rrd_by_records"), ("records",)),
    "mean_around": ("group", "complainant"),
    **dict.fromkeys(("mean_cost", "mean_cost_face", "mean_cost_over_face", "rows_covered"), ("cost", "k")),
    **dict.fromkeys(
        ("feasible_share", "feasible_mean_cost", "least_feasible_share", "largest_feasible_share"),
        ("epsilon", "removed"),
    ),
    **dict.fromkeys(("mean_factual", "mean_counterfactual", "mean_shift"), ("column",)),
    **dict.fromkeys(("initial_ratio", "mean_block_ratio", "overall_ratio_after"), ("records",)),
    **dict.fromkeys(("unfair_blocks_percent", "protected_modified_percent"), ("records",)),
    **dict.fromkeys(("points_changed", "recourse_cost", "ratio", "listed", "rkl", "rnd", "rrd"), ("method",)),
}
"""Names of what a cell is at, where its quantity does not begin with it (kauc: k, dauc: d, cauc: c)."""

_BY_VARIANT = ("variant", "k")
"""The same of other cells that are at a word."""


def tables(lines: Sequence[Line], *, every_cell: bool) -> Iterator[tuple[str, list[dict[str, str | Text]]]]:
    """The rows of a table for each data set, each with the data set's name."""
    for dataset, of_dataset in groupby(lines, key=lambda line: line.dataset):
        yield dataset, [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(list(of_dataset), every_cell)]


def summary(lines: Sequence[Line]) -> str:
    """Counts the lines by verdict: against what the paper prints, and against the reference outputs.

    Lines beside them are only counted.
    """
    beside = [line for line in lines if line.figure.source == BESIDE]
    asked = [line for line in lines if line.figure.source == ASKED]
    reference = [line for line in lines if line.figure.reference or line.figure.source == REPRODUCED]
    others = (REPRODUCED, ASKED, BESIDE)
    printed = [line for line in lines if not line.figure.reference and line.figure.source not in others]
    said = [_counted("against the paper's printed figures", printed), _counted("against the reference", reference)]
    if asked:
        said.append(_counted("against what is asked of the default", asked))
    if beside:
        said.append(f"told beside them, without a figure to compare with, {len(beside):,}")
    if any(line.why == CONFIRMED for line in lines):
        said.append(_OTHERWISE)
    return "\n".join(said)


def _counted(title: str, lines: Sequence[Line]) -> str:
    counts = Counter(line.verdict for line in lines)
    shown = [verdict for verdict in Verdict if counts[verdict] or verdict is Verdict.DIFFERS]
    return f"{title}, {len(lines):,}: " + ", ".join(f"{verdict.value} {counts[verdict]:,}" for verdict in shown)


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Returns the lines as plain values; null stands for a figure that has no value."""
    counts = Counter(line.verdict.value for line in lines)
    return {"counts": {v.value: counts[v.value] for v in Verdict}, "lines": [_plain(line) for line in lines]}


def _plain(line: Line) -> dict[str, Any]:
    cell = line.figure.cell
    return {
        "dataset": line.dataset,
        "source": line.figure.source,
        "reference": line.figure.reference,
        "what": cell.quantity,
        "group": cell.group,
        "at": list(cell.at),
        "published": _finite(line.figure.value),
        "obtained": _finite(line.obtained),
        "unfilled": line.obtained is None,
        "difference": line.difference,
        "tolerance": line.figure.tolerance,
        "at_most": line.figure.at_most,
        "at_least": line.figure.at_least,
        "verdict": line.verdict.value,
        "why": line.why,
    }


def _finite(value: Value | None) -> Value | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows(lines: list[Line], every_cell: bool) -> Iterator[tuple[str | Text, ...]]:
    """The rows of one data set, in the order in which its sources were read."""
    series: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        cell = line.figure.cell
        series.setdefault((line.figure.source, cell.quantity, cell.group), []).append(line)
    for (source, quantity, group), members in series.items():
        agree = sum(line.verdict is Verdict.AGREES for line in members)
        if len(members) == 1 or every_cell:
            yield from map(_row, members)
            continue
        if agree:
            count = Text(f"{agree} of {len(members)} cells agree", style=_STYLE[Verdict.AGREES])
            yield source, _words(quantity), group, "", "", _furthest(members), count
        yield from (_row(line) for line in members if line.verdict is not Verdict.AGREES)


def _furthest(members: Sequence[Line]) -> str:
    """The largest difference of cells that agree, if there is any."""
    agreeing = (line for line in members if line.verdict is Verdict.AGREES)
    furthest = max(abs(line.difference or 0.0) for line in agreeing)
    return f"<= {furthest:.4g}" if furthest else ""


def _row(line: Line) -> tuple[str | Text, ...]:
    cell = line.figure.cell
    worded = bool(cell.at) and isinstance(cell.at[0], str)
    names = _AT.get(cell.quantity, _BY_VARIANT if worded else cell.quantity[:1])
    at = ", ".join(f"{name} = {_number(value)}" for name, value in zip(names, cell.at, strict=False))
    difference = "" if line.difference is None else f"{line.difference:+.4g}"
    verdict = Text(line.verdict.value, style=_STYLE[line.verdict])
    if line.why:
        verdict.append(f": {line.why}")
    published = _number(line.figure.value)
    bound = "at most " if line.figure.at_most else "at least " if line.figure.at_least else ""
    shown = (f"{bound}{published}", _number(line.obtained), difference)
    what = f"{_words(cell.quantity)}, {at}" if at else _words(cell.quantity)
    return (line.figure.source, Text(what), cell.group, *shown, verdict)


def _words(quantity: str) -> str:
    return quantity.replace("_", " ")


def _number(value: Value | None) -> str:
    """At most six digits and no exponent; of a digest the beginning."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value if len(value) < 40 else value[:12]
    if math.isnan(value):
        return "undefined"
    return f"{value:,.4f}".rstrip("0").rstrip(".")
