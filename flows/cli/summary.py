"""What an audit prints at its end: its first page, and on request a table for each method."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from flows.cli.terminal import print_table
from schemas.terms import Note, State, Theory

if TYPE_CHECKING:
    from flows.runs.record import Summary  # reaches every stage, and the commands that read need none

_STYLE = {State.BREACH: "bold red", State.WITHIN: "green", State.INSUFFICIENT_EVIDENCE: "yellow"}


def print_audit(
    console: Console, report: Mapping[str, Any], left_out: str, summary: "Summary", *, verbose: bool = False
) -> None:
    """Print the first page of an audit: at most 24 lines, the headline on the third.

    Args:
        console: where to print.
        report: the content of report.json.
        left_out: applications that no figure counts, in words.
        summary: of the audit; its state decides the exit code, whatever is withheld from the report.
        verbose: print the tables of all groups and methods, too.
    """
    from flows.runs.first_page import lines as decision

    width = min(console.width, decision.MOST_COLUMNS)
    shown = {**report, "state": summary.state}
    for line in decision.summary(shown, summary.report, left_out=left_out, more=_more(summary), width=width):
        console.print(_coloured(line), soft_wrap=True)
    if verbose:
        console.print()
        _print_tables(console, summary)


def _more(summary: "Summary") -> list[str]:
    """What an audit did not do, and what it does not tell."""
    return [*summary.not_run, *([summary.unchecked] if summary.unchecked else []), *summary.withheld_groups]


def print_run(console: Console, summary: "Summary") -> None:
    """Print run, state and report alone."""
    state = Text(summary.state.value.replace("_", " "), style=_STYLE.get(summary.state, ""))
    for name, said in (("run", Text(summary.run)), ("state", state), ("report", Text(summary.report))):
        console.print(Text(f"{name:<8}").append_text(said), soft_wrap=True)


def _coloured(line: str) -> Text:
    """A line with the words of states in their colours, which a pipe does not get."""
    from schemas.tables.verdicts import STATES  # loads pyarrow, and other commands print rows

    text = Text(line)
    for state, style in _STYLE.items():
        text.highlight_regex(rf"(?<=  ){STATES[state]}(?=  )", style=style)
    return text


def _print_tables(console: Console, summary: "Summary") -> None:
    """Theories, rows that are not within, groups by method, and what was read. Text is never read as markup."""
    from schemas.tables.source import read_words

    print_rows(console, "theories", _theories(summary.verdicts))
    print_rows(console, "groups that are not within", _open_rows(summary.verdicts))
    console.print("value [interval] or (range of draws) by group; n = those whom it is about", markup=False)
    for title, rows in _groups(summary):
        print_rows(console, title, rows)
    for sentence in (*_more(summary), summary.withheld):
        console.print(sentence.strip(), markup=False, soft_wrap=True)
    console.print(f"read    {read_words(summary.read)}", markup=False)


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table, and its title above it; nothing of a table without rows but the title."""
    if title:
        console.print(title, markup=False, style="italic")
    names = list(rows[0]) if rows else []
    if rows:
        print_table(console, names, [[_cell(value) for value in row.values()] for row in rows])


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


def _groups(summary: "Summary") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows for the decisions and for each method, of the groups that it has something to say of."""
    by = {(r["decision_maker"], r["protected_attribute"], r["group"], r["measure"]): r for r in summary.headline}
    groups = sorted({key[:3] for key in by})
    for table, measures in summary.titles.items():
        rows = []
        for maker, attribute, group in groups:
            cells = {title: by.get((maker, attribute, group, measure)) for measure, title in measures.items()}
            known = next((cell for cell in cells.values() if cell), None)
            if known is not None:
                n = "" if known["n"] is None else f"{known['n']:,}"
                whose = {"decision maker": maker, "group": f"{attribute}: {group}", "n": n}
                rows.append({**whose, **{title: _interval(cell) for title, cell in cells.items()}})
        yield table, rows


def _theories(verdicts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each theory: its question, its state, and the groups behind it."""
    from schemas.tables.verdicts import QUESTIONS, STATES, effect_words  # loads pyarrow, as below

    known, rows = list(verdicts), []
    for whole in (row for row in known if row["role"] == "theory"):
        state = State(whole["state"])
        of = [row for row in known if row["theory"] == whole["theory"] and row["role"] == "primary"]
        effects = "; ".join(_effect(row) for row in of if effect_words(row)) if whole["theory"] != Theory.OWN else ""
        why = "" if effects and state is State.WITHIN else whole["reason"]
        rows.append(
            {
                "question": QUESTIONS[Theory(whole["theory"])],
                "theory": whole["theory"],
                "state": Text(STATES[state], style=_STYLE.get(state, "")),
                "effect [verdict interval] and why": "; ".join(part for part in (why, effects) if part),
            }
        )
    return rows


def _effect(row: dict[str, Any]) -> str:
    from schemas.tables.verdicts import effect_words, limit_words

    limit = limit_words(row)
    return f"{row['group']} {effect_words(row)}" + (f" ({limit})" if limit else "")


def _open_rows(verdicts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are not within, each with its reason."""
    from schemas.tables.verdicts import STATES, effect_words, limit_words

    rows = []
    for row in verdicts:
        if row["role"] not in ("theory", "watch") and (row["withheld"] or row["state"] != State.WITHIN):
            state = State.INSUFFICIENT_EVIDENCE if row["withheld"] else State(row["state"])
            rows.append(
                {
                    "theory": row["theory"],
                    "group": f"{row['protected_attribute']}: {row['group']}",
                    "measure": f"{row['measure']} {effect_words(row)}".rstrip(),
                    "limit": limit_words(row),
                    "state": Text(STATES[state] + " (withheld)" * row["withheld"], style=_STYLE.get(state, "")),
                    "why": row["reason"],
                }
            )
    return rows


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
    if isinstance(value, Text):
        return value
    if isinstance(value, float):
        return Text(f"{value:.4f}")
    return Text("" if value is None else str(value))
