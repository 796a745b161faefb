"""Collects all faults of an audit spec: records what is wrong, substitutes a valid value, and validates again.

A faulty value hides the checks that need it. So each faulty key falls back to its default, or its part is replaced by a
valid one, until the spec validates. What a later pass finds was hidden before. A later fault in a replaced part is
dropped, because the replacement may have caused it. A spec with substitutes is never audited.

Scope: faults and their places. Their lines in the file: ``file``.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from schemas.audit.methods import Known, Methods, context
from schemas.audit.spec import AuditSpec
from schemas.errors import Location, SpecError, SpecFaultsError, nearest

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


def check(raw: Any, known: Known, also: Sequence[Check] = ()) -> tuple[AuditSpec | None, list[SpecError]]:
    """Validate values with the classes of the methods that there are: the spec, or None and all faults found."""
    mended = _Mended(deepcopy(raw))
    for _ in range(_ROUNDS):
        try:
            spec = AuditSpec.model_validate(mended.raw, context=context(known))
        except (ValidationError, SpecError) as error:
            if not mended.take(_faults(mended.raw, error, known)):
                return None, mended.faults
            continue
        mended.take([(fault, False) for each in also for fault in each(spec, mended.places)], last=True)
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
        lost = [place for place in places if place[0] == "protected" or place in (("columns",), ("decision",))]
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


def _related(one: Location, other: Location) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


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
    here = _at(raw, place[:-1])
    if len(place) == 2 and top in _SOUND_IN and isinstance(place[1], str if isinstance(here, dict) else int):
        sound = {k: v.format(at=place[1]) if isinstance(v, str) else v for k, v in _SOUND_IN[str(top)].items()}
        here[place[1]] = {**sound, **_kept(here[place[1]], str(top))}
        return True
    if len(place) == 2 and top == "methods" and isinstance(here, dict):
        here[place[1]] = {}
        return True
    return _drop(raw, place)


def _kept(faulty: Any, top: str) -> dict[str, Any]:
    """The name and columns of a protected attribute, which other parts of the spec refer to."""
    if top != "protected" or not isinstance(faulty, dict):
        return {}
    columns = faulty.get("columns")
    kept = {"name": faulty.get("name"), "columns": columns}
    return {
        key: value
        for key, value in kept.items()
        if (isinstance(value, str) and value)
        or (key == "columns" and isinstance(value, list) and value and all(isinstance(each, str) for each in value))
    }


def _drop(raw: Any, at: Location) -> bool:
    here = _at(raw, at[:-1])
    if not at or not isinstance(here, dict) or at[-1] not in here:
        return False
    del here[at[-1]]
    return True


def _at(raw: Any, at: Location) -> Any:
    for part in at:
        if not _is_in(part, raw):
            return None
        raw = raw[part]
    return raw


def _faults(raw: Any, error: ValidationError | SpecError, known: Known) -> list[tuple[SpecError, bool]]:
    """The faults that one reading found."""
    if isinstance(error, SpecFaultsError):
        return [(fault, False) for fault in error.faults]
    if isinstance(error, SpecError):
        return [(error, False)]
    found: dict[Location, list[Any]] = {}
    for problem in error.errors():
        found.setdefault(_location(raw, problem), []).append(problem)
    return [
        (_spec_error(at, problems, known), problems[0]["type"] == "extra_forbidden") for at, problems in _wrong(found)
    ]


def _wrong(found: Mapping[Location, list[Any]]) -> Iterator[tuple[Location, list[Any]]]:
    """A list or mapping whose items are wrong is reported once more as too short: its items say it better."""
    for at, problems in found.items():
        inside = any(len(other) > len(at) and other[: len(at)] == at for other in found)
        if not (inside and problems[0]["type"] == "too_short"):
            yield at, problems


def _location(raw: Any, problem: Any) -> Location:
    """Where the value stands in the spec: pydantic names beside it which of several types was tried."""
    loc = tuple(problem["loc"])
    for depth in range(len(loc), 0, -1):
        if _is_in(loc[depth - 1], _at(raw, loc[: depth - 1])):
            return loc[:depth]
        if problem["type"] == "missing" and depth == len(loc) and isinstance(_at(raw, loc[:-1]), dict):
            return loc
    return ()


def _is_in(part: str | int, here: Any) -> bool:
    if isinstance(here, list):
        return isinstance(part, int) and part < len(here)
    return isinstance(here, dict) and part in here


def _spec_error(at: Location, problems: Sequence[Any], known: Known) -> SpecError:
    infinite = [problem for problem in problems if problem["type"] == "finite_number"]
    messages = list(dict.fromkeys(_message(at, problem, known) for problem in infinite or problems))
    said = "; or ".join([messages[0], *(m.removeprefix(_EXPECTED) for m in messages[1:])])
    value = problems[0].get("input")
    plain = problems[0]["type"] not in ("extra_forbidden", "missing", "finite_number")
    if (
        plain
        and not isinstance(value, dict | list | tuple)
        and not re.search(rf"(?<!\w){re.escape(_short(value))}(?!\w)", said)
    ):
        said += f", got {_short(value)}"
    return SpecError(said + _meant(problems[0]), at)


def _meant(problem: Any) -> str:
    """A hint where one of a few words is misspelt."""
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    known = re.findall(r"'([^']+)'", problem["ctx"]["expected"])
    close = get_close_matches(problem["input"], known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _message(at: Location, problem: Any, known: Known) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {nearest(str(at[-1]), _keys(at[:-1], known))}"
    if problem["type"] == "missing":
        return "this key is required"
    if problem["type"] == "finite_number":
        what = "that a measure can be held against" if at[:1] == ("thresholds",) else "to compute with"
        return f"{_yaml(problem['input'])} is no number {what}"
    if problem["type"].startswith("int_") and at[-1:] == ("year",):
        return f"{_EXPECTED}a year such as 2022"
    plain = _PLAINLY.get(problem["type"].partition("_")[0])
    if plain and problem["type"].endswith(("_parsing", "_type", "_from_float")):
        return f"{_EXPECTED}{plain}"
    return str(problem["msg"]).removeprefix("Value error, ").replace("Input should be ", _EXPECTED)


def _short(value: Any) -> str:
    try:
        shown = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _yaml(value: Any) -> str:
    """A number that is not finite, as YAML has it."""
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(str(value).lower(), _short(value))


def _keys(at: Location, known: Known) -> list[str]:
    """The keys that the spec knows at a location, for suggestions."""
    here: Any = AuditSpec
    for part in at:
        here = known.get(str(part)) if here is Methods else _model(here, part)
    if here is Methods:
        return list(known)
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
