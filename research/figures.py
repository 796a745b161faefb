"""Published figures, our figures, remarks and drawings; experiments of a paper; the ledger of reproductions."""

import json
import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.pipeline.registry import read_spec

# --------------------------------------------------------------------------------------------------------------------
# Holds what a figure of a paper shows, where the paper prints no number: the points of its curves.
#
# Scope: the values. How they are drawn: ``research.reproduction_page``. Which figure of which paper it is for:
# ``[[figure]]`` in ``data/published``, whose ``drawn_by`` is the drawing's name.


MOST_POINTS = 200
"""Of a curve: a drawing is looked at, and no table of applicants."""


@dataclass(frozen=True)
class Curve:
    """One line of a drawing; of a grid, one row of it."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """NaN where there is no value."""


@dataclass(frozen=True)
class Drawing:
    """The curves of one figure on one data set.

    Raises:
        ValueError: A curve has no point, more than ``MOST_POINTS``, or not as many values as places.
    """

    name: str
    """In small letters with hyphens, as ``drawn_by`` of the figure says it: ``acf-density-by-epsilon``."""
    figure: str
    """The paper's own number: ``Figure 4``. One drawing can be for two figures with the same content."""
    title: str
    x: str
    """Title of the axis, with its unit."""
    y: str
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        for curve in self.curves:
            if not 1 <= len(curve.x) <= MOST_POINTS or len(curve.x) != len(curve.y):
                raise ValueError(f"{self.name}, {curve.name}: {len(curve.x)} places and {len(curve.y)} values")

    def plain(self) -> dict[str, Any]:
        """Returns it as plain values, for JSON; null replaces a missing value."""
        return {
            "name": self.name,
            "figure": self.figure,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "curves": [
                {"name": c.name, "x": list(c.x), "y": [value if np.isfinite(value) else None for value in c.y]}
                for c in self.curves
            ],
        }


def curves(x: Sequence[float], series: Mapping[str, Sequence[float]]) -> tuple[Curve, ...]:
    """Returns curves over the same places."""
    return tuple(Curve(name, tuple(map(float, x)), tuple(map(float, y))) for name, y in series.items())


# --------------------------------------------------------------------------------------------------------------------
# Reads files that are shipped with evenhand, such as audit specs of the papers' experiments.
#
# The specs read the user's own copy of the data.


_ROOT = Path(__file__).parents[1]

TEXAS_FILE = "data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"


def shipped(name: str) -> Path:
    """Returns a file of ``data/`` in a checkout, which an installed wheel has inside the package.

    Raises:
        InfrastructureError: The file is not where it was installed.
    """
    places = (_ROOT / "data" / name, _ROOT / "flows" / "bundled" / name.removeprefix("audits/"))
    for place in places:
        if place.is_file():
            return place
    raise InfrastructureError(f"{str(places[0])!r} is not there; it belongs to evenhand: install it again")


def paper_spec(name: str, overrides: Mapping[str, str]) -> AuditSpec:
    """Reads the audit spec of one experiment.

    Raises:
        InfrastructureError: The file is not where it was installed.
        SpecError: It does not fit the overrides.
    """
    file = shipped(f"audits/paper/{name}")
    return read_spec(file.read_text(encoding="utf-8"), str(file), overrides).spec


def texas_spec(data: Path, overrides: Mapping[str, str]) -> AuditSpec:
    """Reads the audit spec of the applications of Texas in 2022, on which more than one method is timed.

    Raises:
        InfrastructureError: Evenhand was not started from a checkout.
    """
    file = _ROOT / "data" / "audits" / "hmda-tx-2022.yaml"
    if not file.is_file():
        raise InfrastructureError(f"{str(file)!r} is not there; run the benchmark from a checkout, which holds it")
    settings = {**overrides, "source.path": str(data / TEXAS_FILE)}
    return read_spec(file.read_text(encoding="utf-8"), str(file), settings).spec


def require(data: Path, files: list[Path]) -> None:
    """Checks that files exist, and names the first that is missing.

    Raises:
        InfrastructureError: One of the files is not in the directory that ``--data`` gives.
    """
    for file in files:
        if not file.is_file():
            raise InfrastructureError(
                f"{str(file)!r} is not there; --data is to be the directory that holds data/ and golden/, with "
                f"{file.relative_to(data)} in it"
            )


# --------------------------------------------------------------------------------------------------------------------
# Compares published figures with our own: a line has the figure, our value, and the verdict.
#
# Figures have two kinds of source: the reference outputs, which ours must equal, and the paper, which in places
# deviates from its authors' own code. Where ours equals the reference and the paper does not, the paper prints
# otherwise, and that is no failure. Some figures are errors, of which ours may be less. A cell that our code did not
# fill differs.
#
# Scope: comparison. Figures: ``published``, and ``golden.py`` and ``obtained.py`` of a method's folder
# ``reproduction``.


Value = float | str
ALL = "all"
"""Stands for the groups together."""

FOUR_DECIMALS = 1e-4

NOT_RUN = "not run"
"""Stands for a cell that our code does not fill; a reason can follow it, after a colon. Such a cell has no verdict."""

CONFIRMED = "the reference has what we have"
"""Why the paper may print otherwise."""


class Verdict(StrEnum):
    """How a figure and ours compare."""

    AGREES = "agrees"
    DIFFERS = "differs"
    OTHERWISE = "paper prints otherwise"
    INFORMATION = "information"


class Cell(NamedTuple):
    """What a figure is about: a quantity of a group, at some k, limit d, share c or attribute."""

    quantity: str
    group: str
    at: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Figure:
    """The value of a cell in a source."""

    source: str
    reference: bool
    """Whether the source is the reference's output, and not the paper."""
    cell: Cell
    value: Value
    """NaN where the source has no value because there is none to have."""
    tolerance: float
    at_most: bool = False
    """Whether ours agrees wherever it is not above, too: the less the better."""
    at_least: bool = False
    """Whether ours agrees wherever it is not below, too: the more the better."""


@dataclass(frozen=True)
class Remark:
    """The reason why figures of a data set need not be ours. The first that fits a figure counts."""

    sources: frozenset[str]
    quantities: frozenset[str]
    group: str
    """Empty: every group."""
    at: tuple[Value, ...] | None
    """None: at every k, d or c."""
    ours: float | None
    """What we then must have, to four decimals; None: anything."""
    verdict: Verdict
    why: str
    between: tuple[float, float] | None = None
    """Least and greatest value that it explains; None: any. Beyond them a figure differs all the same."""

    def fits(self, figure: Figure, ours: Value) -> bool:
        """Whether it is about this figure."""
        cell = figure.cell
        return (
            figure.source in self.sources
            and cell.quantity in self.quantities
            and self.group in ("", cell.group)
            and self.at in (None, cell.at)
            and (self.ours is None or (isinstance(ours, float) and abs(ours - self.ours) < FOUR_DECIMALS))
            and (self.between is None or (isinstance(ours, float) and self.between[0] <= ours <= self.between[1]))
        )


@dataclass(frozen=True)
class Line:
    """One published figure with our value."""

    dataset: str
    figure: Figure
    obtained: Value | None
    """None where our code filled no such cell."""
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the figure, where both are numbers."""
        ours, printed = self.obtained, self.figure.value
        is_finite = (
            isinstance(ours, float) and isinstance(printed, float) and math.isfinite(ours) and math.isfinite(printed)
        )
        return ours - printed if is_finite else None  # type: ignore[operator]


def compare(
    dataset: str, figures: Sequence[Figure], obtained: Mapping[Cell, Value], remarks: Sequence[Remark]
) -> list[Line]:
    """Compares figures with our cells and returns a line for each, in their order."""
    confirmed = {f.cell for f in figures if f.reference and _equal(obtained.get(f.cell), f)}
    return [_line(dataset, figure, obtained.get(figure.cell), confirmed, remarks) for figure in figures]


def _line(dataset: str, figure: Figure, ours: Value | None, confirmed: set[Cell], remarks: Sequence[Remark]) -> Line:
    if _equal(ours, figure):
        return Line(dataset, figure, ours, Verdict.AGREES)
    if ours is None:
        return Line(dataset, figure, ours, Verdict.DIFFERS, "our code filled no such cell")
    if not figure.reference and figure.cell in confirmed:
        return Line(dataset, figure, ours, Verdict.OTHERWISE, CONFIRMED)
    remark = next((r for r in remarks if r.fits(figure, ours)), None)
    if remark:
        return Line(dataset, figure, ours, remark.verdict, remark.why)
    if isinstance(ours, str) and ours.startswith(NOT_RUN):
        return Line(dataset, figure, ours, Verdict.INFORMATION)
    return Line(dataset, figure, ours, Verdict.DIFFERS)


def _equal(ours: Value | None, figure: Figure) -> bool:
    printed = figure.value
    if isinstance(ours, float) and isinstance(printed, float):
        above = ours - printed
        off = above if figure.at_most else -above if figure.at_least else abs(above)
        return (math.isnan(ours) and math.isnan(printed)) or off <= figure.tolerance
    return ours == printed


# --------------------------------------------------------------------------------------------------------------------
# Reads published figures, and the remarks that explain where a figure need not be ours, from a paper's data file.
#
# Scope: the file, its remarks, and tables with a row for each group or model. Other layouts: ``printed.py`` of a
# method's folder ``reproduction``. Reference outputs: ``golden.py`` there.


REPRODUCED = "reproduced"
"""Source of the figures that the authors' code gives, printed to four decimals."""

ASKED = "asked"
"""Source of requirements on a method's default that no paper prints, such as never to end lower than it began."""

BESIDE = "beside"
"""Source of cells that are shown beside figures and that nobody prints."""

NOT_PRINTED = "not printed"
"""Stands for a figure that no table prints."""


def read(paper: str) -> Mapping[str, Any]:
    """Reads the published figures of a paper.

    Raises:
        InfrastructureError: The file is not where it was installed.
    """
    return tomllib.loads(shipped(f"published/{paper}.toml").read_text(encoding="utf-8"))


def tables(declaration: Mapping[str, Any], dataset: str) -> Iterator[Mapping[str, Any]]:
    """Yields the tables that are about a data set."""
    yield from (table for table in declaration["table"] if dataset in table["datasets"])


def figures(declaration: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of tables with one row per group: the cells of the figures, and a value for each quantity.

    Groups that are not ``judged`` have neither a tolerance nor a bound; without that key all are.
    """
    for table in tables(declaration, dataset):
        for group, *at, values in table["rows"]:
            is_compared = group in table.get("judged", (group,))
            for quantity, value in zip(table["quantities"], values, strict=True):
                tolerance = table.get("tolerances", {}).get(quantity, table.get("tolerance", 0.0))
                yield Figure(
                    table["source"],
                    table.get("reference", False),
                    Cell(quantity, group, place(at)),
                    value if isinstance(value, str) else float(value),
                    tolerance if is_compared else 0.0,
                    at_most=is_compared and quantity in table.get("at_most", ()),
                    at_least=is_compared and quantity in table.get("at_least", ()),
                )


def beside(printed: Iterable[Figure], obtained: Iterable[Cell]) -> Iterator[Figure]:
    """Yields a figure without a value for each obtained cell that no table prints."""
    printed_cells = {figure.cell for figure in printed}
    yield from (Figure(BESIDE, False, cell, NOT_PRINTED, 0.0) for cell in obtained if cell not in printed_cells)


def published_remarks(declaration: Mapping[str, Any], dataset: str, groups: Sequence[str] = ()) -> list[Remark]:
    """Returns the remarks on a data set; ``groups`` are the names of G0 and G1, where its tables write these."""
    names = dict(zip(("G0", "G1"), groups, strict=False))
    return [
        Remark(
            sources=frozenset(entry["sources"]),
            quantities=frozenset(entry["quantities"]),
            group=names.get(entry.get("group", ""), entry.get("group", "")),
            at=place(entry["at"]) if "at" in entry else None,
            ours=entry.get("ours"),
            verdict=Verdict(entry["verdict"]),
            between=(entry["between"][0], entry["between"][1]) if "between" in entry else None,
            why=entry["why"],
        )
        for entry in declaration.get("remark", [])
        if dataset in entry["datasets"]
    ]


def place(coordinates: Sequence[str | float]) -> tuple[Value, ...]:
    """Returns what a cell is at: words, and all numbers of one type."""
    return tuple(coordinate if isinstance(coordinate, str) else float(coordinate) for coordinate in coordinates)


# --------------------------------------------------------------------------------------------------------------------
# Declares a paper's experiments: data sets, their files, and the comparison of published figures with ours.
#
# Each method's ``reproduction.experiments`` has a subclass of ``Paper`` called ``Experiments``. Its dataclass fields
# are the sizes by which the experiments are made smaller; an option of ``evenhand reproduce`` with the same name sets
# one.


class Compared(NamedTuple):
    """What a data set gave."""

    figures: list[Figure]
    """In their order."""
    values: Mapping[Cell, Value]
    """What our code obtained."""
    drawings: tuple[Drawing, ...] = ()
    """Of figures for which the paper prints no numbers."""


class Reproduced(NamedTuple):
    """A data set of a paper, compared and drawn."""

    lines: list[Line]
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Experiment:
    """One data set of a paper; its files are inside the directory that ``--data`` gives."""

    spec: str | None = None
    """File name of its audit spec; None where rows are drawn, or the method reads them otherwise."""
    sources: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Names of G0 and G1, where published tables write these."""

    def files(self, data: Path) -> Iterator[Path]:
        """Yields the files that it needs."""
        yield from (data / source for source in self.sources)

    def read(self, data: Path, **overrides: str) -> AuditSpec:
        """Reads its audit spec, with the path of the sources and other keys set (two underscores for a dot)."""
        if self.spec is None:
            raise ValueError("rows are drawn: there is no audit spec")
        paths = [str(data / source) for source in self.sources]
        keys = {name.replace("__", "."): value for name, value in overrides.items()}
        return paper_spec(self.spec, {"source.path": json.dumps(paths) if len(paths) > 1 else paths[0], **keys})


@dataclass(frozen=True)
class Paper(ABC):
    """The experiments of a paper."""

    name: ClassVar[str]
    """The method, by its paper's acronym."""
    experiments: ClassVar[Mapping[str, Experiment]]
    """By data set, in the order in which they are run."""
    quick: ClassVar[Mapping[str, Any]] = {}
    """Fields with which all data sets together take about a minute of one core."""

    known_baselines: ClassVar[tuple[str, ...]] = ()
    """Systems that the paper compares itself with; a field ``baseline`` chooses some of them."""

    @classmethod
    def in_a_minute(cls) -> Self:
        """The experiments at the size of ``--quick``."""
        return cls(**cls.quick)

    @abstractmethod
    def compared(self, dataset: str, data: Path, publication: Mapping[str, Any]) -> Compared:
        """Runs the experiment on a data set; ``publication`` is the file of published figures."""

    def run(self, dataset: str, data: Path) -> Reproduced:
        """Runs a data set; returns its drawings and a line for each figure (paper, reference, extra)."""
        publication = read(self.name)
        figures, obtained, drawings = self.compared(dataset, data, publication)
        remarks = published_remarks(publication, dataset, self.experiments[dataset].groups)
        return Reproduced(compare(dataset, figures, obtained, remarks), drawings)


def not_given(dataset: str, figures: Iterable[Figure], why: str) -> Reproduced:
    """A line without a verdict for each figure of a data set whose file is not given."""
    return Reproduced([Line(dataset, figure, None, Verdict.INFORMATION, why) for figure in figures], ())


# --------------------------------------------------------------------------------------------------------------------
# Ledger of the papers: a row for every table and figure that they print, and the status of its reproduction.
#
# Scope: what ``data/published`` says of tables and figures, and the counts of compared figures. Its pages:
# ``research.reproduction``.


class Status(StrEnum):
    """Reproduction status of a table or figure."""

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
        has_tolerance = bool(figure.tolerance) or figure.at_most or figure.at_least
        unfilled = line.obtained is None and line.verdict is Verdict.INFORMATION
        if unfilled or str(line.obtained).startswith(NOT_RUN):
            self.not_run += 1
        elif line.verdict is Verdict.AGREES:
            self.agree += 1
        elif line.verdict is Verdict.DIFFERS:
            self.differ += 1
        elif has_tolerance or line.verdict is Verdict.OTHERWISE:
            self.explained += 1
        else:
            self.information += 1
        if line.why and line.verdict is not Verdict.AGREES:
            self.why.add(line.why)


@dataclass(frozen=True)
class Row:
    """A table or figure, and its reproduction status."""

    entry: Entry
    tally: Tally
    status: tuple[Status, ...]


def entries(declaration: Mapping[str, Any]) -> list[Entry]:
    """The tables and figures that a file of published figures names, tables first, in its order.

    Args:
        declaration: A file of ``data/published``; blocks without ``what`` are of no table of the paper.

    Raises:
        ValueError: A block has no ``shows`` or ``status``; none of ``drawn_by`` and rows; or cannot, without a reason.
    """
    blocks: dict[str, list[Mapping[str, Any]]] = {}
    for block in (*declaration.get("table", ()), *declaration.get("figure", ())):
        if "what" in block:
            named = f"{block['what']} in data/published"
            for key in ("shows", "status"):
                if not block.get(key):
                    raise ValueError(f"{named} has no {key!r}")
            status = Status(block["status"])
            if status is Status.CANNOT and not block.get("reason"):
                raise ValueError(f"{named} cannot be had, and has no reason")
            if status is Status.DRAWN and not block.get("drawn_by"):
                raise ValueError(f"{named} is drawn, and 'drawn_by' does not say by what")
            blocks.setdefault(block["what"], []).append(block)
    return [_entry(what, several) for what, several in blocks.items()]


def _entry(what: str, blocks: Sequence[Mapping[str, Any]]) -> Entry:
    several = {dataset: None for block in blocks for dataset in block.get("datasets", ())}
    return Entry(
        what,
        "; ".join(dict.fromkeys(block["shows"] for block in blocks)),
        frozenset(Status(block["status"]) for block in blocks),
        tuple(dict.fromkeys(block["reason"] for block in blocks if "reason" in block)),
        tuple(several),
        frozenset(
            (dataset, block["drawn_by"]) for block in blocks if "drawn_by" in block for dataset in block["datasets"]
        ),
        frozenset(
            (dataset, block["source"], quantity)
            for block in blocks
            if "source" in block
            for dataset in block.get("datasets", ())
            for quantity in block.get("quantities", (ANY,))  # a layout of the method's own may name none
        ),
    )


ANY = "*"
"""Stands for every quantity of a source."""


def ledger(listed: Sequence[Entry], lines: Iterable[Line], drawings: Iterable[tuple[str, str]]) -> list[Row]:
    """A row for each entry, with the lines of its figures counted.

    Args:
        listed: Of one paper.
        lines: Of all its data sets that were run.
        drawings: Data sets and names of drawings that were obtained.
    """
    lines = list(lines)
    with_results = {line.dataset for line in lines if line.obtained is not None or line.verdict is Verdict.DIFFERS}
    not_given = {line.dataset for line in lines} - with_results
    tallies = [Tally() for _ in listed]
    places = {key: tally for entry, tally in zip(listed, tallies, strict=True) for key in entry.quantities}
    for line in lines:
        source, quantity = line.figure.source, line.figure.cell.quantity
        tally = places.get((line.dataset, source, quantity), places.get((line.dataset, source, ANY)))
        if tally is not None:
            tally.add(line)
    drawn_names = set(drawings)
    rows = [
        Row(entry, tally, tuple(_statuses(entry, tally, drawn_names)))
        for entry, tally in zip(listed, tallies, strict=True)
    ]
    return [
        replace(row, status=(Status.NOT_RUN,))
        if row.entry.datasets and not_given.issuperset(row.entry.datasets)
        else row
        for row in rows
    ]


def _statuses(entry: Entry, tally: Tally, drawings: set[tuple[str, str]]) -> Iterator[Status]:
    """The declared statuses, unless the run yields others; the gravest first."""
    if entry.drawings - drawings:
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
