"""Commands that read verdicts: verdicts, adjusted, disclose."""

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from flows.cli.options import LakeOption, LatestArgument
from flows.cli.results.answers import FormatOption, JsonOption, RawOption, ask, print_answer
from flows.cli.summary import robustness_words
from flows.cli.terminal import errors, print_json, visible
from schemas.errors import SpecError, nearest
from schemas.terms import State, Theory

app = typer.Typer()

_NAMED = 3
"""Groups that a sentence names; it counts more of them."""
_LADDER = """
    SELECT decision_maker, protected_attribute, "group", if(blocks = '', 'none', blocks) AS adjusted_for,
           estimator, average_over, "primary" AS judged, value AS difference, low, high, odds_ratio,
           n, events AS denied, support, rv AS robustness_value, e_value, e_value_near, reason
    FROM published_adjusted WHERE run = $run AND ($group IS NULL OR "group" = $group)
    ORDER BY decision_maker, protected_attribute, "group", rung,
             NOT (estimator = 'overlap' AND coalesce(support < $enough, false)), estimator <> 'logit', estimator,
             average_over DESC
"""
"""Where the support is poor, the overlap-weighted difference is read first."""
_UNSEEN = """
    SELECT a.decision_maker, a."group", a.n, a.events AS denied, a.rv, a.strongest,
           b.column_of_denial, b.column_of_group
    FROM published_adjusted AS a
    JOIN published_adjusted AS judged USING (run, rung, decision_maker, protected_attribute, "group")
    LEFT JOIN published_adjusted_benchmarks AS b
      ON b.run = a.run AND b.decision_maker = a.decision_maker AND b.protected_attribute = a.protected_attribute
     AND b."group" = a."group" AND b."column" = a.strongest AND b.times = 1
    WHERE a.run = $run AND ($group IS NULL OR a."group" = $group)
      AND judged."primary" AND a.estimator = 'lpm' AND a.rv IS NOT NULL
    ORDER BY ALL
"""
"""Of the judged rung: what an unseen column has to explain, and what the strongest control explains."""


@app.command(epilog="Example: evenhand verdicts --theory direct")
def verdicts(
    run: LatestArgument = None,
    lake: LakeOption = "data/lake",
    theory: Annotated[Theory | None, typer.Option(help="Only this kind of harm.")] = None,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
    raw: RawOption = False,
) -> None:
    """Print the state of every theory of harm, and of each judged group, with effect, verdict interval and limit."""
    from schemas.tables.verdicts import published  # loads pyarrow

    query = "SELECT * EXCLUDE (run) FROM told_verdicts WHERE run = $run AND ($theory IS NULL OR theory = $theory)"
    rows = ask(lake, run, query, {"theory": theory}).to_pylist()
    if not rows:
        raise SpecError(f"the run has no row of {theory or 'verdicts'}; audit again to make it, or leave --theory out")
    said = published(rows)
    if as_json or format_ == "json":
        print_json(said)
    elif format_ == "csv":
        listed = [dict(zip(said["columns"], row, strict=True)) for row in said["rows"]]
        print_answer(listed, said["columns"], format_, raw=raw)
    else:
        print_answer([_in_words(row) for row in rows], [], format_)
        for sentence in way_on(rows):
            errors.print(sentence, markup=False)


def way_on(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What to do about groups whose rows are withheld; nothing where none are."""
    groups = dict.fromkeys(row["group"] for row in rows if row["withheld"])
    if not groups:
        return []
    named = ", ".join(groups) if len(groups) <= _NAMED else f"{len(groups)} groups"
    return [f"{named}: withheld, as few people stand behind them. For your own eyes: --set disclosure.profile=internal"]


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    from schemas.tables.verdicts import STATES, effect_words, limit_words

    group = f"{row['protected_attribute']}: {row['group']}" if row["group"] else "(all)"
    named = {"theory": row["theory"], "group": group, "decisions_of": row["decision_maker"], "measure": row["measure"]}
    state = STATES[State(row["state"])] + " (withheld)" * row["withheld"]
    return {**named, "effect": effect_words(row), "limit": limit_words(row), "state": state, "why": row["reason"]}


@app.command(epilog="Example: evenhand adjusted --group Black, or: evenhand adjusted boston1990-1990-0123456789 --json")
def adjusted(
    run: LatestArgument = None,
    lake: LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the denial ladder of a run: differences of denial among ever more similar applicants, with intervals."""
    from tasks.methods.adjusted.algorithm.detection import ENOUGH_SUPPORT

    there = "SELECT 1 AS there FROM information_schema.tables WHERE table_name = 'published_adjusted' AND $run = $run"
    if not ask(lake, run, there, {}).num_rows:
        raise SpecError("this run has no denial ladder: its spec leaves it out (methods: {adjusted: null})")
    rows = ask(lake, run, _LADDER, {"group": group, "enough": ENOUGH_SUPPORT}).to_pylist()
    if not rows:
        groups = 'SELECT DISTINCT "group" FROM published_adjusted WHERE run = $run'
        known = ask(lake, run, groups, {}).to_pydict()["group"]
        raise SpecError(f"no such group; of {group!r}: {nearest(group or '', sorted(known))}")
    print_answer(rows, list(rows[0]), "json" if as_json else "table")
    for row in () if as_json else ask(lake, run, _UNSEEN, {"group": group}).to_pylist():
        sys.stdout.write(visible(_sentence(row)))


@app.command(epilog="Example: evenhand disclose boston1990-1990-0123456789")
def disclose(
    run: LatestArgument = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Print each withheld population: why, and the least and largest number that can be told of it. Restricted.

    The earlier published runs that were taken into account are named before it.
    """
    from flows.runs.disclosure import RESTRICTED, taken, withheld
    from flows.runs.index import run_of
    from flows.runs.naming import opened

    there, name = opened(lake, run)
    partitions = run_of(there, name).partitions
    rows, earlier = withheld(there, partitions), [each["run"] for each in taken(there, partitions)]
    sys.stderr.write(f"{RESTRICTED}\n")
    sys.stderr.write(f"audited together with earlier published runs: {', '.join(earlier) or 'none'}\n")
    print_answer(rows, list(rows[0]) if rows else [], "json" if as_json else "table")


def _sentence(row: dict[str, Any]) -> str:
    if row["rv"] is None:
        return ""
    text = robustness_words(row["rv"], row["strongest"] or "", row["column_of_denial"], row["column_of_group"])
    return f"\n{row['group']}, decisions of the {row['decision_maker']}: {text}\n"
