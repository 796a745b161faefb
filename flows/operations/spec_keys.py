"""Writes the reference of spec keys, docs/audit-spec.md, from the models of the audit spec (``make docs``)."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from schemas.audit.methods import Methods
from schemas.audit.spec import AuditSpec
from tasks.pipeline.registry import METHODS, known_settings, mitigations, validated

_HEAD: Final = """\
# Keys of the audit spec

Written by `make docs` from the models of the spec. Do not edit. [Write an audit spec](write-a-spec.md) explains the
choices with examples. A key that is not listed here is an error. `--set KEY=VALUE` sets any key by its dotted path.
"""
_TABLE: Final = "\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n"
_PLAIN: Final = {int: "integer", float: "number", str: "text", bool: "true, false", date: "day", Any: "value"}
_NO_KIND: Final = ("frame", "object")
"""Values that no file can hold: they stand for objects in Python."""
_FILLED_IN: Final = ("source.part", "disclosure.beside.tables")
"""Mappings that an audit fills in, and no spec holds."""

_SMALLEST: Final[Mapping[str, Any]] = {
    "name": "loans",
    "year": 2024,
    "source": {"kind": "boston1990"},
    "decision": {"column": "approved", "favourable": ["yes"], "unfavourable": ["no"]},
    "protected": [{"name": "race", "columns": ["race"], "reference": "white"}],
    "columns": {"income": {"type": "continuous"}},
}
"""A spec that leaves out every key with a default, to read the defaults of both profiles from."""


class Section(NamedTuple):
    """Keys of one model at one path of the spec."""

    path: str
    model: type[BaseModel]

    def heading(self) -> str:
        """Title of the section, one level deeper for each part of the path."""
        depth = min(2 + self.path.count("."), 4)
        return f"{'#' * depth} `{self.path}`" if self.path else "## Top level"


def page() -> str:
    """The reference as Markdown."""
    first = f"methods.{next(iter(known_settings()))}"
    parts = ((_methods() if section.path == first else "") + _section(section) for section in _sections())
    return f"{_HEAD}{''.join(parts)}{_compare()}{_paper_profile()}"


def keys() -> Iterator[tuple[str, FieldInfo]]:
    """Every key by its dotted path, with its declaration."""
    for section in _sections():
        for name, declared in section.model.model_fields.items():
            yield f"{section.path}.{_key(name, declared)}".lstrip("."), declared


def meaning(declared: FieldInfo) -> str:
    """What a key means: its description, else the first sentence of its model; empty if it has neither."""
    if declared.description:
        return declared.description
    model = next(iter(_models(declared.annotation)), None)
    return "" if model is None else _summary(model)


def _sections() -> Iterator[Section]:
    """The spec, then the parts of its keys, depth first; a model that two keys share has one section."""
    yield from _below(Section("", AuditSpec), {AuditSpec})


def _below(section: Section, visited: set[type[BaseModel]]) -> Iterator[Section]:
    yield section
    for name, declared in section.model.model_fields.items():
        path = f"{section.path}.{_key(name, declared)}".lstrip(".")
        if declared.annotation is Methods:
            for method, settings in known_settings().items():
                yield from _below(Section(f"methods.{method}", settings), visited)
        for model in _models(declared.annotation):
            if model not in visited and path not in _FILLED_IN:
                visited.add(model)
                yield from _below(Section(path, model), visited)


def _section(section: Section) -> str:
    introduction = _summary(section.model) if section.path else "Required keys first."
    declared = section.model.model_fields.items()
    ordered = sorted(declared, key=lambda entry: not entry[1].is_required()) if not section.path else list(declared)
    rows = (_row(section, name, field) for name, field in ordered)
    return f"\n{section.heading()}\n\n{introduction}\n{_TABLE}{''.join(rows)}"


@cache
def _linked() -> frozenset[str]:
    """Paths that have a section of keys."""
    return frozenset(section.path for section in _sections())


def _row(section: Section, name: str, declared: FieldInfo) -> str:
    kind = _type(declared.annotation, declared.metadata)
    path = f"{section.path}.{_key(name, declared)}".lstrip(".")
    if path in _linked():
        kind = kind.replace("mapping", f"[mapping](#{path.replace('.', '')})", 1)
    cells = (f"`{_key(name, declared)}`", kind, _default(declared), _sentence(meaning(declared)))
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


def _key(name: str, declared: FieldInfo) -> str:
    """The name of a field in the file, which is an alias where Python reserves the word."""
    alias = declared.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else name


def _summary(model: type[BaseModel]) -> str:
    """The first paragraph of a model's docstring, in one line."""
    return " ".join((model.__doc__ or "").split("\n\n")[0].split()).replace("``", "`")


def _sentence(text: str) -> str:
    text = " ".join(text.split()).replace("``", "`")
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models within a type, such as the values of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif not isinstance(annotation, type) or get_args(annotation):
        for part in get_args(annotation):
            yield from _models(part)


def _type(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """A type in words, with its bounds."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(parts[0], [*metadata, *_flat(parts[1:])])
    if origin in (Union, UnionType):
        options = [_type(part, () if part is type(None) else metadata) for part in parts]
        return ", ".join(dict.fromkeys(options))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in map(_yaml, parts) if value not in _NO_KIND)
    if annotation is type(None):
        return "null"
    if annotation is Methods:
        return "[mapping](#methods)"
    if origin is tuple and parts[-1] is Ellipsis:
        return f"list of {_type(parts[0])}{_bounds(metadata)}"
    if origin is tuple:
        kinds = dict.fromkeys(_type(part) for part in parts)
        return f"pair of {' and '.join(kinds)}{_bounds(metadata)}"
    if origin is dict:
        return f"by name: {_type(parts[1])}{_bounds(metadata)}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    bounds = [entry for entry in metadata if not (annotation is str and isinstance(entry, MinLen))]
    return f"{_PLAIN.get(annotation, 'value')}{_bounds(bounds)}"


def _flat(metadata: Sequence[Any]) -> Iterator[Any]:
    """Bounds of an annotated type, those in a nested declaration among them."""
    for entry in metadata:
        yield from entry.metadata if isinstance(entry, FieldInfo) else (entry,)


def _bounds(metadata: Sequence[Any]) -> str:
    """Bounds in words, such as `, from 1 to 100`; a text in place of a type is such words itself."""
    words = [entry for entry in metadata if isinstance(entry, str)]
    if words:
        return f", {'; '.join(words)}"
    low, high = _end(metadata, "ge", "gt", "above"), _end(metadata, "le", "lt", "below")
    lengths = [f"{entry.min_length} or more" for entry in metadata if isinstance(entry, MinLen) and entry.min_length]
    lengths += [f"at most {entry.max_length} characters" for entry in metadata if isinstance(entry, MaxLen)]
    if low and high and not low.startswith("above") and not high.startswith("below"):
        return f", {low} to {high}"
    ends = [f"{low} or more" if low and not low.startswith("above") else low]
    ends += [f"at most {high}" if high and not high.startswith("below") else high]
    return "".join(f", {end}" for end in (*ends, *lengths) if end)


def _end(metadata: Sequence[Any], closed: str, open_end: str, word: str) -> str:
    """One end of a range; empty if there is none."""
    for entry in metadata:
        if isinstance(entry, Ge | Le) and hasattr(entry, closed):
            return _number(getattr(entry, closed))
        if isinstance(entry, Gt | Lt) and hasattr(entry, open_end):
            return f"{word} {_number(getattr(entry, open_end))}"
    return ""


def _default(declared: FieldInfo) -> str:
    if declared.annotation is Methods:
        by_default = (f"`{name}`" for name, kind in known_settings().items() if kind.by_default)
        return f"{' and '.join(by_default)} by their defaults"
    if declared.is_required():
        return "**required**"
    value = declared.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        return "its defaults"
    return f"`{_yaml(value)}`"


def _number(value: float) -> str:
    """A number with commas, and no exponent where it is a whole one."""
    return f"{int(value):,}" if abs(value) >= 1 and float(value).is_integer() else f"{value:.6g}"


def _yaml(value: Any) -> str:
    """A value as a spec writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case float():
            return f"{value:.6g}"
        case str():
            return value or "''"
        case BaseModel():
            return _yaml(value.model_dump(mode="json"))
        case tuple() | list():
            return f"[{', '.join(map(_yaml, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_yaml(entry)}' for key, entry in value.items())}}}"
    return str(value)


def _methods() -> str:
    """The methods that `methods` takes, each with a section of its settings."""
    rows = (
        f"| `{name}` | [mapping](#methods{name}), null | {'its defaults' if kind.by_default else '`null`'} | "
        f"{METHODS[name].title}. |\n"
        for name, kind in known_settings().items()
    )
    return f"\n## `methods`\n\nSettings of each method; null leaves it out.\n{_TABLE}{''.join(rows)}"


def _compare() -> str:
    """The names that `compare` takes."""
    by_method: dict[str, list[str]] = {}
    for name, method in mitigations().items():
        by_method.setdefault(method, []).append(f"`{name}`")
    rows = "".join(f"| {', '.join(names)} | {METHODS[method].title} |\n" for method, names in by_method.items())
    return (
        "\n## `compare`\n\nNames of mitigations, which are trained on the same five folds and compared. "
        "[What each one is](write-a-spec.md#compare-mitigations).\n"
        f"\n| names | offered by |\n| --- | --- |\n{rows}"
    )


def _paper_profile() -> str:
    """The keys with another default under `profile: paper`, read from two specs that leave them out."""
    ordinary, paper = (dict(_leaves(_defaults(profile))) for profile in ("default", "paper"))
    rows = (
        f"| `{path}` | `{ordinary.get(path, 'its defaults')}` | `{value}` |\n"
        for path, value in paper.items()
        if path != "profile" and ordinary.get(path) != value
    )
    return (
        "\n## What `profile: paper` changes\n\nIt changes defaults only: a key that the spec sets keeps its value.\n"
        f"\n| key | `default` | `paper` |\n| --- | --- | --- |\n{''.join(rows)}"
    )


def _defaults(profile: str) -> dict[str, Any]:
    """All values of a spec that sets nothing beyond the profile; every method and every training is on."""
    settings: dict[str, Any] = {name: {part: {} for part in kind.trained} for name, kind in known_settings().items()}
    causal = {"edges": [["race", "income"]]}
    columns = {"income": {"type": "continuous", "role": ["financial", "mediator"]}}
    raw = {**_SMALLEST, "columns": columns, "profile": profile, "methods": settings, "causal_graph": causal}
    return validated(AuditSpec, raw).model_dump(mode="json")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}".lstrip("."))
    else:
        yield path, _yaml(value)


if __name__ == "__main__":
    sys.stdout.write(page())
