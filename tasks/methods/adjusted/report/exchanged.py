"""What a given model says of itself: its decisions with the protected attribute exchanged."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.methods.adjusted.algorithm.detection import EXCHANGED
from tasks.methods.adjusted.report.lookups import Ladder
from tasks.methods.adjusted.report.words import plain
from tasks.reporting.material import Shown
from tasks.reporting.numbers import interval_of, points
from tasks.reporting.section import Cell, Row, TableView

MEASURES = {EXCHANGED: Shown("denial by the group itself (exchanged)", "points")}
GLOSSARY = {
    "exchanged": "decided again by the same model with the protected attribute set to the reference group's, all other "
    "columns as they are",
}


def readings(found: Ladder) -> Iterator[str]:
    """What the model does to each group by its own answer."""
    for row in found.exchanged:
        if row["effect"] is None:
            continue
        raised, lowered = found.count(row["raised"]), found.count(row["lowered"])
        yield (
            f"{row['group']}: of {found.count(row['n'])} members {raised} are denied whom the same model approves "
            f"as {found.view.reference} applicants with all else as it is, and {lowered} the other way round: "
            f"{points(row['effect'])} {interval_of(row['low'], row['high'])} by the group itself."
        )


def tables(found: Ladder) -> tuple[TableView, ...]:
    """A line for each group; no table where the model takes no attribute, or was fitted here."""
    rows = tuple(_line(found, row) for row in found.exchanged)
    changed = "Denied only as they are", "Denied only as exchanged"
    header = ("Group", "Exchanged", "Members", "Denied as they are", *changed, "Effect on denial", "Remarks")
    note = (
        "The model decides on each member again, with the attribute exchanged and nothing else. It is held as it is, "
        "and no column is unseen to it: the interval is about members alone. What it does through other columns is in "
        "no figure here."
    )
    return (TableView(f"The model asked with {found.view.attribute} exchanged", header, rows, note),) if rows else ()


def _line(found: Ladder, row: Mapping[str, Any]) -> Row:
    whose = (Cell(row["group"]), Cell(f"{row['column']} to {row['value']}" if row["effect"] is not None else "–"))
    counts = ("n", "events", "raised", "lowered")
    numbers = (Cell("–", "none") if row[name] is None else Cell(found.count(row[name]), "number") for name in counts)
    effect = Cell("–", "none")
    if row["effect"] is not None:
        effect = Cell(points(row["effect"]), "number", detail=interval_of(row["low"], row["high"]))
    return (*whose, *numbers, effect, Cell(plain(row["reason"])))
