"""Model of questions.yaml: what is a question's own, and the sentences that all pages share."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from schemas.terms import DecisionMaker, Theory

ScaleName = Literal["points", "of_100", "of_denied", "cost", "score"]
"""How numbers of a chart or column are printed (``marks.SCALES``)."""
Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Series(_Declared):
    """A measure by group."""

    method: str
    measure: str
    at: dict[str, float | str] = {}
    """Its parameters."""
    words: str = ""
    """What it is, under the name of the group."""
    compared: bool = False
    """Whether the others are held against it: it is drawn as references are."""
    maker: DecisionMaker | None = None
    """Whose decisions; None: the lender's where there are such, else the model's."""


class Picture(_Declared):
    """A chart, or one for each of the first groups.

    ``verdicts``: what is judged. ``beside``: a second method of the same question. ``series``: measures, one row each
    for every group. ``ladder`` and ``sensitivity``: of the adjusted comparison. ``undecided``: who was approved, denied
    or neither, where a run has such records.
    """

    kind: Literal["verdicts", "beside", "series", "ladder", "sensitivity", "undecided"]
    title: str
    """May name ``{reference}`` and, of a chart for one group, ``{group}``."""
    caption: str
    scale: ScaleName = "points"
    measure: str = ""
    """Of ``beside``; of ``ladder`` what stands beside its last step."""
    table: str = ""
    """Of ``ladder`` and ``sensitivity``: the table of columns on file as benchmarks."""
    series: tuple[Series, ...] = ()
    references: bool = False
    """Whether reference groups have rows, too."""


class Column(_Declared):
    """A column of the table by group beside those that all pages have."""

    words: str
    scale: ScaleName
    series: Series
    references: bool = False
    """Whether it makes rows of the reference groups."""


class Lead(_Declared):
    """A sentence of the answer with a number a group."""

    words: Sentence
    """May name ``{whose}`` decisions and the ``{reference}`` group; ``{sizes}`` are the numbers."""
    scale: ScaleName
    series: Series | None = None
    """None: what is judged."""
    beside: Series | None = None
    """What the number of the group is held against, in brackets."""


class Question(_Declared):
    """A page."""

    theory: Theory
    scale: ScaleName
    """Of what is judged."""
    value: str
    """Header of what is judged."""
    methods: tuple[str, ...]
    """Whose measures it shows."""
    pictures: tuple[Picture, ...]
    leads: tuple[Lead, ...] = ()
    """What the sentence of Decide has no room for."""
    columns: tuple[Column, ...] = ()
    sure: tuple[str, ...]
    """Rules of "how sure" in their order (``confidence.RULES``)."""
    hangs: Sentence
    """What the answer hangs on."""
    lifted: Series | None = None
    """A measure that is made again without each assumed effect in turn."""
    permuted: Series | None = None
    """p of what is shown, under permuted labels."""
    cannot: tuple[Sentence, Sentence, Sentence]


class Declaration(_Declared):
    """The whole file."""

    parts: dict[str, str]
    """Titles of the five parts."""
    answer: dict[str, str]
    sure: dict[str, str]
    table: dict[str, str]
    pictures: dict[str, str]
    missing: dict[str, str]
    links: dict[str, str]
    limits: dict[ScaleName, str]
    estimates: dict[str, str]
    """Measure -> what compares the groups, where several methods answer one question."""
    questions: dict[str, Question]


@cache
def declaration() -> Declaration:
    """What the file says.

    Raises:
        pydantic.ValidationError: the file is not of this form.
    """
    text = files(__package__).joinpath("questions.yaml").read_text(encoding="utf-8")
    return Declaration.model_validate(yaml.safe_load(text))


def in_words(measure: str) -> str:
    """What compares the groups, for a measure that is judged or stands beside one."""
    return declaration().estimates.get(measure, measure.replace("_", " "))
