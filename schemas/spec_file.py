"""The audit spec as YAML text: parsed, overridden, checked, and every error given its file and line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from schemas.errors import Location, SpecError, nearest
from schemas.settings import AuditSpec


@dataclass(frozen=True)
class SpecFile:
    """A spec with the lines of its keys, so that later errors can name them too."""

    spec: AuditSpec
    name: str
    lines: Mapping[Location, int] = field(default_factory=dict)

    def describe(self, error: SpecError) -> str:
        """The error's message, led by file, line and dotted key."""
        return _describe(self.name, self.lines, error.location, str(error))


def read_spec(text: str, name: str, overrides: Mapping[str, str] | None = None) -> SpecFile:
    """Parse and check a spec.

    Args:
        text: the YAML.
        name: what to call the file in errors.
        overrides: dotted key -> YAML value, as given by ``--set``.

    Raises:
        SpecError: not YAML, an unknown key, a wrong type or value; the message names file, line and expectation.
    """
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"{name}: not YAML: {error}") from error
    if not isinstance(raw, dict):
        raise SpecError(f"{name}: an audit spec is a mapping of keys; `evenhand init FILE.csv` drafts one")
    _check_keys(tree, name)
    lines = dict(_lines(tree, ()))
    for key, value in (overrides or {}).items():
        lines = {**lines, **dict.fromkeys(_override(raw, key, value), 0)}
    try:
        spec = AuditSpec.model_validate(raw)
        _check_own(spec)
        return SpecFile(spec, name, lines)
    except ValidationError as error:
        problems = error.errors()
        inner = {tuple(p["loc"])[:1] for p in problems if p["type"] != "too_short"}
        # a list whose items are wrong is reported once more as too short: its items say it better
        told = [p for p in problems if p["type"] != "too_short" or tuple(p["loc"])[:1] not in inner]
        messages = [_explain(name, lines, problem) for problem in told]
        raise SpecError("\n".join(dict.fromkeys(messages))) from error
    except SpecError as error:
        raise SpecError(_describe(name, lines, error.location, str(error))) from error


def _check_own(spec: AuditSpec) -> None:
    if spec.source.vintage_file is not None:
        message = (
            "this is filled in by evenhand; leave it out (a file of your own is source.path, without source.vintage)"
        )
        raise SpecError(message, ("source", "vintage_file"))


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


def _check_keys(node: yaml.Node | None, name: str) -> None:
    """YAML takes the last of two equal keys in silence; a spec may not say a thing twice."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise SpecError(f"{name}, line {key.start_mark.line + 1}: the key {key.value!r} stands there twice")
            seen.add(key.value)
            _check_keys(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(value, name)


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
        parsed = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise SpecError(f"--set {key}: not a YAML value: {value!r}") from error
    if isinstance(here, list):
        _step(here, last, key)
        here[int(last)] = parsed
    elif isinstance(here, dict):
        here[last] = parsed
    else:
        raise SpecError(f"--set {key}: {'.'.join(parents)} holds a value, not keys")
    return [*made, tuple(int(p) if p.isdigit() else p for p in key.split("."))]


def _step(here: Any, part: str, key: str) -> Any:
    if isinstance(here, dict) and part in here:
        return here[part]
    if isinstance(here, list) and part.isdigit() and int(part) < len(here):
        return here[int(part)]
    raise SpecError(f"--set {key}: no {part!r} there; lists take a position from 0, mappings a key")


def _explain(name: str, lines: Mapping[Location, int], problem: Any) -> str:
    location = tuple(problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = f"unknown key; {nearest(str(location[-1]), _keys(location[:-1]))}"
    elif problem["type"] == "missing":
        message = "this key is required" + _misspelt(lines, location[:-1])
    elif "input" in problem and not isinstance(problem["input"], dict | list | tuple):
        message += f", got {problem['input']!r}"
    return _describe(name, lines, location, message)


def _misspelt(lines: Mapping[Location, int], location: Location) -> str:
    """A hint where ``--set`` made the mapping that lacks a key: one of those in the file may be meant."""
    if lines.get(location) != 0:
        return ""
    beside = [str(at[-1]) for at, line in lines.items() if line and at and at[:-1] == location[:-1]]
    return f"; {location[-1]!r} is new, made by --set: {nearest(str(location[-1]), beside)}" if beside else ""


def _describe(name: str, lines: Mapping[Location, int], location: Location, message: str) -> str:
    known = [location[:i] for i in range(len(location), -1, -1) if location[:i] in lines]
    at = lines[known[0]] if known else 0
    if not known and location:
        at = 0
    key = ".".join(str(part) for part in location)
    place = f"{name}, line {at}" if at else (f"{name} (--set)" if location in lines else name)
    return f"{place}: {key}: {message}" if key else f"{place}: {message}"


def _keys(location: Location) -> list[str]:
    """The keys that the spec knows at a location, for suggestions."""
    here: Any = AuditSpec
    for part in location:
        here = _model(here, part)
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _model(here: Any, part: str | int) -> Any:
    """The type one step down: a field of a model, or the element of a list or mapping."""
    if isinstance(here, type) and issubclass(here, BaseModel):
        here = here.model_fields[str(part)].annotation if str(part) in here.model_fields else None
    else:
        here = next((a for a in reversed(get_args(here)) if a is not Ellipsis), None)
    options = [a for a in get_args(here) if isinstance(a, type) and issubclass(a, BaseModel)]
    is_union = type(None) in get_args(here)
    return options[0] if is_union and options else here
