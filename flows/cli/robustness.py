"""The commands ``power`` (what an audit could have seen) and ``stability`` (whether a state depends on choices)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import options
from flows.cli.terminal import console, errors, print_rows
from schemas.errors import InfrastructureError, SpecError

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
        "question": row.question,
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
    return (
        f"{row.group}{where}: harm of {100 * row.points:g} points would be outside in {100 * outside:.0f} of 100 "
        "such audits."
    )


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
    if json_file is not None:
        _write(json_file, rows_of_choices(of_groups))
    if svg is not None:
        _write_text(svg, str(drawn(with_choices[0].chart(), "choices")), "--svg")


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
            "points of approval": f"{effect.value:+.1f} [{effect.low:+.1f}, {effect.high:+.1f}]",
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
