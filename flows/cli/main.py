"""The command ``evenhand``: its arguments, options and output."""

import atexit
import json
import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pydantic.warnings import UnsupportedFieldAttributeWarning

from flows.cli import options
from flows.cli.backfill import app as plan_app
from flows.cli.backfill import backfill_app
from flows.cli.backfill import trends_app as trend_app
from flows.cli.data import app as data_app
from flows.cli.draft.commands import app as draft_app
from flows.cli.intake import app as intake_app
from flows.cli.lending import app as lending_app
from flows.cli.operations import alerts_app, schedules_app, serve_app
from flows.cli.operations import app as overdue_app
from flows.cli.operations import commands_app as operations_app
from flows.cli.results import app as sql_app
from flows.cli.results import findings_app, league_app, measures_app, verdicts_app
from flows.cli.robustness import app as robustness_app
from flows.cli.runs import app as runs_app
from flows.cli.runs import keys_app, log_app, print_stages, release_app, report_app, review_app, stages_app, trust_app
from flows.cli.status import app as status_app
from flows.cli.suites import app as suites_app
from flows.cli.terminal import (
    console,
    errors,
    print_audit,
    print_json,
    print_run,
    show_progress,
    show_progress_in,
    visible,
)
from flows.supervision.crash_files import report_crash
from flows.supervision.file_modes import restrict
from flows.supervision.shutdown import errors_of_stopping, stoppable
from schemas.errors import EvenhandError, SpecError, missing_extra
from schemas.terms import ExitCode

app = typer.Typer(
    name="evenhand",
    cls=options.Grouped,
    callback=options.begin,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for part in (
    *(draft_app, intake_app, runs_app, measures_app, findings_app, verdicts_app, sql_app, stages_app, report_app),
    release_app,
    *(
        trust_app,
        review_app,
        serve_app,
        plan_app,
        backfill_app,
        status_app,
        suites_app,
        trend_app,
        league_app,
        robustness_app,
        lending_app,
        operations_app,
        overdue_app,
    ),
):
    app.registered_commands += part.registered_commands
if find_spec("research"):  # by name: what reproduces papers is above the product
    app.registered_commands += import_module("research.commands").commands()
app.add_typer(
    options.shortened(data_app, options.DATA),
    name="data",
    cls=options.Listed,
    short_help=options.GROUPS["Years"]["data"],
)
for group_app, group_name in ((keys_app, "keys"), (log_app, "log")):
    app.add_typer(group_app, name=group_name, cls=options.Listed, short_help=options.GROUPS["Trust"][group_name])
for group_app, group_name, lines in (
    (schedules_app, "schedules", options.SCHEDULES),
    (alerts_app, "alerts", options.ALERTS),
):
    app.add_typer(
        options.shortened(group_app, lines),
        name=group_name,
        cls=options.Listed,
        short_help=options.GROUPS["Operate"][group_name],
    )
LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="EVENHAND_LAKE",
        help="Directory of the lake, made if it is not there; or its URI, such as s3://bucket/lake.",
    ),
]

_UNREAD = 141
"""Exit code of a command whose reader hung up, as shells have it. It is not 1: that is a breach."""


@app.command(epilog="Example: evenhand audit data/audits/hmda-tx-2022.yaml --set source.path=tx.csv.gz")
def audit(
    spec: Annotated[
        Path | None,
        typer.Argument(help="Audit spec; the bundled boston1990 if left out.", autocompletion=options.complete_specs),
    ] = None,
    lake: LakeOption = "data/lake",
    year: Annotated[
        int | None,
        typer.Option(parser=options.year_of, metavar="YEAR", help="Year of the decisions, instead of the spec's."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Run this method only; may be given again.", autocompletion=options.complete_methods),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="default, or paper to reproduce published figures.")] = None,
    set_: options.SetOption = None,
    by_value: options.ByValueOption = None,
    jobs: options.JobsOption = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="STAGE", help="End after this stage and those that it needs: no verdict, no report."),
    ] = None,
    as_json: options.JsonOption = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the tables of all groups and methods, too.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print run, state and report alone.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Go on where memory is forecast not to suffice.")] = False,
    progress: Annotated[
        Path | None, typer.Option("--progress", metavar="FILE", help="Write stage and time left here, as JSON.")
    ] = None,
) -> None:
    """Run one audit; print a summary, the run id and the path of the report. A finished audit is not run again."""
    from flows.launch.audit import run_audit, run_until
    from flows.runs.first_page import first_page, left_out
    from tasks.lake.store import Lake

    if progress is not None:
        show_progress_in(progress)
    elif not (as_json or quiet):
        show_progress(verbose=verbose)
    spec_file = options.load_spec(spec, options.overrides(year, profile, set_ or []))
    if method:
        spec_file, dropped = options.only(spec_file, method)
        for measure in dropped:
            errors.print(f"--method: the limit on {measure} is left out, as its method does not run", markup=False)
    try:
        if until is not None:
            rows = run_until(spec_file.spec, lake, until, jobs, force=force, value=by_value)
            if as_json:
                print_json(rows)
            else:
                print_stages("stages that ran", rows)
            return
        summary = run_audit(spec_file.spec, lake, jobs, force=force, value=by_value)
    except SpecError as error:
        raise SpecError(spec_file.describe(error)) from error
    if quiet:
        print_run(console, summary)
    else:
        opened = Lake(lake)
        report, _ = first_page(opened, summary.run)
        if as_json:
            print_json(report)
        else:
            print_audit(console, report, left_out(opened, summary.run), summary, verbose=verbose)
    for warning in summary.warnings:
        errors.print(f"warning: {warning}", markup=False)
    raise typer.Exit(summary.exit_code)


@app.command(epilog="Example: evenhand doctor --lake data/lake")
def doctor(
    lake: LakeOption = "data/lake",
    fix_modes: Annotated[
        bool, typer.Option("--fix-modes", help="First close the files of the lake to other users of this machine.")
    ] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="First compile the kernels that are not compiled.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Print every check, and not only those that fail.")] = False,
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Check server, worker or site, from inside its container.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Check Python, libraries, lake, disk, memory, and that schedules fire. Exit 5 if a check fails."""
    from flows.operations.doctor import examine, examine_role, role_of

    show_progress()
    if fix_modes:
        from flows.supervision.file_modes import fix
        from tasks.lake.store import open_lake

        errors.print(f"{fix(open_lake(lake))} files and directories of the lake got another mode", markup=False)
    if prepare:
        from flows.supervision.kernels import compile_kernels

        compile_kernels()
    checks = examine(lake) if role is None else examine_role(role_of(role), lake)
    if as_json:
        console.print_json(json.dumps(checks))
    else:
        amiss = [check for check in checks if not check["ok"]]
        for check in checks if every else amiss:
            step = f"; {check['next_step']}" if check["next_step"] else ""
            console.print(f"{check['check']}: {check['found']}{step}", markup=False)
        line = (
            f"{len(amiss)} of {len(checks)} checks found something amiss"
            if amiss
            else f"all {len(checks)} checks are met"
        )
        console.print(line, markup=False)
    if not all(check["ok"] for check in checks):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


for group in options.GROUPS.values():
    options.shortened(app, group)


def main() -> None:
    """Run the command; an error of ours is a message and an exit code, never a traceback."""
    restrict()
    # pydantic warns of every alias in the models that FastAPI makes of Prefect's API; FastAPI ignores that itself, but
    # only inside catch_warnings, which ends for all threads as soon as it ends in one, and we load libraries in another
    warnings.filterwarnings(
        "ignore", category=UnsupportedFieldAttributeWarning, module=r"pydantic\._internal\._generate_schema"
    )
    code = stoppable(_code)
    if code not in (ExitCode.WITHIN, ExitCode.OUTSIDE, ExitCode.INCONCLUSIVE):
        # after an error Prefect still holds frames with DuckDB objects, whose bindings would print forty lines of
        # leaks over the message while the interpreter ends
        end(code)
    sys.exit(code)


def end(code: int) -> NoReturn:
    """Run the exit handlers, and end without freeing what is loaded, which takes half a second."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            code = _UNREAD if isinstance(error, BrokenPipeError) else ExitCode.INFRASTRUCTURE
    os._exit(code)


def _code() -> int:
    try:
        with errors_of_stopping():
            app(standalone_mode=True)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer and rich would end with 1
            return _UNREAD
        return end.code if isinstance(end.code, int) else 0
    except EvenhandError as error:
        errors.print(f"evenhand: {error}", markup=False)
        for cell in getattr(error, "examples", ()):  # of cells that could not be read: for this terminal alone
            errors.print(f"  {visible(cell)!r}", markup=False)
        return error.exit_code
    except ImportError as error:
        missing = missing_extra(error, "this command")
        if missing is None:
            errors.print(f"evenhand: {report_crash(error, sys.argv[1:])}", markup=False)
        else:
            errors.print(f"evenhand: {missing}", markup=False)
        return ExitCode.INFRASTRUCTURE
    except Exception as error:
        # a fault of ours: its traceback goes to a file, and it must not end with 1, which would read as a breach
        errors.print(f"evenhand: {report_crash(error, sys.argv[1:])}", markup=False)
        return ExitCode.INFRASTRUCTURE
    return ExitCode.WITHIN
