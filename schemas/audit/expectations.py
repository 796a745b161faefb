"""Part ``expectations``: the user's own expectations about the table that ingest writes.

Scope: their shape. What Great Expectations knows of them is checked when stages are planned.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from schemas.bounds import Strict
from schemas.errors import SpecError


class OwnExpectation(Strict):
    """One expectation, as Great Expectations writes it in a suite."""

    type: str = Field(min_length=1, description="name of the expectation in Great Expectations")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="its arguments")
    severity: Literal["critical", "warning", "info"] = Field(
        "critical",
        description="`critical` refuses the run (exit code 4); the others are reported and the run continues",
    )
    meta: dict[str, Any] | None = Field(None, description="kept, and read by nothing")

    @property
    def words(self) -> str:
        """Its name and column."""
        of = self.kwargs.get("column") or self.kwargs.get("column_list") or self.kwargs.get("column_A")
        return f"{self.type} of {of}" if of else self.type

    def named(self, columns: Collection[str]) -> list[str]:
        """Which of the columns it is about: as an argument, or as a word of its SQL."""
        arguments = [self.kwargs.get(key) for key in COLUMN_KEYS]
        names = {name for value in arguments for name in (value if isinstance(value, list) else [value])}
        sql = " ".join(str(self.kwargs.get(key, "")) for key in _SQL_KEYS)
        return [name for name in sorted(columns) if name in names or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql)]


COLUMN_KEYS = ("column", "column_A", "column_B", "column_list")
"""Arguments that are columns."""
_SQL_KEYS = ("unexpected_rows_query", "row_condition")

FORMS = ("(file)", "(list)")
"""What pydantic calls the two forms in the location of a fault."""
SuiteFile = Annotated[str, Field(min_length=1)]
"""Path of a suite's file; ``flows.runs.given`` reads it, and no stage runs on a path."""
Expectations = Annotated[tuple[OwnExpectation, ...], Field(min_length=1)]


def form_of(value: object) -> str:
    """The form of a value, by which pydantic reports the faults of that form alone."""
    return FORMS[0] if isinstance(value, str) else FORMS[1]


FileOrList = Annotated[
    Annotated[SuiteFile, Tag(FORMS[0])] | Annotated[Expectations, Tag(FORMS[1])], Discriminator(form_of)
]


def read_suite(file: Path) -> Expectations:
    """The expectations of a suite's file.

    Raises:
        SpecError: no such file, no JSON, no expectations in it, or one that is none.
    """
    at = ("expectations",)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(
            f"{file} cannot be read: {error.strerror}; name a suite in the folder of the spec", at
        ) from error
    except ValueError as error:
        raise SpecError(f"{file} is no JSON: {error}", at) from error
    listed = content.get("expectations") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise SpecError(f"{file} has no `expectations`; write a suite as Great Expectations does", at)
    if not listed:
        raise SpecError(f"{file} has an empty list of expectations; leave the key out of the spec", at)
    suite = []
    for place, entry in enumerate(listed):
        fields = {k: v for k, v in entry.items() if k not in _UNREAD} if isinstance(entry, dict) else entry
        try:
            suite.append(OwnExpectation.model_validate(fields))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"])
            raise SpecError(f"{file}, expectation {place}: {where}: {fault['msg']}", at) from error
    return tuple(suite)


_UNREAD = ("id", "notes", "rendered_content", "description")
