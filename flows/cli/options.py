"""Options that several commands share, their completion, and the groups of commands in the help."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from schemas.errors import SpecError, nearest

if TYPE_CHECKING:
    from schemas.audit.file import SpecFile


# --------------------------------------------------------------------------------------------------------------------
# Completion in the shell: run ids, audits, methods, measures, groups, years and specs, from files of the lake.
#
# Whatever goes wrong completes nothing: a shell that asks must get no message. No lake is made.


Complete = Callable[[typer.Context, str], list[str]]
_LAKE = "data/lake"


def _completing(candidates: Callable[[str, str], Iterator[str]]) -> Complete:
    """A completion of words that a lake holds, by a function of the lake's place and of what is typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            lake = str(ctx.params.get("lake") or os.environ.get("EVENHAND_LAKE") or _LAKE)
            return [word for word in dict.fromkeys(candidates(lake, incomplete)) if word.startswith(incomplete)]
        except Exception:  # whatever it is, the line that is being typed must not be written over
            return []

    complete.__name__, complete.__doc__ = candidates.__name__.lstrip("_"), candidates.__doc__
    return complete


def _run_ids(lake: str) -> list[str]:
    """The runs of a lake, the one written last first."""
    manifests = Path(lake).glob("runs/*/manifest.json")
    return [path.parent.name for path in sorted(manifests, key=lambda path: path.stat().st_mtime_ns, reverse=True)]


def _runs(lake: str, typed: str) -> Iterator[str]:
    """Ids of runs; with an @ the names ``AUDIT@YEAR``."""
    from flows.runs.run_names import audit_and_year

    for run in _run_ids(lake):
        yield "@".join(audit_and_year(run)) if "@" in typed else run


def _audits(lake: str, _: str) -> Iterator[str]:
    """Names of audits that have runs."""
    from flows.runs.run_names import audit_of

    yield from sorted({audit_of(run) for run in _run_ids(lake)})


def _years(lake: str, _: str) -> Iterator[str]:
    """Years that have a run, an attempt or an edition of the data."""
    from flows.runs.run_names import audit_and_year

    attempts = [path.name for path in Path(lake).glob("backfills/*/*")]
    editions = [path.name for path in Path(lake).glob("vintages/*")]
    years = {*(audit_and_year(run)[1] for run in _run_ids(lake)), *attempts, *editions}
    yield from sorted(year for year in years if year.isdecimal())


def _spans(lake: str, typed: str) -> Iterator[str]:
    """The same, and from the first of them to the last."""
    years = list(_years(lake, typed))
    if len(years) > 1:
        yield f"{years[0]}-{years[-1]}"
    yield from years


def _methods(_lake: str, _: str) -> Iterator[str]:
    """Names of methods, by their folders: importing one loads its libraries."""
    from tasks import methods

    yield from sorted({"outcomes", *(module.name for module in iter_modules(methods.__path__) if module.ispkg)})


def _column(lake: str, name: str) -> Iterator[str]:
    import pyarrow.parquet as pq

    for run in _run_ids(lake)[:1]:
        table = pq.read_table(Path(lake) / "reports" / run / "measures.parquet", columns=[name])
        yield from sorted(table[name].unique().to_pylist())


def _measures(lake: str, _: str) -> Iterator[str]:
    """Measures of the last run."""
    yield from _column(lake, "measure")


def _groups(lake: str, _: str) -> Iterator[str]:
    """Groups of the last run."""
    yield from _column(lake, "group")


def _specs(_lake: str, typed: str) -> Iterator[str]:
    """Audit specs below what is typed: directories and files of YAML."""
    folder = typed[: typed.rfind("/") + 1]
    for path in sorted(Path(folder or ".").iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield f"{folder}{path.name}/"
        elif path.suffix in (".yaml", ".yml"):
            yield f"{folder}{path.name}"


complete_runs, complete_audits, complete_years = _completing(_runs), _completing(_audits), _completing(_years)
complete_spans, complete_methods, complete_specs = _completing(_spans), _completing(_methods), _completing(_specs)
complete_measures, complete_groups = _completing(_measures), _completing(_groups)


# --------------------------------------------------------------------------------------------------------------------
# The commands in the order of their use, in groups, each in one line; what is printed without a command.


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Audit": {
        "audit": "Run one audit: what was found, and the report.",
        "init": "Draft an audit spec from a table.",
        "intake": "Read a table by its spec; print counts.",
        "suites": "Write the expectations of every table as files.",
        "show": "Print the first page of a run.",
        "report": "Make the files of a run's report again, or open it.",
        "serve": "Serve the lake as pages: read, sign, begin audits.",
    },
    "Years": {
        "plan": "Print what a back-fill would run, and its cost.",
        "backfill": "Audit every year that is not in the lake yet.",
        "status": "Print how every year stands.",
        "trend": "Print the measures year by year, and their page.",
        "league": "Compare the partitions of a year.",
        "restatement": "Print what new data of a year changed.",
        "data": "List, fetch, add and describe editions of HMDA.",
    },
    "Results": {
        "runs": "List the runs of the lake, newest first.",
        "measures": "Print the figures of a run.",
        "findings": "Count what was found, or pack files to read.",
        "verdicts": "Print the state of every question and group.",
        "adjusted": "Print the denial ladder of a run.",
        "pricing": "Print prices of similar borrowers by group.",
        "flow": "Print how applications ended, and why denied.",
        "places": "Print where a lender lends, beside its peers.",
        "peers": "List the peers of a lender, or screen a year.",
        "power": "Print what an audit could have seen.",
        "stability": "Print whether a state depends on choices.",
        "agreement": "Print which methods point the same way.",
        "alternatives": "Search for models as good and more even.",
        "sql": "Query the tables of the lake.",
        "stages": "Print rows, time and memory of every stage.",
    },
    "Trust": {
        "release": "Write the folder of a run that may leave the house.",
        "export": "Release a run as a RO-Crate or a data package.",
        "verify": "Check the files of a run, or a released folder.",
        "signoff": "Sign a run as prepared, reviewed or approved.",
        "note": "Enter a note, a reading or a remediation.",
        "review": "Print who signed runs, and what is open.",
        "log": "Print or check the log of the lake.",
        "keys": "Make, add and retire keys that sign runs.",
        "replay": "Compute a run again, and compare.",
        "disclose": "Print what is withheld, and why. Restricted.",
        "protect": "Mark a run as published.",
        "cite": "Print BibTeX of the software and the methods.",
    },
    "Operate": {
        "lineage": "Print or send the OpenLineage events of a run.",
        "doctor": "Examine this machine and the lake.",
        "worker": "Become a worker of a Prefect server.",
        "schedules": "List what a server is to run, pause or resume it.",
        "alerts": "List the alerts that were sent, test or resend them.",
        "overdue": "Tell whether an expected run never came.",
        "gc": "List what no kept run needs, or remove it.",
    },
    "Research": {
        "reproduce": "Repeat a paper's experiment, and compare.",
        "bench": "Time the same work two ways.",
    },
}
DATA = {
    "list": "Print the editions held, and those published.",
    "fetch": "Download an edition from its publisher.",
    "add": "Take in files that you have.",
    "repack": "Sort a held year by state and lender.",
    "describe": "Print the layout of a file, and its departures.",
    "twin": "Write a synthetic year, and the truth about it.",
}
KEYS = {
    "new": "Make a key that signs runs.",
    "add": "Enter a key in the log of the lake.",
    "retire": "Retire a key in favour of another.",
}
LOG = {
    "verify": "Check the chain, and that every run has its entry.",
    "head": "Print the digest of the last entry, to be kept elsewhere.",
}
ALERTS = {
    "test": "Send one message to each address.",
    "send": "Send digests, and what was not delivered.",
}
SCHEDULES = {
    "pause": "Switch a schedule off.",
    "resume": "Switch a schedule on again.",
}
OTHERS = "Others"
"""Where a command stands that no group names."""
BEGIN = """\
Begin with:
  evenhand audit                      the bundled audit, Boston 1990
  evenhand init TABLE -o SPEC.yaml    a draft for a table of your own
  evenhand COMMAND --help             every option, with an example
"""


class Grouped(TyperGroup):
    """Prints the commands below the headings of their groups, each with its whole line."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 the library gives it
        """The names, group by group."""
        grouped_names = [name for group in GROUPS.values() for name in group]
        return [
            *(n for n in grouped_names if n in self.commands),
            *(n for n in self.commands if n not in grouped_names),
        ]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A section for each group."""
        remaining = {name: self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden}
        for title, group in {**GROUPS, OTHERS: remaining}.items():
            rows = [(name, remaining.pop(name)) for name in tuple(group) if name in remaining]
            if rows:
                with formatter.section(title):
                    _write(formatter, rows)


class NamesRun(TyperCommand):
    """A command that takes its run as ``--run RUN`` and as its first argument, whichever it declares."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the run where the command declares it."""
        declared = next(parameter for parameter in self.params if parameter.name == "run")
        if isinstance(declared, TyperArgument):
            return super().parse_args(ctx, _run_first(args))
        _, arguments, _ = self.make_parser(ctx).parse_args(args=list(args))
        if len(arguments) == 1 and not any(word == "--run" or word.startswith("--run=") for word in args):
            at = len(args) - 1 - args[::-1].index(arguments[0])
            args = [*args[:at], "--run", *args[at:]]
        return super().parse_args(ctx, args)


def _run_first(args: list[str]) -> list[str]:
    """The arguments with the value of ``--run`` as the first of them."""
    for at, word in enumerate(args):
        if word == "--run" and at + 1 < len(args):
            return [args[at + 1], *args[:at], *args[at + 2 :]]
        if word.startswith("--run="):
            return [word.removeprefix("--run="), *args[:at], *args[at + 1 :]]
    return args


class Listed(TyperGroup):
    """Prints the commands with their whole lines."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take a first word that is no command as the run, where the group itself takes one."""
        valued = {name: p for p in self.params for name in p.opts if not getattr(p, "is_flag", False)}
        at = 0
        while at < len(args) and args[at].startswith("-"):
            at += 2 if args[at] in valued else 1
        if "--run" in valued and at < len(args) and args[at] not in self.commands and "--run" not in args[:at]:
            args = [*args[:at], "--run", *args[at:]]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 the library gives it
        """One section."""
        with formatter.section("Commands"):
            _write(formatter, self.commands.items())


def shortened(app: typer.Typer, lines: Mapping[str, str]) -> typer.Typer:
    """The same app with a help line for each listed command; a command without an explicit name has its function's."""
    for command in app.registered_commands:
        if command.callback is not None and "run" in signature(command.callback).parameters:
            command.cls = NamesRun
        name = command.name or (command.callback.__name__ if command.callback else "")
        command.short_help = lines.get(name, command.short_help)
    return app


def begin(
    ctx: typer.Context,
    version_: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Audits lending decisions for counterfactual unfairness."""
    if version_:
        typer.echo(f"evenhand {version('evenhand')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(f"{ctx.get_help()}\n\n{BEGIN}", nl=False)


def _write(formatter: Any, rows: Iterable[tuple[str, Any]]) -> None:
    for name, command in rows:
        formatter.write(f"  {name:<12} {command.get_short_help_str(62)}\n")


# --------------------------------------------------------------------------------------------------------------------
# Options that several commands share; reads the audit spec of the command line and applies its options.


LakeOption = Annotated[str, typer.Option("--lake", envvar="EVENHAND_LAKE", help="Directory of the lake, or its URI.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunArgument = Annotated[
    str, typer.Argument(help="Run: its id, the beginning of it, or AUDIT@YEAR.", autocompletion=complete_runs)
]
LatestArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="Run: its id, the beginning of it, or AUDIT@YEAR; the last run if left out.",
        autocompletion=complete_runs,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="Its id, the beginning of it, or AUDIT@YEAR; the last run if left out.",
        autocompletion=complete_runs,
    ),
]
SpecArgument = Annotated[
    Path,
    typer.Argument(
        help="Audit spec with {year} in source.path, or with source.vintage.", autocompletion=complete_specs
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        envvar="EVENHAND_JOBS",
        help="Stages at a time, each in a process of its own; the number of cores, at most 4, if left out.",
    ),
]
HeldYearsOption = Annotated[
    str | None,
    typer.Option(
        "--years",
        help="Such as 2010-2024, or 2012,2015-2017; all years with data if left out.",
        autocompletion=complete_spans,
    ),
]
ByValueOption = Annotated[
    str | None,
    typer.Option(
        "--by-value", metavar="VALUE", help="Of a spec with `by`: this partition alone; every row if left out."
    ),
]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key of the spec.")]

_DIGITS = 20
"""Of a year at most; whether it is one that an audit can be about, the spec says."""
_HERE = Path(__file__).parents[1]
_PLACES = (_HERE.parent / "data" / "audits" / "boston1990.yaml", _HERE / "bundled" / "boston1990.yaml")
BUNDLED = next((place for place in _PLACES if place.is_file()), _PLACES[0])
"""In a checkout beside the other audit specs, in an installed wheel inside the package."""


_CITATIONS = (_HERE.parent / "CITATION.cff", _HERE / "bundled" / "CITATION.cff")
CITATION = next((place for place in _CITATIONS if place.is_file()), _CITATIONS[0])
"""How this software is cited."""


def bundled() -> list[Path]:
    """The audit specs that come with the code."""
    return sorted(BUNDLED.parent.glob("*.yaml"))


def load_spec(path: Path | None, overrides: dict[str, str]) -> "SpecFile":
    """Read an audit spec, the bundled one if there is no path.

    Raises:
        SpecError: it is not there, or not usable.
    """
    from flows.runs.given import placed
    from schemas.audit.file import spec_text
    from tasks.ingest.sources.raw import check_regular
    from tasks.metrics.limits import faults  # with it come the libraries of the stages
    from tasks.pipeline.registry import read_spec

    file = path or BUNDLED
    if not file.is_dir():
        check_regular(file)
    try:
        spec_file = read_spec(spec_text(file), str(file), overrides, (faults,))
        return placed(spec_file, file.parent, overrides)
    except IsADirectoryError as error:
        raise SpecError(f"{file} is a directory; an audit spec is a YAML file, such as {file}/loans.yaml") from error
    except OSError as error:
        raise SpecError(f"no audit spec at {str(file)!r}; `evenhand init FILE.csv` drafts one from a table") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{file} is no audit spec, which is a UTF-8 text; name a YAML file") from error


def overrides(year: int | None, profile: str | None, pairs: list[str]) -> dict[str, str]:
    """Keys of the spec, dotted, and what the options of `evenhand audit` set them to.

    Raises:
        SpecError: a pair is none.
    """
    out = dict(pair(text) for text in pairs)
    if year is not None:
        out["year"] = str(year)
    if profile is not None:
        out["profile"] = profile
    return out


def only(spec_file: "SpecFile", methods: Collection[str]) -> tuple["SpecFile", list[str]]:
    """The spec with no other methods, and the measures of the limits that are left out with the others.

    Raises:
        SpecError: there is no such method, or the spec does not run it.
    """
    from schemas.audit.file import SpecFile
    from tasks.metrics.limits import check_limits, makers_of
    from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD, checked

    spec = spec_file.spec
    running = spec.methods.running()
    for name in methods:
        if name not in running:
            hint = nearest(name, running) if name not in METHODS else "add it to `methods`"
            raise SpecError(f"--method {name}: this spec runs no such method; {hint}")
    kept_limits = [limit for limit in spec.thresholds if not makers_of(limit).isdisjoint({*methods, OUTCOMES_METHOD})]
    values = spec.model_dump(mode="json")
    values["methods"] = {name: settings if name in methods else None for name, settings in values["methods"].items()}
    values["thresholds"] = [limit.model_dump(mode="json") for limit in kept_limits]
    narrowed = SpecFile(checked(values, spec_file.name), spec_file.name, spec_file.lines)
    check_limits(narrowed.spec)
    return narrowed, [limit.measure for limit in spec.thresholds if limit not in kept_limits]


def year_of(text: str) -> int:
    """The year of an option.

    Raises:
        SpecError: it is none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise SpecError(f"--year {text}: expected a year such as 2022")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    """KEY and VALUE of a --set.

    Raises:
        SpecError: it has no equals sign, or no key.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise SpecError(f"--set {text}: expected KEY=VALUE, such as --set source.path=FILE")
    return key, value
