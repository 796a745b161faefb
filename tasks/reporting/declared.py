"""Report texts of a method, declared in its folder in ``report.yaml``: no method brings code for its pages.

The file holds the method's question, its measures in words, a glossary, what the method cannot tell, and the blocks of
its evidence page. ``evidence`` makes pages of blocks, ``chapters.method`` the page of definitions. Outcomes
(approval and denial rates, made without any method) has its file in ``tasks/reporting/outcomes``.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.pipeline.method import REPORT
from tasks.pipeline.registry import NAMES, OUTCOMES_METHOD

Unit = Literal["rate", "number", "count", "points", "p"]
Sentence = Annotated[str, Field(min_length=1, max_length=600)]
Form = Literal["", "difference", "ratio", "size_matched", "size_matched_difference", "null", "null_difference"]
"""A measure itself, or what compares it: the suffix of the name of the measure."""
Setting = float | str
"""Value of a parameter; ``min`` and ``max`` are the least and the largest that the run has."""


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Words(_Declared):
    """A measure in words."""

    words: str
    """The measure in headers and sentences: lower case, a noun phrase."""
    unit: Unit
    """How it is written. ``points``: a difference of shares, printed in percentage points."""
    meaning: Sentence
    """One sentence for the page of definitions: what it counts, and among which applicants."""


class Shown(_Declared):
    """A column of a block of groups: a measure at fixed parameters."""

    measure: str
    form: Form = ""
    at: dict[str, Setting] = {}
    """Parameters that distinguish this measure from others of its name; a row has no further ones."""
    words: str = ""
    """Header; empty: the words of the measure, and of its form."""
    p: bool = False
    """Whether p and q follow in columns of their own."""

    @property
    def name(self) -> str:
        """The measure as the table of measures has it."""
        return f"{self.measure}_{self.form}" if self.form else self.measure


class Entry(_Declared):
    """A column of a block that shows a table of the method."""

    words: str
    unit: Unit | Literal["text"] = "text"
    effect: bool = False
    """Whether it is an effect on denial, which is printed as a difference in approval."""
    note: bool = False
    """Whether it is a remark on a row, printed once under the table; its first number has the mark."""
    of: str = ""
    """Of a share of people: the column of the table with their number. Shares of few people are printed as counts."""


class Block(_Declared):
    """A table of the evidence page, for each decision maker and protected attribute that has any of it.

    It is one of three kinds. ``columns``: a row a group, a column a measure; with ``along``, a row for each setting of
    each group. ``along`` and a ``measure``: a row for each setting, a column a group. ``table``: rows of a side table.
    """

    title: str
    says: Sentence = Field(default="What it shows.", max_length=400)
    """One or two sentences above the table: what it is, how to read it."""
    columns: tuple[Shown, ...] = ()
    parts: bool = False
    """Of ``columns`` alone: whether the parts of a group have rows below it."""
    along: tuple[str, ...] = Field(default=(), max_length=4)
    """Parameters whose values are the settings. A measure without one of them has a setting without it."""
    measure: str = ""
    """Of a block ``along``, in place of ``columns``."""
    forms: tuple[Form, ...] = ("",)
    """Of a block ``along``: the measure and its comparisons, in columns for each group."""
    at: dict[str, Setting] = {}
    """Of a block ``along``: parameters that are fixed."""
    table: str = ""
    """Name of a side table."""
    fields: dict[str, Entry] = {}
    """Of a side table: column -> how it is shown, in this order."""
    where: dict[str, str | int | float | bool | None] = {}
    """Of a side table: rows with these values only; None is the empty field."""
    by: str = ""
    """Of a side table: the field by whose size the first rows are chosen; the first share or number if empty."""
    chart: Literal["none", "forest", "matrix"] = "none"
    """``forest``: the first measure of ``columns`` by group. ``matrix``: a block ``along``, groups by settings."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        kinds = [bool(self.columns), bool(self.measure), bool(self.table)]
        if sum(kinds) != 1:
            raise ValueError(f"{self.title}: one of columns, measure and table")
        if (self.measure and not self.along) or (self.table and self.along) or bool(self.table) != bool(self.fields):
            raise ValueError(f"{self.title}: measure goes with along, table with fields and without along")
        if any(entry.note for entry in self.fields.values()) and not self.numbers:
            raise ValueError(f"{self.title}: a note has its mark on a number, and it shows none")
        if self.by and self.by not in self.fields:
            raise ValueError(f"{self.title}: rows are chosen by a field that it does not show")
        return self

    @property
    def numbers(self) -> tuple[str, ...]:
        """Of a side table: the fields that are numbers."""
        return tuple(field for field, entry in self.fields.items() if entry.unit != "text")

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that it shows."""
        return frozenset(column.measure for column in self.columns) | ({self.measure} - {""})


class Declared(_Declared):
    """The report texts of a method."""

    title: str
    short: Annotated[str, Field(min_length=1, max_length=16)]
    """Its name in links and captions."""
    question: Sentence
    """The question of the method, in one sentence."""
    page: Literal["approval-rates", "similar-applicants", "causal-model", "path-to-approval", "model-reasons"]
    """Page of the question that it bears on."""
    method: tuple[Sentence, ...] = Field(min_length=1, max_length=4)
    """How it works: a few sentences for the page of definitions."""
    measures: dict[str, Words]
    parameters: dict[str, str] = {}
    """Parameter of a measure -> its header; others are printed by name."""
    values: dict[str, str] = {}
    """Value of a parameter, or text of a side table -> how it is printed; others are printed as they are. The name of a
    parameter: what is printed for a measure without it."""
    glossary: dict[str, Sentence] = {}
    cannot: tuple[Sentence, ...] = Field(min_length=1)
    """What the method cannot show, whatever the data."""
    evidence: tuple[Block, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _of_its_measures(self) -> Self:
        unknown = {measure for block in self.evidence for measure in block.measures} - set(self.measures)
        if unknown:
            raise ValueError(f"blocks show measures without words: {', '.join(sorted(unknown))}")
        return self


_TASKS = Path(__file__).parents[1]


@cache
def declared(name: str) -> Declared:
    """The report texts of a method, or of ``outcomes``.

    Raises:
        pydantic.ValidationError: the file is not of this form.
    """
    room = "reporting" if name == OUTCOMES_METHOD else "methods"
    content = yaml.safe_load((_TASKS / room / name / REPORT).read_text(encoding="utf-8"))
    return Declared.model_validate(content)


def all_declared(names: Iterable[str] = NAMES) -> dict[str, Declared]:
    """Those of outcomes and of the methods named, in the order of reports."""
    return {name: declared(name) for name in (OUTCOMES_METHOD, *names)}


def words() -> dict[str, Words]:
    """Every measure in words."""
    return {name: wording for declaration in all_declared().values() for name, wording in declaration.measures.items()}


FORMS: Mapping[Form, str] = {
    "size_matched_difference": "difference from the reference at its size",
    "size_matched": "reference at the group's size",
    "null_difference": "difference from permuted labels",
    "null": "labels permuted",
    "difference": "difference from the reference",
    "ratio": "ratio to the reference",
    "": "",
}
"""Comparisons of a measure in words; the longer suffix comes first."""


def form_of(measure: str) -> Form:
    """How a row of measures compares; empty for a measure itself, with any ending of its name."""
    forms = (form for form in FORMS if form and measure.endswith(f"_{form}"))
    return "" if measure in words() else next(forms, "")


@cache
def names(measure: str) -> tuple[str, Unit]:
    """A measure or a comparison of one in words, and the unit of what is compared; one without words by its name."""
    measure_words, form = words(), form_of(measure)
    if measure in measure_words:
        return measure_words[measure].words, measure_words[measure].unit
    if form:
        words_of, unit = names(measure.removesuffix(f"_{form}"))
        return f"{words_of}, {FORMS[form]}", unit
    return measure.replace("_", " "), "number"
