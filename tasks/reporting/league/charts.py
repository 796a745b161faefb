"""Charts of a league: partially pooled intervals of partitions, in the order of the table."""

from typing import Final

from tasks.metrics.league.asked import Subject
from tasks.metrics.league.rows import Line, Standings
from tasks.reporting.charts.caterpillar import Caterpillar
from tasks.reporting.charts.forest import Forest
from tasks.reporting.charts.marks import Mark, Side
from tasks.reporting.declared import names
from tasks.reporting.league.tables import called
from tasks.reporting.league.words import titled
from tasks.reporting.section import Figure
from tasks.reporting.trends.charts import scale

LABELLED: Final = 15
"""Partitions of a chart whose rows have labels; of more, the table names them."""
_INTERVAL = "95 % interval, partially pooled"


def pooled_intervals(subject: Subject, table: Standings, most: int) -> tuple[Figure, ...]:
    """The pooled intervals of at most so many partitions; no figure where there are none."""
    lines = [line for line in table.lines if line.pooled is not None][:most]
    if not lines:
        return ()
    unit, factor = scale(names(subject.measure)[1], (line.pooled or 0.0 for line in lines), subject.measure)
    marks = tuple(_mark(line, factor) for line in lines)
    figures = (line.figure for line in lines if line.figure.limit is not None)
    limit, side = next(((figure.limit, figure.side) for figure in figures), (None, ""))
    allowed: Side = "at_most" if side == "at_most" else "at_least"
    kind = Forest if len(marks) <= LABELLED else Caterpillar
    chart = kind(
        title=f"Pooled estimates: {titled(subject)}",
        unit=unit,
        rows=marks,
        limit=None if limit is None else factor * limit,
        side=allowed,
        interval=_INTERVAL,
        head="Partition",
    )
    more = f" The first {len(lines)} of {len(table.lines)}." if len(lines) < len(table.lines) else ""
    return (
        Figure(
            chart, f"Marks with partially pooled 95 % intervals, marked by the state of each one's own verdict.{more}"
        ),
    )


def _mark(line: Line, factor: float) -> Mark:
    """A partition in the unit of the chart."""
    value, low, high = (factor * (each or 0.0) for each in (line.pooled, line.pooled_low, line.pooled_high))
    return Mark(label=called(line.entrant), value=value, low=low, high=high, n=line.figure.n, state=line.figure.state)
