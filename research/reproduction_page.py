"""The page docs/reproduction.md and its charts."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from research.figures import Line, Row, Status, Verdict
from research.reproduction import Done, experiments_of
from tasks.pipeline.registry import METHODS
from tasks.reporting.charts import layout
from tasks.reporting.charts.values import Unit, clean, exact, isolated

# --------------------------------------------------------------------------------------------------------------------
# Curves: values over a numeric axis, a panel a curve with the others faint behind it, all on the same two axes.


_HEIGHT, _GUTTER, _DOTS = 110.0, 20.0, 16
"""Of the area of a panel; between two panels; points that are marked one by one."""


@dataclass(frozen=True)
class Curve:
    """A line through its points; a value that is no number is a gap."""

    label: str
    points: tuple[tuple[float, float], ...]

    @property
    def defined(self) -> list[tuple[float, float]]:
        """The points that have a value."""
        return [(x, y) for x, y in self.points if math.isfinite(y)]


@dataclass(frozen=True)
class Curves:
    """Curves over one axis.

    Raises:
        ValueError: no curve has a value.
    """

    title: str
    x: Unit
    y: Unit
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        if not any(curve.defined for curve in self.curves):
            raise ValueError(f"no value: {self.title}")

    def description(self) -> list[str]:
        """A sentence for each curve: where it begins, where it ends, its least and its greatest value."""
        return [f"{self.y.name} over {self.x.name}.", *(self._said(curve) for curve in self.curves)]

    def _said(self, curve: Curve) -> str:
        points = curve.defined
        if not points:
            return f"{isolated(curve.label)}: no value."
        at = [f"{exact(y, self.y)} at {exact(x, self.x)}" for x, y in (points[0], points[-1])]
        low, high = (exact(end(y for _, y in points), self.y) for end in (min, max))
        return f"{isolated(curve.label)}: from {at[0]} to {at[1]}, between {low} and {high}."

    def table(self) -> layout.Table:
        """A row for each point of each curve."""
        rows = [
            (curve.label, exact(x, self.x), exact(y, self.y) if math.isfinite(y) else "no value")
            for curve in self.curves
            for x, y in curve.points
        ]
        return layout.Table(("Curve", self.x.name, self.y.name), tuple(rows))

    def draw(self, sheet: layout.Sheet) -> layout.Drawing:
        """Panels of equal size: two in a row on a wide sheet, one above the other on a narrow one."""
        columns = 1 if sheet.stacked or len(self.curves) == 1 else 2
        width = (sheet.width - _GUTTER * (columns - 1)) / columns
        shapes, y = list[layout.Shape](), 4.0
        for first in range(0, len(self.curves), columns):
            row = self.curves[first : first + columns]
            panels = [_Panel(self, curve, i * (width + _GUTTER), y, width, sheet) for i, curve in enumerate(row)]
            shapes += [shape for panel in panels for shape in panel.shapes()]
            y = max(panel.bottom for panel in panels) + 12
        words = f"{clean(self.y.name)} over {clean(self.x.name)}"
        caption = layout.text_lines(words, 0, y + sheet.size, sheet.width, sheet, 3, "soft")
        return layout.Drawing(sheet.width, y + len(caption) * sheet.leading + 6, sheet.size, (*shapes, *caption))

    def axes(self) -> tuple[layout.Axis, layout.Axis]:
        """The two axes of all panels; both hold 0."""
        points = [point for curve in self.curves for point in curve.defined]
        across, up = (([point[i] for point in points]) for i in (0, 1))
        return layout.between(min(across), max(across), self.x, most=5), layout.between(
            min(up), max(up), self.y, most=5
        )


@dataclass(frozen=True)
class _Panel:
    """One curve among the others."""

    chart: Curves
    curve: Curve
    x: float
    top: float
    width: float
    sheet: layout.Sheet

    @property
    def bottom(self) -> float:
        """Where it ends, with the labels of its axis."""
        return self._floor + self.sheet.leading

    @property
    def _ceiling(self) -> float:
        return self.top + 2 * self.sheet.leading + 4

    @property
    def _floor(self) -> float:
        return self._ceiling + _HEIGHT

    def shapes(self) -> list[layout.Shape]:
        across, up = self.chart.axes()
        labels = up.labels(self.chart.y)
        start, end = self.x + self.sheet.room(labels) + 6, self.x + self.width - 8
        ticks = [up.at(tick, self._floor, self._ceiling) for tick in up.ticks]
        other_curves = [curve for curve in self.chart.curves if curve is not self.curve]
        lines = [self._line(curve, across, up, start, end) for curve in other_curves]
        return [
            *layout.text_lines(
                self.curve.label, self.x, self.top + self.sheet.size, self.width, self.sheet, 2, "ink", bold=True
            ),
            layout.PathShape(" ".join(layout.segment(start, y, end, y) for y in ticks), "faint", "line"),
            *(layout.PathShape(line, "faint", "soft") for line in lines if line),
            *self._own(across, up, start, end),
            *(
                layout.Text(start - 6, y + self.sheet.size * 0.36, label, anchor="end")
                for y, label in zip(ticks, labels, strict=True)
            ),
            *self._places(across, start, end),
        ]

    def _own(self, across: layout.Axis, up: layout.Axis, start: float, end: float) -> list[layout.PathShape]:
        """The curve, and its points where they are few."""
        line = self._line(self.curve, across, up, start, end)
        points = [self._at(point, across, up, start, end) for point in self.curve.defined]
        shapes = [layout.PathShape(line, "bar", "accent")] if line else []
        if len(points) <= _DOTS:
            shapes += (
                [layout.PathShape(" ".join(layout.circle(x, y, 4) for x, y in points), "fill", "accent")]
                if points
                else []
            )
        return shapes

    def _at(
        self, point: tuple[float, float], across: layout.Axis, up: layout.Axis, start: float, end: float
    ) -> tuple[float, float]:
        return across.at(point[0], start, end), up.at(point[1], self._floor, self._ceiling)

    def _line(self, curve: Curve, across: layout.Axis, up: layout.Axis, start: float, end: float) -> str:
        """The path through neighbouring points that have values; empty if no two of them are neighbours."""
        parts, pen = list[str](), False
        for x, y in curve.points:
            if not math.isfinite(y):
                pen = False
                continue
            parts.append(layout.path("L" if pen else "M", *self._at((x, y), across, up, start, end)))
            pen = True
        return " ".join(parts) if any(part.startswith("L") for part in parts) else ""

    def _places(self, across: layout.Axis, start: float, end: float) -> Sequence[layout.Text]:
        """Labels under the axis; every second where all of them would collide."""
        labels = across.labels(self.chart.x)
        for step in (1, 2, max(1, len(labels) - 1)):
            ticks = list(zip(across.ticks, labels, strict=True))[::step]
            labels_of_ticks = [
                layout.Text(across.at(tick, start, end), self._floor + self.sheet.leading, label, anchor="middle")
                for tick, label in ticks
            ]
            if layout.apart(labels_of_ticks, self.sheet):
                return labels_of_ticks
        return ()


# --------------------------------------------------------------------------------------------------------------------
# One page with what is drawn of the papers' figures, each with its numbers as a table; no script, no other file.


_PAGE = Markup("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Figures of the papers, drawn from our results</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 Arial, Helvetica, sans-serif; max-width: 40rem; margin: 0 auto; padding: 1rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .1rem .6rem; text-align: left; }}
.numbers {{ overflow-x: auto; }}
{style}
</style>
</head>
<body>
<main>
<h1>Figures of the papers, drawn from our results</h1>
{sections}
</main>
</body>
</html>
""")


def charts_page(drawings: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> str:
    """The page.

    Args:
        drawings: By paper and data set, as plain values (``Drawing.plain``).
    """
    sections = Markup("\n").join(_sections(drawings))
    return str(_PAGE.format(style=Markup(layout.style()), sections=sections))  # noqa: S704 - our own style sheet


def _sections(drawings: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> Iterator[Markup]:
    for (paper, dataset), several in drawings.items():
        for number, drawing in enumerate(several):
            heading = f"{paper.upper()}, {drawing['figure']}, {dataset}: {drawing['title']}"
            chart = layout.element(_chart(drawing), f"{paper}-{dataset}-{number}")
            yield Markup("<section>\n<h2>{}</h2>\n{}\n</section>").format(heading, chart)


def _chart(drawing: Mapping[str, Any]) -> Curves:
    curves = tuple(
        Curve(
            curve["name"],
            tuple((x, float("nan") if y is None else y) for x, y in zip(curve["x"], curve["y"], strict=True)),
        )
        for curve in drawing["curves"]
    )
    return Curves(drawing["title"], Unit(drawing["x"]), Unit(drawing["y"]), curves)


# --------------------------------------------------------------------------------------------------------------------
# ``docs/reproduction.md``: every table and figure of the papers, and how ours stands to it.
#
# Scope: the form of the page. Its rows: ``research.figures``.


COLUMNS = (
    *("table or figure", "shows", "data sets", "status", "figures", "agree", "paper otherwise", "not reproduced"),
    *("no verdict", "not run", "within 10 %", "within 50 %"),
)

TITLE = "# Reproduction: every table and figure of the papers\n"

HEAD = """\
Written by `evenhand reproduce all --data DIR --keep FOLDER{options} --markdown docs/reproduction.md`, of runs of
{seconds} CPU seconds ({machine}). {sizes}

A test compares its rows with `data/published`. `evenhand reproduce METHOD --data DIR --every-cell` prints every figure,
and `--charts FILE` draws the charts.

| status | meaning |
| --- | --- |
| differs, missing | a figure is beyond its tolerance for no known reason, or has no result |
| not reproduced | no figure agrees; what was tried is below the table |
| cannot | nobody can, for a reason that is a fact about the world |
| partly met (n of m) | n of m judged figures agree |
| not run | not at this size, or without a file that you can give |
| drawn | ours in place of theirs: a chart without printed numbers, or data that the paper does not give |
| met | every figure agrees within its tolerance |
| nothing to reproduce | a definition, a diagram or an illustration |

*figures* are printed, or asked for by a paper's text. *paper otherwise*: the authors' own code or data give ours. *not
reproduced*: beyond the tolerance. *no verdict*: our data stand in place of theirs. Of figures that do not agree, the
last two columns count those *within 10 %* of the print, and those further off, but *within 50 %*.

A tolerance is half of the last digit that is printed. Of a mean over folds or runs it is the half width of the 95 %
interval for the difference of two means (Welch), from the deviation that the paper prints and our own. A deviation
that is missing, as with one fold, is taken from the other side. The command prints both deviations, the difference
and the ratio.
"""


def page(ledgers: Mapping[str, Sequence[Row]], results: Sequence[Done]) -> str:
    """The page as Markdown."""
    experiments = {paper: experiments_of(paper, quick=False).experiments for paper in METHODS}
    run = {(result.part.paper, result.part.dataset) for result in results}
    unrun = [f"{paper} {dataset}" for paper in METHODS for dataset in experiments[paper] if (paper, dataset) not in run]
    names = {is_quick: [r.part.name for r in results if r.part.quick == is_quick] for is_quick in (False, True)}
    titles = ("At the full size", names[False]), ("At the smaller size of `--quick`", names[True]), ("Not run", unrun)
    head = HEAD.format(
        options=(" --quick" if names[True] else "") + (" --kept" if unrun else ""),
        seconds=f"{sum(result.seconds for result in results):,.0f}",
        machine="; ".join(dict.fromkeys(result.machine for result in results)),
        sizes=" ".join(f"{title}: {', '.join(several)}." for title, several in titles if several),
    )
    parts = [_paper(name, rows, results) for name, rows in ledgers.items()]
    in_all = totals(ledgers).replace("\n", "\n\n").rstrip() + "\n"
    return "\n".join([TITLE, in_all, head, *parts]).rstrip() + "\n"


def _paper(name: str, rows: Sequence[Row], results: Sequence[Done]) -> str:
    table_lines = [
        " | ".join(("", *(cell.replace("|", "\\|") for cell in row), "")).strip() for row in map(cells, rows)
    ]
    table = "\n".join([" | ".join(("", *COLUMNS, "")).strip(), "| --- " * len(COLUMNS) + "|", *table_lines, ""])
    paper_results = [result for result in results if result.part.paper == name]
    seconds = ", ".join(f"{r.part.dataset} {r.seconds:,.0f}{' (quick)' if r.part.quick else ''}" for r in paper_results)
    lines = [f"## {METHODS[name].title} (`evenhand reproduce {name}`)\n"]
    lines += [f"CPU seconds: {seconds}.\n"] if paper_results else []
    lines.append(table)
    entries_by_reason: dict[str, list[str]] = {}
    for row in rows:
        for reason in dict.fromkeys((*row.entry.reasons, *sorted(row.tally.why))):
            entries_by_reason.setdefault(reason, []).append(row.entry.what)
    cannot = []
    for reason, names in entries_by_reason.items():  # with the data sets, and a few groups or models, that it is about
        about_lines = [line for result in paper_results for line in result.lines if line.why == reason]
        datasets, groups = (
            list(dict.fromkeys(values))
            for values in ((line.dataset for line in about_lines), (line.figure.cell.group for line in about_lines))
        )
        parts = [", ".join(datasets), ", ".join(groups) if len(groups) <= MOST_GROUPS else ""]
        about = f" ({'; '.join(part for part in parts if part)})" if about_lines else ""
        cannot.append(f"- {'; '.join(names)}{about}: {reason}.")
    differs = [
        _differing(line)
        for result in results
        if result.part.paper == name
        for line in result.lines
        if line.verdict is Verdict.DIFFERS
    ]
    if cannot:
        lines += ["Why not all, and what was tried:\n", *cannot, ""]
    if differs:
        lines += ["Beyond their tolerance:\n", *differs, ""]
    return "\n".join(lines)


MOST_GROUPS = 3
"""Groups or models that a reason names; one about more names none."""


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row of the page, or of the terminal."""
    tally = row.tally
    verdict_counts = (tally.figures, tally.agree, tally.otherwise, tally.apart)
    counts = (*verdict_counts, tally.information, tally.not_run, tally.near, tally.middling)
    status = ", ".join(
        f"{value} ({tally.agree:,} of {tally.judged:,})" if value is Status.PARTLY else value.value
        for value in row.status
    )
    return (
        row.entry.what,
        row.entry.shows,
        ", ".join(row.entry.datasets),
        status,
        *(f"{count:,}" if count else "" for count in counts),
    )


def _differing(line: Line) -> str:
    cell, figure = line.figure.cell, line.figure
    at = "".join(f", {coordinate}" for coordinate in cell.at)
    where = f"{line.dataset}, {figure.source}: {cell.quantity} of {cell.group}{at}"
    return f"- {where}: {figure.value} printed, {line.obtained} obtained."


def totals(ledgers: Mapping[str, Sequence[Row]]) -> str:
    """Two lines: tables and figures by status, the worst first, and printed figures by how they came out."""
    rows = [row for several in ledgers.values() for row in several]
    by_status = Counter(row.status[0] for row in rows)
    status_counts = ", ".join(f"{by_status[status]} {status.value}" for status in Status)
    names = ("figures", "agree", "otherwise", "apart", "differ", "information", "not_run", "near", "middling", "judged")
    sums = {name: sum(getattr(row.tally, name) for row in rows) for name in names}
    return (
        f"{len(rows)} tables and figures: {status_counts}.\n"
        f"{sums['figures']:,} figures: {sums['judged']:,} judged ({sums['differ']:,} differ for no known reason, "
        f"{sums['apart']:,} not reproduced, {sums['otherwise']:,} where the paper prints otherwise than its authors' "
        f"code, {sums['agree']:,} agree), {sums['information']:,} without a verdict, {sums['not_run']:,} not run. Of "
        f"those that do not agree {sums['near']:,} are within 10 %, {sums['middling']:,} more within 50 %.\n"
    )
