"""Options that several commands share; reads the audit spec of the command line and applies its options."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.completion import complete_runs, complete_spans, complete_specs
from schemas.errors import SpecError, nearest

if TYPE_CHECKING:
    from schemas.audit.file import SpecFile

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
        help="Such as 2010-2024, or 2012,2015-2017; all years at hand if left out.",
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


def bundled() -> list[Path]:
    """The audit specs that come with the code."""
    return sorted(BUNDLED.parent.glob("*.yaml"))


def load_spec(path: Path | None, overrides: dict[str, str]) -> "SpecFile":
    """Read an audit spec, the bundled one if there is no path.

    Raises:
        SpecError: it is not there, or not usable.
    """
    from flows.runs.given import placed
    from schemas.audit.text import spec_text
    from tasks.ingest.regular_file import check_regular
    from tasks.metrics.limits import faults  # with it come the libraries of the stages
    from tasks.pipeline.specs import read_spec

    file = path or BUNDLED
    if not file.is_dir():
        check_regular(file)
    try:
        read = read_spec(spec_text(file), str(file), overrides, (faults,))
        return placed(read, file.parent, overrides)
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
    out = dict(pair(each) for each in pairs)
    if year is not None:
        out["year"] = str(year)
    if profile is not None:
        out["profile"] = profile
    return out


def only(read: "SpecFile", methods: Collection[str]) -> tuple["SpecFile", list[str]]:
    """The spec with no other methods, and the measures of the limits that are left out with the others.

    Raises:
        SpecError: there is no such method, or the spec does not run it.
    """
    from schemas.audit.file import SpecFile
    from tasks.metrics.limits import check_limits, makers_of
    from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD
    from tasks.pipeline.specs import checked

    spec = read.spec
    running = spec.methods.running()
    for name in methods:
        if name not in running:
            known = nearest(name, running) if name not in METHODS else "add it to `methods`"
            raise SpecError(f"--method {name}: this spec runs no such method; {known}")
    kept = [limit for limit in spec.thresholds if not makers_of(limit).isdisjoint({*methods, OUTCOMES_METHOD})]
    values = spec.model_dump(mode="json")
    values["methods"] = {name: own if name in methods else None for name, own in values["methods"].items()}
    values["thresholds"] = [limit.model_dump(mode="json") for limit in kept]
    narrowed = SpecFile(checked(values, read.name), read.name, read.lines)
    check_limits(narrowed.spec)
    return narrowed, [limit.measure for limit in spec.thresholds if limit not in kept]


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
