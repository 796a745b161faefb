"""Summary at the end of an audit: a line per group, a line per check, and where the report is."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from schemas.terms import Note, State, Theory

if TYPE_CHECKING:
    from flows.runs.record import Summary  # reaches every stage, and the commands that read need none

_UNBOUNDED = 1_000_000
"""Columns of a console on which no table is too wide."""
_STYLE = {State.BREACH: "bold red", State.WITHIN: "green", State.INSUFFICIENT_EVIDENCE: "yellow"}


def print_summary(console: Console, title: str, summary: "Summary", *, verbose: bool = False) -> None:
    """Print theories, groups, state, run and report. Text is never read as markup."""
    from schemas.tables.source import read_words  # loads pyarrow, and other commands print rows

    console.print(f"{title}\n", markup=False, style="bold")
    console.print(_theories(summary.verdicts))
    console.print()
    if verbose:
        console.print(_open_rows(summary.verdicts))
        console.print()
    console.print("value [interval] or (range of draws) by group; n = those whom it is about", markup=False)
    for table in _groups(summary):
        console.print(table)
        console.print()
    state = Text(summary.state.value.replace("_", " "), style=_STYLE.get(summary.state, ""))
    console.print(Text("state   ").append_text(state))
    if summary.unchecked:
        console.print(summary.unchecked, markup=False)
    console.print(summary.withheld, markup=False)
    console.print(f"read    {read_words(summary.read)}", markup=False)
    console.print(f"run     {summary.run}", markup=False)
    console.print(f"report  {summary.report}", markup=False)


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table; where no terminal shows them, one line a row with whole words in columns."""
    names = list(rows[0]) if rows else []
    if not console.is_terminal:
        _print_lines(console, title, names, rows)
        return
    table = _table(title, names)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)


def robustness_words(rv: float, strongest: str, of_denial: float | None, of_group: float | None) -> str:
    """What an unseen column has to explain to bring a difference to zero, and what the strongest control explains.

    Args:
        rv: robustness value.
        strongest: control that explains most of what is left of denial, in words; empty without any.
        of_denial: share of what is left of denial that it explains.
        of_group: share of what is left of group membership.
    """
    unseen = f"that explains {_percent(rv)} of what is left of denial and of group membership"
    text = f"It would take a column {unseen} to bring this to zero"
    if not strongest or of_denial is None or of_group is None:
        return f"{text}."
    own = f"{_percent(of_denial)} and {_percent(of_group)}"
    return f"{text}; the strongest one in the data, {strongest}, explains {own}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _print_lines(console: Console, title: str, names: list[str], rows: list[dict[str, Any]]) -> None:
    """Title, header and rows for programs such as grep: no cell is wrapped or shortened, no line ends with blanks."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(Text(name), no_wrap=True)
    for row in rows:
        table.add_row(*(Text(" ".join(_cell(value).plain.splitlines())) for value in row.values()))
    wide = Console(width=_UNBOUNDED, color_system=None)
    with wide.capture() as shown:
        wide.print(table)
    lines = [line.rstrip() for line in shown.get().splitlines()] if rows else []
    console.out("\n".join([title] * bool(title) + lines), highlight=False)


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


def _theories(rows: Iterable[dict[str, Any]]) -> Table:
    """A line for each theory: its question, its state, and the groups behind it."""
    from schemas.tables.verdicts import QUESTIONS, STATES, effect_words  # loads pyarrow, as below

    known = list(rows)
    table = _table("", ["question", "theory", "state", "effect [verdict interval] and why"])
    table.title = None
    for whole in (row for row in known if row["role"] == "theory"):
        state = State(whole["state"])
        of = [row for row in known if row["theory"] == whole["theory"] and row["role"] == "primary"]
        effects = "; ".join(_effect(row) for row in of if effect_words(row)) if whole["theory"] != Theory.OWN else ""
        why = "" if effects and state is State.WITHIN else whole["reason"]
        table.add_row(
            QUESTIONS[Theory(whole["theory"])],
            whole["theory"],
            Text(STATES[state], style=_STYLE.get(state, "")),
            Text("; ".join(part for part in (why, effects) if part)),
        )
    return table


def _effect(row: dict[str, Any]) -> str:
    from schemas.tables.verdicts import effect_words, limit_words

    limit = limit_words(row)
    return f"{row['group']} {effect_words(row)}" + (f" ({limit})" if limit else "")


def _open_rows(rows: Iterable[dict[str, Any]]) -> Table:
    """The rows that are not within, each with its reason."""
    from schemas.tables.verdicts import STATES, effect_words, limit_words

    table = _table("groups that are not within", ["theory", "group", "measure", "limit", "state", "why"])
    for row in rows:
        if row["role"] not in ("theory", "watch") and (row["withheld"] or row["state"] != State.WITHIN):
            state = State.INSUFFICIENT_EVIDENCE if row["withheld"] else State(row["state"])
            words = Text(STATES[state] + " (withheld)" * row["withheld"], style=_STYLE.get(state, ""))
            group = Text(f"{row['protected_attribute']}: {row['group']}")
            table.add_row(
                *(row["theory"], group, Text(f"{row['measure']} {effect_words(row)}"), limit_words(row)),
                *(words, Text(row["reason"])),
            )
    return table


def _table(title: str, columns: list[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, title_style="italic")
    for name in columns:
        table.add_column(Text(name), overflow="fold")
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
