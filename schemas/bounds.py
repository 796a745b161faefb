"""Base class and validators of the audit spec: strict models, seeds, ascending pairs."""

from collections import Counter
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator

LARGEST_SEED: Final = 2**32 - 1
"""NumPy, scikit-learn and PyTorch together take no larger seed."""

Pair = tuple[float | None, float | None]


def _seed(value: int) -> int:
    if value < 0:
        raise ValueError("0 at least, as the generators take no negative seed")
    if value > LARGEST_SEED:
        raise ValueError(f"at most {LARGEST_SEED}, which is what the generators take")
    return value


def _ascending(value: Pair) -> Pair:
    low, high = value
    if low is not None and high is not None and low >= high:
        raise ValueError(f"expected the lower number first, then a higher one; got [{low:g}, {high:g}]")
    return value


def canonical(value: Any) -> str:
    """A cell as text to be compared with codes: trimmed, and 5.0 as 5. A whole table is read by SQL of this meaning."""
    text = "" if value is None else str(value).strip()
    head, dot, tail = text.partition(".")
    return head if dot and tail and not tail.strip("0") and head.lstrip("-").isdigit() else text


def _text(value: object) -> object:
    """A code as the cells that it is compared with: YAML reads 5 and 5.0 and true as other things than their text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return canonical(value) if isinstance(value, str | int | float) else value


Seed = Annotated[int, AfterValidator(_seed), f"0 to {LARGEST_SEED}"]
"""A seed; the text is its range in words, for the reference of keys."""
Code = Annotated[str, BeforeValidator(_text)]
"""A value of a table as text, without blanks at its ends: 5 and 5.0 are `5`, true is `true`."""
Ascending = Annotated[Pair, AfterValidator(_ascending), "the lower one first"]
"""Two numbers, either of which may be null for no bound; the lower one first."""


class Strict(BaseModel):
    """Frozen; unknown keys are errors, and so are numbers that are not finite and booleans for numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_flag_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[info.field_name or ""].annotation
        if _flag_for_number(value, kind):
            raise ValueError("expected a number, and true and false are none")
        if isinstance(value, dict) and get_args(kind)[:1] == (Code,):  # of two such keys one would be lost
            counts = Counter(map(_text, value))
            if twice := [code for code, count in counts.items() if count > 1]:
                raise ValueError(f"{twice} are repeated: blanks at the ends of a value do not count")
        return value


def _flag_for_number(value: Any, kind: Any) -> bool:
    types = list(_options(kind))
    if isinstance(value, bool):
        return bool not in types and (int in types or float in types)
    if isinstance(value, dict | list | tuple):
        inside = [args[-2 if args[-1] is Ellipsis else -1] for inner in types if (args := get_args(inner))]
        elements = value.values() if isinstance(value, dict) else value
        return any(_flag_for_number(element, inner) for inner in inside for element in elements)
    return False


def _options(kind: Any) -> Iterator[Any]:
    """The types of a union, each without what is annotated to it."""
    if get_origin(kind) is Annotated:
        yield from _options(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            yield from _options(option)
    else:
        yield kind
