"""Commands beyond the decision: pricing, flow, places of a lender, and its peers."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.cli import options
from flows.cli.results import SqlJsonOption, ask, print_answer
from flows.cli.terminal import console, errors, print_json, print_rows, visible
from schemas.errors import SpecError, nearest
from schemas.sentences import filled

app = typer.Typer(rich_markup_mode=None)
_ORDER = 'protected_attribute, "group"'
_PRICING = f"""
    SELECT protected_attribute, "group", outcome, product, rung, blocks AS adjusted_for, estimator, "primary" AS judged,
           value, low, high, n, n_reference, filled, filled_reference, rv AS robustness_value, reason
    FROM published_pricing
    WHERE run = $run AND ($group IS NULL OR "group" = $group) AND ($every OR (outcome = 'rate_spread' AND product = ''))
    ORDER BY {_ORDER}, outcome <> 'rate_spread', outcome, product, rung, estimator <> 'ols', estimator
"""  # noqa: S608 names of ours
_TABLES = {
    "ends": f"""
        SELECT protected_attribute, "group", outcome, n, events, value AS share, low, high, difference, difference_low,
               difference_high
        FROM published_flow WHERE run = $run AND ($group IS NULL OR "group" = $group) ORDER BY {_ORDER}
    """,  # noqa: S608 as above
    "reasons": f"""
        SELECT protected_attribute, "group", words AS first_reason, n AS denied, events, named, value AS share, low,
               high, p, p_holm, reason
        FROM published_denial_reasons WHERE run = $run AND ($group IS NULL OR "group" = $group)
        ORDER BY {_ORDER}, events DESC NULLS LAST
    """,  # noqa: S608 as above
    "plain": f"""
        SELECT protected_attribute, "group", measure, "of", share AS share_approved, value, low, high, n, n_reference,
               reason
        FROM published_disparities WHERE run = $run AND ($group IS NULL OR "group" = $group)
        ORDER BY {_ORDER}, measure, "of", share
    """,  # noqa: S608 as above
}
_NONE = (
    "this run followed no application beyond the decision: its source is no HMDA (methods.adjusted.practice: always)"
)


_STATES = """
    SELECT protected_attribute, "group", state, "limit" FROM told_verdicts
    WHERE run = $run AND measure = 'rate_spread_effect'
"""
_REFERENCES = "SELECT DISTINCT protected_attribute, reference_group FROM told_measures WHERE run = $run"


def _rows(lake: str, run: str | None, table: str, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a published table.

    Raises:
        SpecError: the run has no such table, or no row of the group.
    """
    table_query = "SELECT 1 AS there FROM information_schema.tables WHERE table_name = $table AND $run = $run"
    if not ask(lake, run, table_query, {"table": table}).num_rows:
        raise SpecError(_NONE)
    rows: list[dict[str, Any]] = ask(lake, run, query, parameters).to_pylist()
    if not rows and parameters.get("group"):
        groups = f'SELECT DISTINCT "group" FROM {table} WHERE run = $run'  # noqa: S608 a name of ours
        names = ask(lake, run, groups, {}).to_pydict()["group"]
        raise SpecError(f"no such group; of {parameters['group']!r}: {nearest(parameters['group'], sorted(names))}")
    if not rows:
        raise SpecError(_NONE)
    return rows


@app.command(epilog="Example: evenhand pricing --group Hispanic, or: evenhand pricing --all --json")
def pricing(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every price, and rate spreads inside each product.")] = False,
    as_json: SqlJsonOption = False,
) -> None:
    """Print what similar borrowers of each group pay beyond the reference group: rate spread, in percentage points."""
    rows = _rows(lake, run, "published_pricing", _PRICING, {"group": group, "every": every})
    print_answer(rows, list(rows[0]), "json" if as_json else "table")
    if as_json:
        return
    states = {tuple(of.values())[:2]: of for of in ask(lake, run, _STATES, {}).to_pylist()}
    references = _references(lake, run)
    for row in rows:
        verdict = states.get((row["protected_attribute"], row["group"]))
        if row["judged"] and verdict and None not in (row["value"], row["low"], row["n"], row["n_reference"]):
            words = {name: f"{row[name]:+.2f}" for name in ("low", "high")}
            words |= {name: f"{row[name]:,}" for name in ("n", "n_reference")}
            way = filled("lending", "less" if row["value"] < 0 else "more")
            words |= {"way": way, "size": f"{abs(row['value']):.2f}", "group": row["group"]}
            words |= {"reference": references.get(row["protected_attribute"], "reference"), "state": verdict["state"]}
            _say("price", limit=verdict["limit"], **words)


def _references(lake: str, run: str | None) -> dict[str, str]:
    """The reference group of each protected attribute."""
    rows = ask(lake, run, _REFERENCES, {}).to_pylist()
    return {row["protected_attribute"]: row["reference_group"] for row in rows if row["reference_group"]}


def _say(name: str, **words: object) -> None:
    """Prints a sentence into the stream of errors, so that a pipe has the table alone."""
    errors.print(filled("lending", name, **words), markup=False, soft_wrap=True)


@app.command(epilog="Example: evenhand flow, or: evenhand flow --table reasons --group Black")
def flow(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    table: Annotated[
        Literal["ends", "reasons", "plain"],
        typer.Option(help="How applications ended; reasons for denial; or standardised differences, ratios and odds."),
    ] = "ends",
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    as_json: SqlJsonOption = False,
) -> None:
    """Print what became of applications by group, with fallout; reasons for denial; or plain comparisons."""
    name = {"ends": "published_flow", "reasons": "published_denial_reasons", "plain": "published_disparities"}[table]
    rows = _rows(lake, run, name, _TABLES[table], {"group": group})
    print_answer(rows, list(rows[0]), "json" if as_json else "table")
    if table != "ends" or as_json:
        return
    references = _references(lake, run)
    ends = {(row["protected_attribute"], row["group"], row["outcome"]): row for row in rows}
    for attribute, of_group in dict.fromkeys(key[:2] for key in ends):
        words: dict[str, str] = {}
        for outcome in ("denied", "fallout"):
            row = ends.get((attribute, of_group, outcome), {})
            if None in (row.get("share"), row.get("difference_low")):
                break  # the reference group itself, or withheld
            words[outcome] = f"{100 * row['share']:.0f}"
            ends_of = {"difference": "difference", "low": "difference_low", "high": "difference_high"}
            words |= {f"{outcome}_{end}": f"{100 * row[column]:+.0f}" for end, column in ends_of.items()}
        else:
            _say("ends", group=of_group, reference=references.get(attribute, "reference"), **words)


@app.command(epilog="Example: evenhand places lender.yaml --peers 2024_public_lar.csv --json")
def places(
    spec: Annotated[Path, typer.Argument(help="Audit spec of one lender.", autocompletion=options.complete_specs)],
    peers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HMDA rows of others, or of all; the vintage of the lake if left out."),
    ] = None,
    lake: options.LakeOption = "data/lake",
    set_: options.SetOption = None,
    by_value: options.ByValueOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print a lender's applications by minority share of the tract, those of its peers, and the shortfall.

    Peers have 0.5 to 2 times its applications in the same areas and products. Nothing is written.
    """
    from flows.operations.market import places as of_spec
    from flows.partitions.part_spec import spec_to_audit
    from tasks.lake.store import Lake

    spec_file = options.load_spec(spec, options.overrides(None, None, set_ or []))
    try:
        audit_spec = spec_to_audit(spec_file.spec, Lake(lake, write=False), by_value)
        rows = of_spec(audit_spec, peers).to_pylist()
    except SpecError as error:
        raise SpecError(spec_file.describe(error)) from error
    if audit_spec.disclosure.profile != "published":
        errors.print("restricted: exact counts, which no disclosure pass has seen", markup=False)
    if as_json:
        print_json(rows)
        return
    print_rows(console, "places", [_rounded(row) for row in rows])
    for row in (row for row in rows if row["band"] == "above 50 %" and row["share"] is not None):
        words = {"of": row["of"].capitalize(), "share": f"{100 * row['share']:.0f}"}
        if None in (row["ratio"], row["low"], row["high"]):
            _say("no_place", reason=row["reason"], **words)
            continue
        counts = {name: f"{row[name]:.2f}" for name in ("ratio", "low", "high")}
        _say("place", peers=row["peers"], peers_share=f"{100 * row['peers_share']:.0f}", **counts, **words)
        if row["shortfall_low"] is not None:
            numbers = {"shortfall": "shortfall", "low": "shortfall_low", "high": "shortfall_high"}
            _say("shortfall", **words, **{name: f"{row[column]:,.0f}" for name, column in numbers.items()})


@app.command(epilog="Example: evenhand peers 549300GAX7IKJUKCJE72 --year 2024, or: evenhand peers --all --json")
def peers(
    lender: Annotated[str | None, typer.Argument(help="LEI, or until 2017 agency and respondent.")] = None,
    year: Annotated[
        int | None, typer.Option(parser=options.year_of, metavar="YEAR", help="The newest that is held if left out.")
    ] = None,
    area: Annotated[str | None, typer.Option("--msa", help="Only this metropolitan area, by its code.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Screen every lender of the year: its places beside its peers, its prices.")
    ] = False,
    lake: options.LakeOption = "data/lake",
    as_json: options.JsonOption = False,
) -> None:
    """Print lenders with 0.5 to 2 times a lender's applications in its areas and products, by a vintage of the lake."""
    from flows.operations import market
    from tasks.lake.store import Lake

    opened = Lake(lake, write=False)
    if every == (lender is not None):
        raise SpecError("give a lender, or --all for every lender of the year")
    if lender is None:
        vintage, rows = market.screen(opened, year)
        if as_json:
            print_json({"vintage": vintage, "lenders": rows})
        else:
            print_rows(console, f"{vintage}: for screening, and no verdict", [_rounded(row) for row in rows])
        return
    peer_set = market.peers(opened, lender, year, area)
    if as_json:
        print_json(vars(peer_set))
        return
    for note in peer_set.notes:
        errors.print(note, markup=False)
    title = f"{peer_set.name or peer_set.lender}: {peer_set.applications:,} applications, {peer_set.vintage}"
    if peer_set.reason:
        sys.stdout.write(visible(f"{title}\n{peer_set.reason}\n"))
    else:
        print_rows(console, title, [_rounded(row) for row in peer_set.rows])


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
