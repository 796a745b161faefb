"""Commands ``power``, ``stability``, ``agreement`` and ``alternatives``: how firm results are, or could be instead."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli import options
from flows.cli.terminal import console, errors, print_json, print_rows, show_progress
from schemas.errors import InfrastructureError, SpecError
from schemas.questions import QUESTIONS
from schemas.sentences import filled
from schemas.terms import Theory

if TYPE_CHECKING:
    from tasks.methods.adjusted.adjust.power import Power
    from tasks.methods.adjusted.adjust.stability import Stability

app = typer.Typer(rich_markup_mode=None)
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every row there, as JSON.")]
_SENSIBLE = 10
"""A count of people is printed to the nearest of so many."""


@app.command(
    epilog="Example: evenhand power loans.yaml --group Black --plants 200, or: evenhand power loans.yaml "
    "--part purpose=refinance --json power.json"
)
def power(
    spec: Annotated[Path, typer.Argument(help="Audit spec.", autocompletion=options.complete_specs)],
    group: Annotated[
        str | None, typer.Option(help="Harm this group alone, by its name or as ATTRIBUTE: NAME; each if left out.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=LEVEL", help="Harm this part of the group alone, as the table `parts` names it."),
    ] = None,
    plants: Annotated[int, typer.Option(min=1, max=100_000, help="Copies of the table for each size of harm.")] = 100,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draws; that of the spec if left out.")] = None,
    lake: Annotated[
        str, typer.Option("--lake", envvar="EVENHAND_LAKE", help="Directory of the lake, or its URI; it may hold none.")
    ] = "data/lake",
    set_: options.SetOption = None,
    by_value: options.ByValueOption = None,
    jobs: options.JobsOption = None,
    json_file: JsonFile = None,
) -> None:
    """Print what this audit could have seen: how often planted harm of 2, 5 and 10 points would be outside.

    Each copy of the table draws labels again among applicants of like risk, and turns approvals of the group into
    denials at random. A row with 0 points tells how often an honest lender would be outside. Nothing is written.
    """
    from flows.concurrency.workers import default_jobs
    from flows.launch.rejudging import Question, power_rows

    spec_file = options.load_spec(spec, options.overrides(None, None, set_ or []))
    question = Question(group, part, plants, seed, jobs or default_jobs(), by_value)
    try:
        rows = power_rows(spec_file.spec, lake, question)
    except SpecError as error:
        if str(error).startswith("--"):  # of an option, and not of the spec
            raise
        raise SpecError(spec_file.describe(error)) from error
    print_rows(console, "What this audit could have seen: share of copies by state", [_shown(row) for row in rows])
    for row in rows:
        if row.points and row.outside is not None and row.question != "approval_rates":
            console.print(power_sentence(row, row.outside), markup=False, soft_wrap=True)
    errors.print(
        f"{plants} copies a row: a share of 0.50 has a standard error of {0.5 / plants**0.5:.2f}", markup=False
    )
    if json_file is not None:
        _write(json_file, [asdict(row) | {"n": _about(row.n)} for row in rows])


def _shown(row: "Power") -> dict[str, Any]:
    return {
        "question": QUESTIONS[Theory(row.question)].short,
        "group": f"{row.protected_attribute}: {row.group}",
        "part": row.part or "(all)",
        "n about": f"{_about(row.n):,}",
        "planted": f"{100 * row.points:g} points" if row.points else "none (false alarms)" if row.plants else "",
        **{
            name: "" if (share := getattr(row, name)) is None else f"{share:.2f}"
            for name in ("outside", "within", "inconclusive")
        },
        "why": row.reason,
    }


def power_sentence(row: "Power", outside: float) -> str:
    """A row in words."""
    where = f" where {row.part.replace(': ', ' is ', 1)}" if row.part else ""
    share = f"harm of {100 * row.points:g} points would be outside in {100 * outside:.0f} of 100 such audits"
    return f"{QUESTIONS[Theory(row.question)].short}, {row.group}{where}: {share}."


def _about(n: int) -> int:
    return _SENSIBLE * round(n / _SENSIBLE)


@app.command(
    epilog="Example: evenhand stability boston1990@1990 --svg choices.svg, or: evenhand stability --group Black"
)
def stability(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    json_file: JsonFile = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw the choices there; of several groups --group one."),
    ] = None,
) -> None:
    """Print in how many of 48 defensible choices of form, columns, files and estimator the state is the same.

    The choices are those of docs/verdicts.md. Parts of a group are in none of them. Nothing is written to the lake.
    """
    from flows.launch.rejudging import stability_of_run
    from schemas.errors import nearest
    from tasks.methods.adjusted.adjust.stability import rows_of_choices
    from tasks.reporting.charts.layout import svg as drawn

    name, every = stability_of_run(lake, run)
    of_groups = [of for of in every if group is None or group in (of.group, f"{of.protected_attribute}: {of.group}")]
    if not of_groups:
        raise SpecError(
            f"--group {group}: run {name} judges no such group; {nearest(str(group), [s.group for s in every])}"
        )
    with_choices = [of for of in of_groups if of.choices]
    if svg is not None and len(with_choices) != 1:
        listed = ", ".join(of.group for of in with_choices) or "none"
        raise SpecError(f"--svg draws one group; --group NAME chooses among those with choices: {listed}")
    for of in of_groups:
        print_rows(console, "", _differing(of))
        console.print(of.sentence, markup=False, soft_wrap=True)
        if of.choices and of.different < len(of.choices):
            text = f"{of.different} of the {len(of.choices)} choices differ in this file"
            errors.print(f"{of.group}: {text}: it has no gaps, or no column of branches", markup=False)
    if with_choices:
        errors.print("Intervals are two-sided; states are one-sided at 5 %, over all groups (docs/verdicts.md).")
    if json_file is not None:
        _write(json_file, rows_of_choices(of_groups))
    if svg is not None:
        _write_text(svg, str(drawn(with_choices[0].chart(), "choices")), "--svg")


@app.command(
    epilog="Example: evenhand alternatives loans.yaml --loss 0.01, or: evenhand alternatives loans.yaml --register"
)
def alternatives(
    spec: Annotated[Path, typer.Argument(help="Audit spec.", autocompletion=options.complete_specs)],
    loss: Annotated[
        float | None, typer.Option(min=0, max=0.5, help="Most that the AUC may fall; that of the spec, or 0.01.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(min=1, help="Candidates that are tried; those of the spec, or 300.")
    ] = None,
    lake: options.LakeOption = "data/lake",
    set_: options.SetOption = None,
    by_value: options.ByValueOption = None,
    jobs: options.JobsOption = None,
    register: Annotated[
        bool, typer.Option("--register", help="Print every candidate, too. Restricted: figures of the choosing part.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Search for models as good as the fitted one that approve a group more nearly as often as the reference group.

    The audit runs with this method alone. A search that was stopped goes on where it was. Exit 0 whatever is found: an
    alternative is no verdict.
    """
    from flows.cli.results import ask
    from flows.launch.audit import run_audit

    show_progress()
    limits = {"loss": loss, "candidates": candidates}
    keys = {f"{_ALTERNATIVES}.{name}": str(value) for name, value in limits.items() if value is not None}
    overrides = options.overrides(None, None, set_ or [])
    spec_file = options.load_spec(spec, overrides | (keys or {f"{_ALTERNATIVES}.candidates": str(_CANDIDATES)}))
    spec_file, _ = options.only(spec_file, ["adjusted"])
    try:
        summary = run_audit(spec_file.spec, lake, jobs, value=by_value)
    except SpecError as error:
        raise SpecError(spec_file.describe(error)) from error
    gains = ask(lake, summary.run, _GAINS, {}).to_pylist()
    tried = ask(lake, summary.run, _REGISTER, {}).to_pylist() if register else []
    if register:
        errors.print("restricted: not for publication, since the register has exact numbers", markup=False)
    if as_json:
        print_json({"run": summary.run, "gains": gains, **({"register": tried} if register else {})})
        return
    print_rows(console, "Less discriminatory alternatives", gains)
    for gain in gains:
        errors.print(gain_sentence(gain), markup=False, soft_wrap=True)
    if register:
        print_rows(console, "Candidates on the choosing part", tried)
    console.print(f"run  {summary.run}", markup=False)


def gain_sentence(gain: Mapping[str, Any]) -> str:
    """A row of gains in words: a gain of half of the splits or fewer is not firm, in any order of splits."""
    words = {name: gain[name] for name in ("group", "candidates", "chosen", "reason", "splits", "splits_above")}
    words |= {n: f"{gain[n]:.3f}" for n in ("ratio", "gain", "low", "high") if gain[n] is not None}
    words["interval"] = "" if gain["low"] is None else f", {words['low']} to {words['high']}"
    is_gain = gain["above_zero"] and gain["gain"] is not None
    is_of_few = is_gain and 2 * gain["splits_above"] <= gain["splits"]
    return filled("lending", "gain_of_few_splits" if is_of_few else "gain" if is_gain else "no_gain", **words)


_ALTERNATIVES, _CANDIDATES = "methods.adjusted.alternatives", 300
_GAINS = "SELECT * EXCLUDE (run) FROM published_alternative_gains WHERE run = $run ORDER BY ALL"
_REGISTER = 'SELECT * EXCLUDE (run) FROM alternatives WHERE run = $run ORDER BY candidate, protected_attribute, "group"'


def _differing(of: "Stability") -> list[dict[str, Any]]:
    """A line for each choice, sorted by the effect."""
    from tasks.methods.adjusted.adjust.power import WORDS

    return [
        {
            "group": of.group,
            **{"choice": effect.number, "estimator": effect.choice.estimator, "form": effect.choice.form},
            "numbers": "cut off" if effect.choice.clipped else "whole",
            "branches": "in" if effect.choice.through else "out",
            "files": "weighted" if effect.choice.weighted else "complete",
            "points of approval [95 %]": f"{effect.value:+.1f} [{effect.low:+.1f}, {effect.high:+.1f}]",
            "state": WORDS.get(effect.state, "inconclusive"),
        }
        for effect in sorted(of.choices, key=lambda effect: (effect.value, effect.number))
    ]


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    _write_text(file, json.dumps(rows, ensure_ascii=False, indent=1) + "\n", "--json")


def _write_text(file: Path, text: str, option: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"{option} {file}: cannot be written ({error.strerror})") from error


# --------------------------------------------------------------------------------------------------------------------
# Command ``agreement``: which methods point the same way, by group and by applicant.


_SIGNS = """
    SELECT * EXCLUDE (run) FROM told_agreement WHERE run = $run AND ($group IS NULL OR "group" = $group)
    ORDER BY protected_attribute, "group", theory, decision_maker, measure
"""
_PAIRS = """
    SELECT * EXCLUDE (run) FROM published_agreement_pairs WHERE run = $run AND ($group IS NULL OR "group" = $group)
    ORDER BY ALL
"""
_VIEWS = "SELECT view_name AS name FROM duckdb_views() WHERE NOT internal AND $run IS NOT NULL"
_FINDINGS = "SELECT * EXCLUDE (run) FROM findings WHERE run = $run"
_RESTRICTED = "restricted: one line an application, and not for publication"
_WORTH = "a flag is no finding about that person: evenhand bench twin --individuals measures what it is worth"
_TWINS = (
    "twins: simulated tables of 2,000 rows in which the truth is known; how often the measure spoke against the group"
)
By = Literal["group", "applicant"]


@app.command(epilog="Example: evenhand agreement boston1990@1990 --by applicant --group Black")
def agreement(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    by: Annotated[By, typer.Option(help="Signs of groups, or flags of applicants.")] = "group",
    group: Annotated[str | None, typer.Option(help="Only this group.", autocompletion=options.complete_groups)] = None,
    rows: Annotated[bool, typer.Option("--rows", help="With --by applicant: a line an application.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print which methods point the same way, and why they may differ. No vote: they ask different questions.

    By group: the sign of every measure, and how often it spoke in simulated twins of known truth. By applicant: how
    many of a group two methods flag, of those whom both can judge, with kappa and AC1 (95 % intervals, resampled
    applicants) and Jaccard. A table with a cell of few people is withheld as the run's profile says. --rows is
    restricted.
    """
    from flows.cli.results import asking, print_answer
    from flows.runs.disclosure import flags_of
    from flows.runs.index import run_of
    from flows.runs.run_names import opened

    if rows and by == "group":
        raise SpecError("--rows goes with --by applicant")
    tables = {*("findings", "agreement", "verdicts", "published_agreement_pairs")}
    with asking(lake, run, {*tables, *(f"published_{name}" for name in tables)}) as ask:
        spec = run_of(*opened(lake, run)).spec
        if by == "group":
            signs = ask(_SIGNS, {"group": group}).to_pylist()
            if signs and signs[0].get("explains") is None:
                raise SpecError("an earlier version made this run, without numbers of its signs; run its audit again")
            printed = signs_by_group(signs, spec)
        elif rows:
            errors.print(_RESTRICTED, markup=False)
            flagged = flags_of(spec, ask(_FINDINGS, {}))
            printed = [row for row in flagged if group in (None, row["group"])]
        elif "published_agreement_pairs" not in ask(_VIEWS, {})["name"].to_pylist():
            raise SpecError("an earlier version made this run, and it has no table of pairs; run its audit again")
        else:
            printed = ask(_PAIRS, {"group": group}).to_pylist()
    if not printed:
        raise SpecError("no method has a result for that; see `evenhand verdicts`, or leave --group out")
    lines = []
    if by == "group" and not as_json:
        patterns = {row["group"]: row["pattern"] for row in printed}
        lines = [f"{name}: {text}" for name, text in patterns.items()]
        printed = [{name: row[name] for name in row if name not in ("pattern", "could_speak")} for row in printed]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    print_answer(printed, list(printed[0]), "json" if as_json else "table")
    errors.print(_WORTH if by == "applicant" else _TWINS, markup=False, soft_wrap=True)


def signs_by_group(signs: list[dict[str, Any]], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each measure of a group, with the pattern of all its measures, those that were not asked for too."""
    from schemas.tables.verdicts import measure_in_approval
    from tasks.metrics.algorithm.agreement import TWINS, TWINS_AS_INPUT, WORLDS, not_asked, pattern

    unasked = not_asked({name for name, settings in spec["methods"].items() if settings is not None})
    signs_of: dict[tuple[str, str], dict[str, str]] = {}
    for row in signs:
        signs_of.setdefault((row["protected_attribute"], row["group"]), {}).setdefault(row["measure"], row["sign"])
    inputs = {name for name, column in spec["columns"].items() if column is not None}
    sees = {p["name"]: not inputs.isdisjoint(p["columns"]) for p in spec["protected"]}
    printed = []
    for row in signs:
        of_group = pattern(unasked | signs_of[row["protected_attribute"], row["group"]])
        of_twins = (TWINS_AS_INPUT if sees[row["protected_attribute"]] else TWINS).get(row["measure"])
        turned = measure_in_approval(row)
        printed.append(
            {
                "group": f"{row['protected_attribute']}: {row['group']}",
                "pattern": of_group.text,
                "could_speak": of_group.able,
                **{name: row[name] for name in ("reference_group", "theory", "decision_maker", "method", "measure")},
                **{name: row[name] for name in ("sign", "state")},
                **{name: turned.get(name) for name in ("value", "low", "high", "null_low", "null_high", "n")},
                "may_differ": row["explains"],
                **{
                    f"twins_{world.replace(' ', '_')}": "" if of_twins is None else of_twins[at].words()
                    for at, world in enumerate(WORLDS)
                },
            }
        )
    return printed
