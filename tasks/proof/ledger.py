"""The ledger of the papers: a row for every table and figure that they print, and how ours stands to it.

Scope: what ``data/published`` says of tables and figures, and the counts of compared figures. Its pages:
``flows.reproduce``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tasks.proof.lines import Line, Verdict
from tasks.proof.published import NOT_RUN


class Status(StrEnum):
    """How a table or figure stands."""

    MET = "met"
    """Every figure agrees within its tolerance, or what keeps it from that is explained."""
    BESIDE = "beside"
    """Published and obtained stand side by side, without a verdict."""
    DRAWN = "drawn"
    """The paper prints no numbers; ours are drawn."""
    CANNOT = "cannot"
    """Data or definition cannot be had, for the reason that is given."""
    NOT_RUN = "not run"
    """Not at the size that was asked for."""
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True)
class Entry:
    """A table or figure of a paper."""

    what: str
    """The paper's own number, such as ``Table VI``."""
    shows: str
    declared: frozenset[Status]
    reasons: tuple[str, ...]
    datasets: tuple[str, ...]
    drawings: frozenset[tuple[str, str]]
    """Data sets, and names of the drawings of each."""
    quantities: frozenset[tuple[str, str, str]]
    """Data sets, sources and quantities of its printed figures."""


@dataclass
class Tally:
    """Compared figures by how they came out."""

    figures: int = 0
    agree: int = 0
    explained: int = 0
    """Judged, and not ours, for a reason that is told beside each."""
    information: int = 0
    """Without a tolerance: nobody is judged by them."""
    not_run: int = 0
    differ: int = 0
    why: set[str] = field(default_factory=set)

    def add(self, line: Line) -> None:
        """Count a line."""
        self.figures += 1
        figure = line.figure
        judged = bool(figure.tolerance) or figure.at_most or figure.at_least
        unfilled = line.obtained is None and line.verdict is Verdict.INFORMATION
        if unfilled or str(line.obtained).startswith(NOT_RUN):
            self.not_run += 1
        elif line.verdict is Verdict.AGREES:
            self.agree += 1
        elif line.verdict is Verdict.DIFFERS:
            self.differ += 1
        elif judged or line.verdict is Verdict.OTHERWISE:
            self.explained += 1
        else:
            self.information += 1
        if line.why and line.verdict is not Verdict.AGREES:
            self.why.add(line.why)


@dataclass(frozen=True)
class Row:
    """A table or figure, and how ours stands to it."""

    entry: Entry
    tally: Tally
    status: tuple[Status, ...]


def entries(said: Mapping[str, Any]) -> list[Entry]:
    """The tables and figures that a file of published figures names, tables first, in its order.

    Args:
        said: A file of ``data/published``; blocks without ``what`` are of no table of the paper.

    Raises:
        ValueError: A block has no ``shows`` or ``status``; none of ``drawn_by`` and rows; or cannot, without a reason.
    """
    blocks: dict[str, list[Mapping[str, Any]]] = {}
    for block in (*said.get("table", ()), *said.get("figure", ())):
        if "what" in block:
            _check(block)
            blocks.setdefault(block["what"], []).append(block)
    return [_entry(what, several) for what, several in blocks.items()]


def _check(block: Mapping[str, Any]) -> None:
    named = f"{block['what']} in data/published"
    for key in ("shows", "status"):
        if not block.get(key):
            raise ValueError(f"{named} has no {key!r}")
    status = Status(block["status"])
    if status is Status.CANNOT and not block.get("reason"):
        raise ValueError(f"{named} cannot be had, and has no reason")
    if status is Status.DRAWN and not block.get("drawn_by"):
        raise ValueError(f"{named} is drawn, and 'drawn_by' does not say by what")


def _entry(what: str, blocks: Sequence[Mapping[str, Any]]) -> Entry:
    several = {dataset: None for block in blocks for dataset in block.get("datasets", ())}
    return Entry(
        what,
        "; ".join(dict.fromkeys(block["shows"] for block in blocks)),
        frozenset(Status(block["status"]) for block in blocks),
        tuple(dict.fromkeys(block["reason"] for block in blocks if "reason" in block)),
        tuple(several),
        frozenset((each, block["drawn_by"]) for block in blocks if "drawn_by" in block for each in block["datasets"]),
        frozenset(
            (dataset, block["source"], quantity)
            for block in blocks
            if "source" in block
            for dataset in block.get("datasets", ())
            for quantity in _quantities(block)
        ),
    )


def _quantities(block: Mapping[str, Any]) -> Iterable[str]:
    """Of a table in a layout of its method's own, any quantity of its source."""
    quantities: Iterable[str] = block.get("quantities", (ANY,))
    return quantities


ANY = "*"
"""Stands for every quantity of a source."""


def ledger(listed: Sequence[Entry], lines: Iterable[Line], drawn: Iterable[tuple[str, str]]) -> list[Row]:
    """A row for each entry, with the lines of its figures counted.

    Args:
        listed: Of one paper.
        lines: Of all its data sets that were run.
        drawn: Data sets and names of drawings that were obtained.
    """
    tallies = [Tally() for _ in listed]
    places = {key: tally for entry, tally in zip(listed, tallies, strict=True) for key in entry.quantities}
    for line in lines:
        source, quantity = line.figure.source, line.figure.cell.quantity
        tally = places.get((line.dataset, source, quantity), places.get((line.dataset, source, ANY)))
        if tally is not None:
            tally.add(line)
    there = set(drawn)
    return [
        Row(entry, tally, tuple(_statuses(entry, tally, there))) for entry, tally in zip(listed, tallies, strict=True)
    ]


def _statuses(entry: Entry, tally: Tally, drawn: set[tuple[str, str]]) -> Iterator[Status]:
    """What is declared, unless the run says otherwise; the gravest first."""
    if entry.drawings - drawn:
        yield Status.MISSING
    if tally.differ:
        yield Status.DIFFERS
        return
    if not tally.figures and not entry.drawings and Status.CANNOT not in entry.declared:
        yield Status.MISSING
        return
    if tally.figures and tally.not_run == tally.figures:
        yield Status.NOT_RUN
        return
    if Status.MET in entry.declared and not tally.agree + tally.explained:
        yield Status.MISSING  # nothing was held against it
        return
    yield from sorted(entry.declared, key=list(Status).index)
