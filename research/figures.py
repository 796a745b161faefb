"""Published figures, our figures, remarks and drawings; experiments of a paper; the ledger of reproductions."""

import json
import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import stdtrit

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


class Status(StrEnum):
    """Reproduction status of a table or figure; the worst first."""

    DIFFERS = "differs"
    """A figure is beyond its tolerance, for no known reason."""
    MISSING = "missing"
    """It has no result."""
    NOT_REPRODUCED = "not reproduced"
    """No figure agrees; what was tried is written below the table."""
    CANNOT = "cannot"
    """Nobody can, for a reason that is a fact about the world."""
    PARTLY = "partly met"
    """So many of the judged figures agree."""
    NOT_RUN = "not run"
    """Not at the size that was asked for."""
    DRAWN = "drawn"
    """Ours stand in place of theirs: a chart of which the paper prints no number, or data that it does not give."""
    MET = "met"
    """Every figure agrees within its tolerance."""
    NOTHING = "nothing to reproduce"
    """A definition, a diagram or an illustration."""


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
    """How a figure and ours compare; the worst first."""

    DIFFERS = "differs"
    """Beyond its tolerance, for no known reason."""
    APART = "not reproduced"
    """Beyond its tolerance; why, or what was tried, is written beside it."""
    OTHERWISE = "paper prints otherwise"
    """The authors' own code, or their own data, have what we have."""
    INFORMATION = "information"
    """Not judged: nobody prints it, or our data stand in place of theirs."""
    AGREES = "agrees"


class Spread(NamedTuple):
    """How a figure varies over folds, runs or seeds."""

    deviation: float
    """Standard deviation; NaN where it is not known."""
    repeats: int
    """Folds or runs that the figure is the mean of."""

    @property
    def is_known(self) -> bool:
        """Whether there is a deviation of more than one repeat."""
        return math.isfinite(self.deviation) and self.repeats > 1


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
    spread: Spread | None = None
    """Of a mean over folds or runs: what the paper prints of its spread."""
    has_verdict: bool = True
    """Whether it has a verdict; not where our data stand in place of the paper's."""


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
    spread: Spread | None = None
    """Of our own folds or runs."""

    @property
    def tolerance(self) -> float:
        """By how much ours may be off the figure: from both spreads, or from the digits that are printed."""
        return _tolerance(self.figure, self.spread)

    @property
    def difference(self) -> float | None:
        """Ours less the figure, where both are numbers."""
        pair = self._pair
        return pair[0] - pair[1] if pair else None

    @property
    def ratio(self) -> float | None:
        """Ours over the figure, where both are numbers and the figure is not 0."""
        pair = self._pair
        return pair[0] / pair[1] if pair and pair[1] else None

    @property
    def _pair(self) -> tuple[float, float] | None:
        ours, printed = self.obtained, self.figure.value
        if isinstance(ours, float) and isinstance(printed, float) and math.isfinite(ours) and math.isfinite(printed):
            return ours, printed
        return None


def compare(
    dataset: str,
    figures: Sequence[Figure],
    obtained: Mapping[Cell, Value],
    remarks: Sequence[Remark],
    spreads: Mapping[Cell, Spread] = MappingProxyType({}),
) -> list[Line]:
    """Compares figures with our cells and returns a line for each, in their order.

    Args:
        dataset: Name of the data set.
        figures: What the paper or the reference has.
        obtained: Our value of each cell.
        remarks: Reasons why figures need not be ours.
        spreads: Of cells that are means over folds or runs.
    """
    confirmed = {f.cell for f in figures if f.reference and _equal(obtained.get(f.cell), f, None)}
    lines = []
    for figure in figures:
        ours, spread = obtained.get(figure.cell), spreads.get(figure.cell)
        verdict, why = _verdict(figure, ours, spread, confirmed, remarks)
        lines.append(Line(dataset, figure, ours, verdict, why, spread))
    return lines


def _verdict(
    figure: Figure, ours: Value | None, spread: Spread | None, confirmed: set[Cell], remarks: Sequence[Remark]
) -> tuple[Verdict, str]:
    """A verdict, and why where there is more to say."""
    if ours is None:
        return Verdict.DIFFERS, "our code filled no such cell"
    if figure.has_verdict and _equal(ours, figure, spread):
        return Verdict.AGREES, ""
    if not figure.reference and figure.cell in confirmed:
        return Verdict.OTHERWISE, CONFIRMED
    is_unrun = isinstance(ours, str) and ours.startswith(NOT_RUN)
    remark = next((r for r in remarks if r.fits(figure, ours)), None)
    if remark:
        is_apart = remark.verdict is Verdict.INFORMATION and figure.has_verdict and not is_unrun
        return Verdict.APART if is_apart else remark.verdict, remark.why
    return Verdict.INFORMATION if is_unrun or not figure.has_verdict else Verdict.DIFFERS, ""


def _equal(ours: Value | None, figure: Figure, spread: Spread | None) -> bool:
    printed = figure.value
    if isinstance(ours, float) and isinstance(printed, float):
        above = ours - printed
        off = above if figure.at_most else -above if figure.at_least else abs(above)
        return (math.isnan(ours) and math.isnan(printed)) or off <= _tolerance(figure, spread)
    return ours == printed


LEVEL = 0.95
"""Of the interval for the difference of two means that is a tolerance."""


def _tolerance(figure: Figure, ours: Spread | None) -> float:
    """Half of the last printed digit, and of means the half width of Welch's interval for their difference.

    A deviation that is not known, as of a single fold, is taken to be that of the other side.
    """
    if figure.spread is None:
        return figure.tolerance
    our_spread = ours or Spread(math.nan, 1)
    known_sides = [side for side in (figure.spread, our_spread) if side.is_known]
    if not known_sides:
        return figure.tolerance
    sides = [(side if side.is_known else known_sides[0], side.repeats) for side in (figure.spread, our_spread)]
    variances = [side.deviation**2 / repeats for side, repeats in sides]
    if not sum(variances):
        return figure.tolerance
    if len(known_sides) == len(sides):
        terms = [v**2 / (side.repeats - 1) for v, (side, _) in zip(variances, sides, strict=True)]
        freedom = sum(variances) ** 2 / sum(terms)
    else:
        freedom = known_sides[0].repeats - 1.0
    return figure.tolerance + float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(sum(variances))


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

    A table that is ``drawn`` has no verdicts: our data stand in place of the paper's. ``repeats`` are the folds or runs
    that its figures are means of, and ``deviations`` what it prints of them, row by row.
    """
    for table in tables(declaration, dataset):
        is_judged = table.get("status") != Status.DRAWN
        deviations = table.get("deviations", [()] * len(table["rows"]))
        for (group, *at, values), row_deviations in zip(table["rows"], deviations, strict=True):
            printed = dict(zip(table["quantities"], row_deviations, strict=False))
            for quantity, value in zip(table["quantities"], values, strict=True):
                repeats = table.get("repeats")
                yield Figure(
                    table["source"],
                    table.get("reference", False),
                    Cell(quantity, group, place(at)),
                    value if isinstance(value, str) else float(value),
                    table.get("tolerances", {}).get(quantity, table.get("tolerance", 0.0)),
                    at_most=quantity in table.get("at_most", ()),
                    at_least=quantity in table.get("at_least", ()),
                    spread=Spread(float(printed.get(quantity, math.nan)), repeats) if repeats else None,
                    has_verdict=is_judged,
                )


def beside(printed: Iterable[Figure], obtained: Iterable[Cell]) -> Iterator[Figure]:
    """Yields a figure without a value for each obtained cell that no table prints."""
    printed_cells = {figure.cell for figure in printed}
    yield from (
        Figure(BESIDE, False, cell, NOT_PRINTED, 0.0, has_verdict=False)
        for cell in obtained
        if cell not in printed_cells
    )


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
    spreads: Mapping[Cell, Spread] = MappingProxyType({})
    """Of cells that are means over folds or runs."""


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
        figures, obtained, drawings, spreads = self.compared(dataset, data, publication)
        remarks = published_remarks(publication, dataset, self.experiments[dataset].groups)
        return Reproduced(compare(dataset, figures, obtained, remarks, spreads), drawings)


def not_given(dataset: str, figures: Iterable[Figure], why: str) -> Reproduced:
    """A line without a verdict for each figure of a data set without its file."""
    return Reproduced([Line(dataset, figure, None, Verdict.INFORMATION, why) for figure in figures], ())


# --------------------------------------------------------------------------------------------------------------------
# Ledger of the papers: a row for every table and figure that they print, and the status of its reproduction.
#
# Scope: what ``data/published`` says of tables and figures, and the counts of compared figures. Its pages:
# ``research.reproduction``.


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
    otherwise: int = 0
    """The authors' own code or data have what we have, and the paper prints another figure."""
    apart: int = 0
    """Beyond their tolerance, for a reason that is written beside each."""
    information: int = 0
    """Not judged."""
    not_run: int = 0
    differ: int = 0
    near: int = 0
    """Of those that do not agree: within 10 % of the paper's figure."""
    middling: int = 0
    """Within 50 %, and not within 10 %."""
    why: set[str] = field(default_factory=set)

    def add(self, line: Line) -> None:
        """Count a line."""
        self.figures += 1
        unfilled = line.obtained is None and line.verdict is Verdict.INFORMATION
        if unfilled or str(line.obtained).startswith(NOT_RUN):
            self.not_run += 1
        else:
            name = _COUNTS[line.verdict]
            setattr(self, name, getattr(self, name) + 1)
            off = math.nan if line.ratio is None else abs(line.ratio - 1)
            if line.verdict is not Verdict.AGREES:
                self.near += off <= NEAR
                self.middling += NEAR < off <= MIDDLING
        if line.why and line.verdict is not Verdict.AGREES:
            self.why.add(line.why)

    @property
    def judged(self) -> int:
        """Figures with a verdict."""
        return self.agree + self.otherwise + self.apart + self.differ


NEAR, MIDDLING = 0.1, 0.5
"""Distances from a printed figure, as shares of it, by which figures that do not agree are counted."""

_COUNTS = {
    Verdict.AGREES: "agree",
    Verdict.DIFFERS: "differ",
    Verdict.APART: "apart",
    Verdict.OTHERWISE: "otherwise",
    Verdict.INFORMATION: "information",
}


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
        ValueError: A block has no ``shows`` or ``status``, or a status that only a run can give; is drawn, with neither
            ``drawn_by`` nor a reason; or cannot, without a reason.
    """
    blocks: dict[str, list[Mapping[str, Any]]] = {}
    for block in (*declaration.get("table", ()), *declaration.get("figure", ())):
        if "what" in block:
            named = f"{block['what']} in data/published"
            for key in ("shows", "status"):
                if not block.get(key):
                    raise ValueError(f"{named} has no {key!r}")
            status = Status(block["status"])
            if status not in DECLARED:
                raise ValueError(f"{named} is {block['status']!r}, which only a run can show")
            if status in (Status.CANNOT, Status.NOTHING) and not block.get("reason"):
                raise ValueError(f"{named} cannot be had, and has no reason")
            if status is Status.DRAWN and not (block.get("drawn_by") or block.get("reason")):
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


DECLARED = (Status.MET, Status.DRAWN, Status.CANNOT, Status.NOTHING)
"""What a block says of itself. ``met``: its figures are compared, and the run says how many agree."""

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
    """What the run shows; of what has no figures, what is declared."""
    if entry.drawings - drawings:
        yield Status.MISSING
    if tally.differ:
        yield Status.DIFFERS
    elif tally.judged:
        yield Status.MET if tally.agree == tally.judged else Status.PARTLY if tally.agree else Status.NOT_REPRODUCED
    elif tally.figures and tally.not_run == tally.figures:
        yield Status.NOT_RUN
    elif not entry.declared - {Status.MET}:
        yield Status.MISSING  # nothing was compared
    yield from sorted(entry.declared - {Status.MET}, key=list(Status).index)
