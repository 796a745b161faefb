"""The audit spec as YAML text: parsed within limits, overridden, each fault with its line."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

import yaml
from pydantic import BaseModel, ValidationError

from schemas.audit.causal import is_order
from schemas.audit.expectations import FORMS
from schemas.audit.methods import Known, Methods, context
from schemas.audit.spec import UNCONFIRMED, AuditSpec
from schemas.errors import Location, SpecError, SpecFaultsError, nearest, raise_together
from schemas.terms import Role

# --------------------------------------------------------------------------------------------------------------------
# Collects all faults of an audit spec: records what is wrong, substitutes a valid value, and validates again.
#
# A faulty value hides the checks that need it. So each faulty key falls back to its default, or its part is replaced by
# a valid one, until the spec validates. What a later pass finds was hidden before. A later fault in a replaced part is
# dropped, because the replacement may have caused it. A spec with substitutes is never audited.
#
# Scope: faults and their places. Their lines in the file: ``file``.


Check = Callable[[AuditSpec, Collection[Location]], Iterable[SpecError]]
"""A further check of the whole spec; its second argument are the places that hold a substitute."""

_ROUNDS: Final = 12

_EXPECTED: Final = "expected "
_PLAINLY: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping of keys",
    "model": "a mapping of keys",
}
"""What is expected, by the first word of pydantic's type of error."""

_SOUND: Mapping[str, Any] = {
    "name": "unnamed",
    "year": 2000,
    "source": {"kind": "boston1990"},
    "decision": {"column": "(decision)", "favourable": ["yes"], "unfavourable": ["no"]},
    "columns": {"(column)": {"type": "continuous"}},
    "protected": [{"name": "(protected)", "columns": ["(protected)"], "reference": "(reference)"}],
}
"""Substitutes for required keys."""

_SOUND_IN: Mapping[str, Any] = {
    "columns": {"type": "continuous"},
    "protected": {"name": "(protected {at})", "columns": ["(protected)"], "reference": "(reference)"},
    "thresholds": {"measure": "approval_rate", "maximum": 0.5},
}
"""Substitutes for one of several columns, attributes or limits."""


def check(raw: Any, known_methods: Known, also: Sequence[Check] = ()) -> tuple[AuditSpec | None, list[SpecError]]:
    """Validate values with the classes of the methods that there are: the spec, or None and all faults found."""
    mended = _Mended(deepcopy(raw))
    for _ in range(_ROUNDS):
        try:
            spec = AuditSpec.model_validate(mended.raw, context=context(known_methods))
        except (ValidationError, SpecError) as error:
            if not mended.take(_faults(mended.raw, error, known_methods)):
                return None, mended.faults
            continue
        mended.take([(fault, False) for extra_check in also for fault in extra_check(spec, mended.places)], last=True)
        return (None if mended.faults else spec), mended.faults
    return None, mended.faults


@dataclass
class _Mended:
    """Values under repair, and the faults found so far."""

    raw: Any
    faults: list[SpecError] = field(default_factory=list)
    places: list[Location] = field(default_factory=list)
    """Places that were replaced or dropped."""

    def take(self, faults: Sequence[tuple[SpecError, bool]], last: bool = False) -> bool:
        """Record new faults and repair their places; returns whether anything was repaired.

        Args:
            faults: each with whether its key is unknown; dropping such a key changes nothing else.
            last: whether this is the last pass, so that nothing needs repair.
        """
        before = tuple(self.places)
        new = [(fault, extra) for fault, extra in faults if not self._of_mending(fault.location, before)]
        self.faults += [fault for fault, _ in new]
        if last:
            return False
        mended = [self._mend(fault.location, extra) for fault, extra in (new or faults)]
        return any(mended)

    @staticmethod
    def _of_mending(at: Location, places: Sequence[Location]) -> bool:
        """Whether a substitute may have caused a fault at this place."""
        by_name = at[:1] == ("causal_graph",) or at[:2] == ("model", "rule")
        lost = [
            place
            for place in places
            if place[0] == "protected" or place in (("columns",), ("decision",)) or place[-1] == "causal_order"
        ]
        return bool(by_name and lost) or any(_related(at, place) for place in places)

    def _mend(self, at: Location, extra: bool) -> bool:
        """Replace the faulty key, or the part around it if the key was replaced before."""
        if extra:
            return _drop(self.raw, at)
        place = _place(at)
        while place in self.places or (place and not _put_right(self.raw, place)):
            place = place[:-1]
        if place:
            self.places.append(place)
        return bool(place)


def _related(first: Location, other: Location) -> bool:
    shared = min(len(first), len(other))
    return first[:shared] == other[:shared]


def _place(at: Location) -> Location:
    """The place to replace: a key, or a whole limit, attribute or graph; never an element of another list."""
    if at[:1] in (("thresholds",), ("protected",)):
        return at[:2]
    if at[:1] == ("causal_graph",):
        return at[:1]
    first = next((i for i, part in enumerate(at) if isinstance(part, int)), len(at))
    return at[:first]


def _put_right(raw: Any, place: Location) -> bool:
    """Replace a required part, drop any other; returns whether that was possible."""
    top = place[0]
    if len(place) == 1 and top in _SOUND:
        raw[top] = deepcopy(_SOUND[str(top)])
        return True
    parent = _at(raw, place[:-1])
    if len(place) == 2 and top in _SOUND_IN and isinstance(place[1], str if isinstance(parent, dict) else int):
        sound = {k: v.format(at=place[1]) if isinstance(v, str) else v for k, v in _SOUND_IN[str(top)].items()}
        parent[place[1]] = {**sound, **_kept(parent[place[1]], str(top))}
        return True
    if len(place) == 2 and top == "methods" and isinstance(parent, dict):
        parent[place[1]] = {}
        return True
    return _drop(raw, place)


def _kept(faulty: Any, top: str) -> dict[str, Any]:
    """The name and columns of a protected attribute, which other parts of the spec refer to."""
    if top != "protected" or not isinstance(faulty, dict):
        return {}
    columns = faulty.get("columns")
    entry = {"name": faulty.get("name"), "columns": columns}
    return {
        key: value
        for key, value in entry.items()
        if (isinstance(value, str) and value)
        or (
            key == "columns"
            and isinstance(value, list)
            and value
            and all(isinstance(column_name, str) for column_name in value)
        )
    }


def _drop(raw: Any, at: Location) -> bool:
    parent = _at(raw, at[:-1])
    if not at or not isinstance(parent, dict) or at[-1] not in parent:
        return False
    del parent[at[-1]]
    return True


def _at(raw: Any, at: Location) -> Any:
    for part in at:
        if not _is_in(part, raw):
            return None
        raw = raw[part]
    return raw


def _faults(raw: Any, error: ValidationError | SpecError, known_methods: Known) -> list[tuple[SpecError, bool]]:
    """The faults that one reading found."""
    if isinstance(error, SpecFaultsError):
        return [(fault, False) for fault in error.faults]
    if isinstance(error, SpecError):
        return [(error, False)]
    problems_by_location: dict[Location, list[Any]] = {}
    for problem in error.errors():
        problems_by_location.setdefault(_location(raw, problem), []).append(problem)
    return [
        (_spec_error(at, problems, known_methods), problems[0]["type"] == "extra_forbidden")
        for at, problems in _wrong(problems_by_location)
    ]


def _wrong(problems_by_location: Mapping[Location, list[Any]]) -> Iterator[tuple[Location, list[Any]]]:
    """Skips the fault of a list or mapping that is too short only because its items are wrong."""
    for at, problems in problems_by_location.items():
        inside = any(len(other) > len(at) and other[: len(at)] == at for other in problems_by_location)
        if not (inside and problems[0]["type"] == "too_short"):
            yield at, problems


def _location(raw: Any, problem: Any) -> Location:
    """Location of the value in the spec, without the name that pydantic adds for the type it tried."""
    loc = tuple(part for part in problem["loc"] if part not in FORMS)
    for depth in range(len(loc), 0, -1):
        if _is_in(loc[depth - 1], _at(raw, loc[: depth - 1])):
            return loc[:depth]
        if problem["type"] == "missing" and depth == len(loc) and isinstance(_at(raw, loc[:-1]), dict):
            return loc
    return ()


def _is_in(part: str | int, parent: Any) -> bool:
    if isinstance(parent, list):
        return isinstance(part, int) and part < len(parent)
    return isinstance(parent, dict) and part in parent


def _spec_error(at: Location, problems: Sequence[Any], known_methods: Known) -> SpecError:
    infinite = [problem for problem in problems if problem["type"] == "finite_number"]
    messages = list(dict.fromkeys(_message(at, problem, known_methods) for problem in infinite or problems))
    text = "; or ".join([messages[0], *(m.removeprefix(_EXPECTED) for m in messages[1:])])
    value = problems[0].get("input")
    plain = problems[0]["type"] not in ("extra_forbidden", "missing", "finite_number")
    if (
        plain
        and not isinstance(value, dict | list | tuple)
        and not re.search(rf"(?<!\w){re.escape(_short(value))}(?!\w)", text)
    ):
        text += f", got {_short(value)}"
    return SpecError(text + _meant(problems[0]), at)


def _meant(problem: Any) -> str:
    """A hint where one of a few words is misspelt."""
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    options = re.findall(r"'([^']+)'", problem["ctx"]["expected"])
    close = get_close_matches(problem["input"], options, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _message(at: Location, problem: Any, known_methods: Known) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {nearest(str(at[-1]), _keys(at[:-1], known_methods))}"
    if problem["type"] == "missing":
        return "this key is required"
    if problem["type"] == "finite_number":
        what = "that a measure can be held against" if at[:1] == ("thresholds",) else "to compute with"
        in_yaml = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
        value = problem["input"]
        return f"{in_yaml.get(str(value).lower(), _short(value))} is no number {what}"
    if problem["type"].startswith("int_") and at[-1:] == ("year",):
        return f"{_EXPECTED}a year such as 2022"
    if problem["type"].endswith("too_short") and at == ("expectations",):
        return "no expectation is in it; write one, or leave the key out"
    plain = _PLAINLY.get(problem["type"].partition("_")[0])
    if plain and problem["type"].endswith(("_parsing", "_type", "_from_float")):
        return f"{_EXPECTED}{plain}"
    return str(problem["msg"]).removeprefix("Value error, ").replace("Input should be ", _EXPECTED)


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _keys(at: Location, known_methods: Known) -> list[str]:
    """The keys that the spec knows at a location, for suggestions."""
    model: Any = AuditSpec
    for part in at:
        model = known_methods.get(str(part)) if model is Methods else _model(model, part)
    if model is Methods:
        return list(known_methods)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _model(annotation: Any, part: str | int) -> Any:
    """The type one step down: a field of a model, or the element of a list or mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        annotation = annotation.model_fields[str(part)].annotation if str(part) in annotation.model_fields else None
    else:
        annotation = next((a for a in reversed(get_args(annotation)) if a is not Ellipsis), None)
    options = [a for a in get_args(annotation) if isinstance(a, type) and issubclass(a, BaseModel)]
    is_union = type(None) in get_args(annotation)
    return options[0] if is_union and options else annotation


# --------------------------------------------------------------------------------------------------------------------
# Reads and parses the YAML of an audit spec within limits; records the line of every key, and which are marked CHECK.
#
# Bytes, levels and nodes (aliases expanded) are counted before any object is built. Scope: text. What the values mean:
# ``spec``.


MOST_BYTES: Final = 1_000_000
MOST_LEVELS: Final = 50
MOST_NODES: Final = 50_000
MOST_DIGITS: Final = 1_000
_LONG_NUMBER: Final = re.compile(rf"[-+]?\d[\w.:+-]{{{MOST_DIGITS},}}$")

_MARK: Final = re.compile(r"\s#\s*CHECK\b:?\s*(?P<why>.*)$")
"""A comment behind a key that says that somebody has still to confirm it."""


@dataclass(frozen=True)
class Mark:
    """A key that is not confirmed yet."""

    location: Location
    line: int
    why: str

    @property
    def key(self) -> str:
        """The key, dotted."""
        return ".".join(map(str, self.location))


@dataclass(frozen=True)
class Parsed:
    """A YAML document."""

    value: Any
    lines: Mapping[Location, int]
    """Path of keys -> line, from 1."""
    twice: tuple[tuple[str, int], ...] = ()
    """Duplicate keys with their lines. YAML itself silently takes the last one."""
    marks: tuple[Mark, ...] = ()
    """Keys with the word CHECK for their value, or in a comment behind them, from the first line to the last."""


def parse(text: str) -> Parsed:
    """Read a YAML document.

    Raises:
        SpecError: not YAML, or too large, too deep, with a tag, a number without end, or an alias that leads into
            itself.
    """
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        raise SpecError(f"longer than {MOST_BYTES // 1_000_000} MB; an audit spec is a page of keys")
    try:
        _Measured().measure(text)
        loader = yaml.SafeLoader(text)
        try:
            tree = loader.get_single_node()
            value = None if tree is None else loader.construct_document(tree)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"not YAML{_where(error)}") from error
    lines = dict(_lines(tree, ()))
    return Parsed(value, lines, tuple(_twice(tree)), tuple(_marks(text, lines, set(_said(tree)))))


def _where(error: Exception) -> str:
    """Place and kind of a fault, without the lines around it, because servers and alerts get it, too."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f": {error}"
    mark = error.problem_mark or error.context_mark
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {error.problem or error.context}"


def _marks(text: str, lines: Mapping[Location, int], marked_lines: Set[int]) -> Iterator[Mark]:
    """The outermost key of each marked line. A line without a key, such as one of comments alone, marks nothing.

    Args:
        text: the document.
        lines: of its keys.
        marked_lines: lines with a key whose value is the word.
    """
    outermost: dict[int, Location] = {}
    for location, line in lines.items():
        if location and (line not in outermost or len(location) < len(outermost[line])):
            outermost[line] = location
    for line, written in enumerate(text.splitlines(), 1):
        mark = _MARK.search(written)
        if line in outermost and (mark or line in marked_lines):
            yield Mark(outermost[line], line, mark["why"] if mark else written.partition(" #")[2].strip())


def _said(node: yaml.Node | None) -> Iterator[int]:
    """Lines with a key that has the word CHECK as its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and value.value == UNCONFIRMED:
                yield key.start_mark.line + 1
            yield from _said(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _said(value)


class _Measured:
    """Counts nodes and levels while the parser reads, so that reading stops at the first one too many."""

    def __init__(self) -> None:
        self.open: list[tuple[str | None, int, int]] = []
        """Of each collection that is not closed: its anchor, nodes before it, and the deepest level below it so far."""
        self.anchored: dict[str, tuple[int, int]] = {}
        """By anchor: nodes and levels of what it names."""
        self.nodes = 0

    def measure(self, text: str) -> None:
        """Go through all events.

        Raises:
            SpecError: a limit is passed.
        """
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 0
            if isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent) and event.tag is not None:
                raise SpecError(f"line {line}: tags such as {event.tag} are not read; write the plain value")
            if isinstance(event, yaml.CollectionStartEvent):
                self._add(1, 1, line)
                self.open.append((event.anchor, self.nodes - 1, 1))
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before, deepest = self.open.pop()
                if anchor is not None:
                    self.anchored[anchor] = (self.nodes - before, deepest)
                self._deepen(deepest)
            elif isinstance(event, yaml.AliasEvent):
                self._add(*self._named(event.anchor or "", line), line)
            elif isinstance(event, yaml.ScalarEvent):
                self._add(1, 0, line)
                if event.implicit[0] and _LONG_NUMBER.match(event.value):
                    raise SpecError(f"line {line}: a number of more than {MOST_DIGITS:,} digits; write a shorter one")
                if event.anchor is not None:
                    self.anchored[event.anchor] = (1, 0)

    def _named(self, anchor: str, line: int) -> tuple[int, int]:
        if any(anchor == name for name, _, _ in self.open):
            raise SpecError(f"line {line}: the alias *{anchor} is inside what it names, and so has no end")
        return self.anchored.get(anchor, (1, 0))

    def _add(self, nodes: int, levels: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise SpecError(f"line {line}: more than {MOST_NODES:,} values, those that aliases repeat included")
        if len(self.open) + levels > MOST_LEVELS:
            raise SpecError(f"line {line}: more than {MOST_LEVELS} levels deep")
        self._deepen(levels)

    def _deepen(self, levels: int) -> None:
        if self.open:
            anchor, before, deepest = self.open[-1]
            self.open[-1] = anchor, before, max(deepest, 1 + levels)


def _lines(node: yaml.Node | None, path: Location) -> Iterator[tuple[Location, int]]:
    if node is None:
        return
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                inner = (*path, key.value)
                yield from _lines(value, inner)
                yield inner, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _lines(value, (*path, i))


def _twice(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        visited: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in visited:
                    yield key.value, key.start_mark.line + 1
                visited.add(key.value)
            yield from _twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _twice(value)


def spec_text(file: Path) -> str:
    """The text of an audit spec: no more of it than a spec may have, so that a device or a data file is soon refused.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is no UTF-8 text.
    """
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1).decode("utf-8-sig", errors="strict")


# --------------------------------------------------------------------------------------------------------------------
# The audit spec as YAML text: parsed, overridden, checked, and every fault given its file and line.


@dataclass(frozen=True)
class SpecFile:
    """A spec with the lines of its keys, so that later errors can name them too."""

    spec: AuditSpec
    name: str
    lines: Mapping[Location, int] = field(default_factory=dict)
    suite: str = ""
    """The suite's file that its expectations were read from."""

    def describe(self, error: SpecError) -> str:
        """The error's message, led by file, line and dotted key; of several faults a line each."""
        if isinstance(error, SpecFaultsError):
            return "\n".join(self.describe(fault) for fault in error.faults)
        of, *place = error.location or ("",)
        if self.suite and of == "expectations" and place:
            return f"{self.suite}, expectation {place[0]}: {error}"
        return _described(self.name, self.lines, error)


def read_spec(
    text: str, name: str, known_methods: Known, overrides: Mapping[str, str] | None = None, also: Sequence[Check] = ()
) -> SpecFile:
    """Parse and check a spec.

    Args:
        text: the YAML.
        name: what to call the file in errors.
        known_methods: the methods that there are.
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
        table = name if name.endswith((".csv", ".tsv", ".txt", ".gz", ".parquet")) else "FILE.csv"
        drafting = f"`evenhand init {table}` drafts one from a table"
        raise SpecError(f"{name}: this is no audit spec, which is a YAML mapping of keys; {drafting}")
    messages = [f"{name}, line {line}: the key {key!r} stands there twice" for key, line in parsed.twice]
    for key, value in (overrides or {}).items():
        try:
            locations = _override(raw, key, value)
            remaining_lines = {at: line for at, line in lines.items() if at[: len(locations[-1])] != locations[-1]}
            lines = {**remaining_lines, **dict.fromkeys(locations, 0)}
        except SpecError as error:
            messages.append(f"{name}: {error}")
    set_locations = [_file_location(key) for key in overrides or {}]
    if "methods" in (overrides or {}) and isinstance(raw.get("methods"), dict):
        # the whole key was given: what it does not name does not run, be it run by default or not
        raw["methods"] = {**dict.fromkeys(known_methods), **raw["methods"]}
    _add_unconfirmed(raw, parsed.marks, set_locations)
    _add_to_orders(raw, set_locations)
    spec, faults = check(raw, known_methods, (_filled_in, *also))
    placed = sorted(faults, key=lambda fault: _line(lines, fault.location))
    messages += [_described(name, lines, fault) for fault in placed]
    raise_together([SpecError(message) for message in dict.fromkeys(messages)])
    if spec is None:
        raise SpecError(f"{name}: the spec cannot be read, for an unknown reason; please report it")
    return SpecFile(spec, name, lines)


def _add_unconfirmed(raw: dict[str, Any], marks: Sequence[Mark], locations: Collection[Location]) -> None:
    """Name the marked keys in the spec itself, without those that ``--set`` gives."""
    unconfirmed_keys = [mark.key for mark in marks if not any(mark.location[: len(at)] == at for at in locations)]
    declared_keys = raw.get("unconfirmed") or []
    if unconfirmed_keys and isinstance(declared_keys, list) and ("unconfirmed",) not in locations:
        raw["unconfirmed"] = list(dict.fromkeys([*declared_keys, *unconfirmed_keys]))


def _add_to_orders(raw: dict[str, Any], locations: Sequence[Location]) -> None:
    """Put features that ``--set`` adds in the last tier of a causal order, as a guess to be confirmed."""
    columns, methods = raw.get("columns"), raw.get("methods")
    if not isinstance(columns, dict) or not isinstance(methods, dict):
        return
    added = dict.fromkeys(at[1] for at in locations if at[:1] == ("columns",) and len(at) > 1 and at[1] in columns)
    roles = {name: column.get("role") or "" for name in added if isinstance(column := columns[name], dict)}
    for method, settings in methods.items():
        order = settings.get("causal_order") if isinstance(settings, dict) else None
        if not is_order(order) or not order or ("methods", method, "causal_order") in locations:
            continue
        listed = {column for tier in order for column in tier}
        new = [name for name, role in roles.items() if name not in listed and Role.EXCLUDED not in role]
        if new:
            settings["causal_order"] = [*order[:-1], [*order[-1], *new]]
            guesses = raw.get("unconfirmed") or []
            if isinstance(guesses, list):
                raw["unconfirmed"] = list(dict.fromkeys([*guesses, f"methods.{method}.causal_order"]))


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


def checked(values: Any, name: str, known_methods: Known, also: Sequence[Check] = ()) -> AuditSpec:
    """Check a spec that is no text any more, such as a deployment's parameters.

    Raises:
        SpecError: as ``read_spec``, without lines.
    """
    spec, faults = check(values, known_methods, also)
    raise_together([SpecError(_described(name, {}, fault), fault.location) for fault in faults])
    if spec is None:
        raise SpecError(f"{name}: no mapping of keys, as an audit spec is")
    return spec


def _override(raw: dict[str, Any], key: str, value: str) -> list[Location]:
    """Set a dotted key and create the mappings on the way; returns the locations that the key covers."""
    *parents, last = key.split(".")
    parent: Any = raw
    locations: list[Location] = []
    for depth, part in enumerate(parents, 1):
        if isinstance(parent, dict) and parent.get(part) is None:
            parent[part] = {}
            locations.append(tuple(parents[:depth]))
        parent = _step(parent, part, key)
    try:
        parsed = parse(value).value
    except SpecError as error:
        raise SpecError(f"--set {key}: not a YAML value: {value[:80]!r} ({str(error).splitlines()[0]})") from error
    if isinstance(parent, list):
        _step(parent, last, key)
        parent[int(last)] = parsed
    elif isinstance(parent, dict):
        parent[last] = parsed
    else:
        raise SpecError(f"--set {key}: {'.'.join(parents)} holds a value, not keys")
    return [*locations, _file_location(key)]


def _file_location(key: str) -> Location:
    return tuple(int(part) if part.isdecimal() else part for part in key.split("."))


def _step(parent: Any, part: str, key: str) -> Any:
    if isinstance(parent, dict) and part in parent:
        return parent[part]
    if isinstance(parent, list) and part.isdecimal() and len(part) < 10 and int(part) < len(parent):
        return parent[int(part)]
    raise SpecError(f"--set {key}: no {part!r} there; lists take a position from 0, mappings a key")


def _misspelt(lines: Mapping[Location, int], location: Location) -> str:
    """A hint where ``--set`` created the mapping with a missing key: one of the file's keys may be meant."""
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
