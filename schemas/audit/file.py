"""The audit spec as YAML text: parsed, overridden, checked, and every fault given its file and line."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.audit.faults import Check, check
from schemas.audit.methods import Known
from schemas.audit.spec import AuditSpec
from schemas.audit.text import Mark, parse
from schemas.errors import Location, SpecError, SpecFaultsError, nearest, raise_together


@dataclass(frozen=True)
class SpecFile:
    """A spec with the lines of its keys, so that later errors can name them too."""

    spec: AuditSpec
    name: str
    lines: Mapping[Location, int] = field(default_factory=dict)

    def describe(self, error: SpecError) -> str:
        """The error's message, led by file, line and dotted key; of several faults a line each."""
        return _described(self.name, self.lines, error)


def read_spec(
    text: str, name: str, known: Known, overrides: Mapping[str, str] | None = None, also: Sequence[Check] = ()
) -> SpecFile:
    """Parse and check a spec.

    Args:
        text: the YAML.
        name: what to call the file in errors.
        known: the methods that there are.
        overrides: dotted key -> YAML value, as given by ``--set``.
        also: further checks of the whole spec, whose faults are told with its own.

    Raises:
        SpecError: not YAML, unknown keys, wrong types or values: all of them at once, a line each, with file, line and
            expectation.
    """
    try:
        parsed = parse(text)
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from error
    raw, lines = parsed.value, dict(parsed.lines)
    if not isinstance(raw, dict):
        raise SpecError(f"{name}: this is no audit spec, which is a YAML mapping of keys; {_drafting(name)}")
    messages = [f"{name}, line {line}: the key {key!r} stands there twice" for key, line in parsed.twice]
    for key, value in (overrides or {}).items():
        try:
            made = _override(raw, key, value)
            kept = {at: line for at, line in lines.items() if at[: len(made[-1])] != made[-1]}
            lines = {**kept, **dict.fromkeys(made, 0)}
        except SpecError as error:
            messages.append(f"{name}: {error}")
    _add_unconfirmed(raw, parsed.marks, [_location(key) for key in overrides or {}])
    spec, faults = check(raw, known, (_filled_in, *also))
    placed = sorted(faults, key=lambda fault: _line(lines, fault.location))
    messages += [_described(name, lines, fault) for fault in placed]
    raise_together([SpecError(message) for message in dict.fromkeys(messages)])
    if spec is None:
        raise SpecError(f"{name}: the spec cannot be read, and nothing tells why; please report it")
    return SpecFile(spec, name, lines)


def _drafting(name: str) -> str:
    """How to come to a spec, from this file if it is a table by its name."""
    table = name if name.endswith((".csv", ".tsv", ".txt", ".gz", ".parquet")) else "FILE.csv"
    return f"`evenhand init {table}` drafts one from a table"


def _add_unconfirmed(raw: dict[str, Any], marks: Sequence[Mark], given: Collection[Location]) -> None:
    """Name the marked keys in the spec itself, without those that ``--set`` gives."""
    left = [mark.key for mark in marks if not any(mark.location[: len(at)] == at for at in given)]
    said = raw.get("unconfirmed") or []
    if left and isinstance(said, list) and ("unconfirmed",) not in given:
        raw["unconfirmed"] = list(dict.fromkeys([*said, *left]))


def _filled_in(spec: AuditSpec, _: Collection[Location]) -> Iterator[SpecError]:
    """Keys that are not for users."""
    if spec.source.vintage_file is not None:
        message = (
            "this is filled in by evenhand; leave it out (a file of your own is source.path, without source.vintage)"
        )
        yield SpecError(message, ("source", "vintage_file"))
    if spec.source.lacking:
        message = "this is filled in by evenhand, of a year whose file lacks what the spec asks for; leave it out"
        yield SpecError(message, ("source", "lacking"))
    if spec.source.part is not None:
        message = (
            "this is filled in by evenhand; leave it out (--by-value VALUE audits one partition of a spec with `by`)"
        )
        yield SpecError(message, ("source", "part"))


def checked(values: Any, name: str, known: Known, also: Sequence[Check] = ()) -> AuditSpec:
    """Check a spec that is no text any more, such as a deployment's parameters.

    Raises:
        SpecError: as ``read_spec``, without lines.
    """
    spec, faults = check(values, known, also)
    raise_together([SpecError(_described(name, {}, fault), fault.location) for fault in faults])
    if spec is None:
        raise SpecError(f"{name}: no mapping of keys, as an audit spec is")
    return spec


def _override(raw: dict[str, Any], key: str, value: str) -> list[Location]:
    """Set a dotted key, making the mappings on the way; returns the locations it stands for."""
    *parents, last = key.split(".")
    here: Any = raw
    made: list[Location] = []
    for depth, part in enumerate(parents, 1):
        if isinstance(here, dict) and here.get(part) is None:
            here[part] = {}
            made.append(tuple(parents[:depth]))
        here = _step(here, part, key)
    try:
        parsed = parse(value).value
    except SpecError as error:
        raise SpecError(f"--set {key}: not a YAML value: {value[:80]!r} ({str(error).splitlines()[0]})") from error
    if isinstance(here, list):
        _step(here, last, key)
        here[int(last)] = parsed
    elif isinstance(here, dict):
        here[last] = parsed
    else:
        raise SpecError(f"--set {key}: {'.'.join(parents)} holds a value, not keys")
    return [*made, _location(key)]


def _location(key: str) -> Location:
    return tuple(int(part) if part.isdecimal() else part for part in key.split("."))


def _step(here: Any, part: str, key: str) -> Any:
    if isinstance(here, dict) and part in here:
        return here[part]
    if isinstance(here, list) and part.isdecimal() and len(part) < 10 and int(part) < len(here):
        return here[int(part)]
    raise SpecError(f"--set {key}: no {part!r} there; lists take a position from 0, mappings a key")


def _misspelt(lines: Mapping[Location, int], location: Location) -> str:
    """A hint where ``--set`` made the mapping that lacks a key: one of those in the file may be meant."""
    if lines.get(location) != 0:
        return ""
    beside = [str(at[-1]) for at, line in lines.items() if line and at and at[:-1] == location[:-1]]
    return f"; {location[-1]!r} is new, made by --set: {nearest(str(location[-1]), beside)}" if beside else ""


def _described(name: str, lines: Mapping[Location, int], error: SpecError) -> str:
    if isinstance(error, SpecFaultsError):
        return "\n".join(_described(name, lines, fault) for fault in error.faults)
    location, message = error.location, str(error)
    if message == "this key is required":
        message += _misspelt(lines, location[:-1])
    at = _line(lines, location)
    key = ".".join(str(part) for part in location)
    was_set = any(lines.get(location[:i]) == 0 for i in range(len(location), 0, -1))
    place = f"{name}, line {at}" if at else f"{name} (--set)" if was_set else name
    return f"{place}: {key}: {message}" if key else f"{place}: {message}"


def _line(lines: Mapping[Location, int], location: Location) -> int:
    """Of the key, or of the nearest part around it that has one; 0 where ``--set`` made it."""
    return next((lines[location[:i]] for i in range(len(location), -1, -1) if location[:i] in lines), 0)
