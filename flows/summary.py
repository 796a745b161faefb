"""What an audit prints at its end: one line per group, one line per check, and where to read on."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from schemas.terms import Note, State

if TYPE_CHECKING:
    from flows.record import Summary  # reaches every stage, and the commands that read need none

_STYLE = {State.BREACH: "bold red", State.WITHIN: "green", State.INSUFFICIENT_EVIDENCE: "yellow"}


def print_summary(console: Console, title: str, summary: "Summary") -> None:
    """Print groups, checks, state, run and report. Text is never read as markup."""
    console.print(f"{title}\n", markup=False, style="bold")
    console.print("value [interval] or (range of draws) by group; n = those whom it is about", markup=False)
    for table in _groups(summary):
        console.print(table)
        console.print()
    console.print(_checks(summary.checks) if summary.checks else Text("no thresholds set: nothing was checked"))
    state = Text(summary.state.value.replace("_", " "), style=_STYLE.get(summary.state, ""))
    console.print(Text("\nstate   ").append_text(state))
    console.print(f"run     {summary.run}", markup=False)
    console.print(f"report  {summary.report}", markup=False)


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    table = _table(title, list(rows[0]) if rows else [])
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)


def _groups(summary: "Summary") -> Iterator[Table]:
    """A table for the decisions and one for each method, of the groups that it has something to say of."""
    by = {(r["decision_maker"], r["protected_attribute"], r["group"], r["measure"]): r for r in summary.headline}
    groups = sorted({key[:3] for key in by})
    for title, measures in summary.titles.items():
        table = _table(title, ["decision maker", "group", "n", *measures.values()])
        for maker, attribute, group in groups:
            cells = [by.get((maker, attribute, group, measure)) for measure in measures]
            known = next((cell for cell in cells if cell), None)
            if known is not None:
                n = "" if known["n"] is None else f"{known['n']:,}"
                table.add_row(maker, Text(f"{attribute}: {group}"), n, *(_interval(cell) for cell in cells))
        yield table


def _checks(rows: Iterable[dict[str, Any]]) -> Table:
    table = _table("checks against the thresholds of the spec", ["decision maker", "group", "measure", "state", "why"])
    for r in rows:
        state = State(r["state"])
        value = f"{r['measure'].replace('_', ' ')} {_interval(r)}"
        shown = Text(state.value.replace("_", " "), style=_STYLE.get(state, ""))
        table.add_row(
            r["decision_maker"],
            Text(f"{r['protected_attribute']}: {r['group']}"),
            Text(value),
            shown,
            Text(r["reason"]),
        )
    return table


def _table(title: str, columns: list[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, title_style="italic")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _interval(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["value"] is None:
        return "withheld" if row["n"] is None else "undefined"
    low, high, notes = row["low"], row["high"], row["note"].split("; ")
    if low is None or high is None:
        return f"{row['value']:.4f} ({Note.NO_SPREAD if Note.NO_SPREAD in notes else 'no interval'})"
    ends = f"({low:.3f} to {high:.3f})" if Note.RANGE in notes else f"[{low:.3f}, {high:.3f}]"
    return f"{row['value']:.4f} {ends}"


def _cell(value: object) -> Text:
    if isinstance(value, float):
        return Text(f"{value:.4f}")
    return Text("" if value is None else str(value))
