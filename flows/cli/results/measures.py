"""Command ``evenhand measures``: the figures of a run, by default those with a limit or in a headline."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.completion import complete_groups, complete_measures, complete_methods
from flows.cli.options import LakeOption, RunOption
from flows.cli.results.answers import Ask, FormatOption, JsonOption, RawOption, asking, show
from flows.cli.terminal import errors
from schemas.errors import SpecError, nearest
from schemas.terms import State

if TYPE_CHECKING:
    import pyarrow as pa

app = typer.Typer()

Column = Literal["method", "group", "measure", "value", "n", "state", "-value", "-n"]
_TABLES = ("measures", "published_measures", "verdicts", "published_verdicts")
_SILENT = ("subgroup", "parameters", "reference_group", "events", "p", "q", "note")
_CHECKED = ("breach", "within", "insufficient_evidence")
_WANTED = r"""
    ($measure IS NULL OR measure = $measure) AND ($method IS NULL OR method = $method)
    AND ($group IS NULL OR "group" = $group) AND ($state IS NULL OR state = $state)
    AND ($parts OR (subgroup = 0 AND regexp_full_match(parameters, '\{("sampled": "[^"]*")?\}')))
    AND ($every OR state IN $checked OR measure IN $headline)
"""


@app.command(epilog="Example: evenhand measures --measure approval_rate --format csv, or: evenhand measures --sort -n")
def measures(
    lake: LakeOption = "data/lake",
    run: RunOption = None,
    measure: Annotated[str | None, typer.Option(help="Only this measure.", autocompletion=complete_measures)] = None,
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=complete_groups)] = None,
    method: Annotated[
        str | None, typer.Option(help="Only this method; outcomes: rates.", autocompletion=complete_methods)
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only this state.")] = None,
    sort: Annotated[Column | None, typer.Option(help="Column to sort by; - before it: largest first.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every measure, with parts of groups and curves.")] = False,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print the measures of a run, each with its n, interval and state: those with a limit or in a headline.

    With --measure all rows of that measure, with --method or --state all rows of whole groups that fit, with --all
    every row.
    """
    wanted = {"measure": measure, "method": method, "group": group, "state": state}
    single = any((every, measure, method, state))
    query = f"SELECT * FROM told_measures WHERE run = $run AND {_WANTED}{_order(sort)}"  # noqa: S608 our own words
    with asking(lake, run, _TABLES) as ask:
        headline = [] if single else _headline(ask)
        chosen = {"every": not headline, "headline": headline, "checked": list(_CHECKED)}
        table = ask(query, {**wanted, **chosen, "parts": every or measure is not None})
        if not table.num_rows:
            raise SpecError(_nothing(ask, wanted))
        told = {"run": table["run"][0].as_py()}
        counted = ask("SELECT method, count(*) AS rows FROM told_measures WHERE run = $run GROUP BY ALL", {})
    shown = table.slice(0, limit)
    if as_json or format_ != "table":
        show(shown, "json" if as_json else format_, raw=raw)
    else:
        show(_without_blanks(shown), format_)
    others = {row["method"]: row["rows"] for row in counted.to_pylist()}
    _tell_others(told["run"], others, Counter(shown["method"].to_pylist()))


def _without_blanks(table: "pa.Table") -> "pa.Table":
    """Without the columns that say nothing of any row: whole groups, no parameters, no p-values, no notes."""
    silent = [name for name in _SILENT if set(table[name].unique().to_pylist()) <= {None, "", "{}", 0}]
    return table.drop_columns(silent)


def _headline(ask: Ask) -> list[str]:
    """The measures of the first page: those that verdicts are about, and approval rates; none of an earlier run."""
    try:
        judged = ask("SELECT DISTINCT measure FROM told_verdicts WHERE run = $run AND measure <> ''", {})
    except SpecError:
        return []
    return ["approval_rate", *judged["measure"].to_pylist()]


def _order(sort: str | None) -> str:
    if sort is None:
        return ""
    return f' ORDER BY "{sort.lstrip("-")}" {"DESC" if sort.startswith("-") else "ASC"} NULLS LAST'


def _nothing(ask: Ask, wanted: Mapping[str, str | None]) -> str:
    """Why no row fits: a word that no row has, with the nearest one, or words that no row has together."""
    for name, word in wanted.items():
        if word is not None:
            known = ask(f'SELECT DISTINCT "{name}" AS word FROM told_measures WHERE run = $run', {})  # noqa: S608
            words: list[Any] = sorted(known["word"].to_pylist())
            if word not in words:
                return f"--{name} {word}: no such row of the run; {nearest(word, words)}"
    asked = " ".join(f"--{name} {word}" for name, word in wanted.items() if word is not None)
    return f"{asked or 'measures'}: no row of the run fits; leave one of them out, or see all with --all"


def _tell_others(run: str, every: Mapping[str, int], shown: Mapping[str, int]) -> None:
    """Say on the error stream how many rows were not printed, and how to see them."""
    left = {method: n - shown.get(method, 0) for method, n in every.items() if n > shown.get(method, 0)}
    if left:
        of = ", ".join(f"{method} {n:,}" for method, n in sorted(left.items()))
        text = f"{sum(left.values()):,} other rows of {run} are not shown ({of}): --method NAME, or --all"
        errors.print(text, markup=False)
