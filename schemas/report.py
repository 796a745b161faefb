"""Schema of report.json, the machine-readable result of a run. ``make docs`` writes ``report.schema.json`` from it.

Beside each number as published stands the same number as the pages print it. Null is withheld or not measured, and
``shown`` says which. What is added raises the minor version, any other change the major one.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.questions import row_now, state_now
from schemas.tables.verdicts import in_approval
from schemas.terms import State, Theory

SCHEMA_VERSION: Final = "2.0"
SCHEMA_ID = "https://evenhand.invalid/schemas/report.schema.json"
"""A name, and no address: nothing is fetched from it."""


class Part(BaseModel):
    """Base of all parts: no other keys, and no change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Number(Part):
    """A number as published, and as printed."""

    value: int | float | None = Field(description="null: withheld, or not measured")
    shown: str = Field(description="as the pages print it, with the reason where there is no value")


class Interval(Part):
    """Both ends of an interval, as published and as printed."""

    low: float | None
    high: float | None
    kind: Literal["verdict", "plain", ""] = Field(
        description="verdict: corrected for all groups judged; plain: two-sided 95 %; empty: there is none"
    )
    shown: str


class SourceRead(Part):
    """What was read."""

    name: str
    sha256: str = Field(description="first 12 digits")
    rows: Number
    year: int | None = Field(description="year by the rows; null where no column tells it")


class RowsOf(Part):
    """The rows that a run is about, where it is about one partition of many."""

    column: str
    value: str


class Digests(Part):
    """What identifies the run."""

    source_sha256: str
    code: str
    version: str


class Named(Part):
    """A group of a protected attribute."""

    attribute: str
    group: str


class HeadlineSaid(Part):
    """The first sentence, and the rule that made it."""

    rule: str
    words: str
    groups: tuple[Named, ...]


class EffectShown(Part):
    """An effect as a result prints it: points of approval, or percent of a cost, with its 95 % interval."""

    attribute: str
    group: str
    value: float
    low: float | None
    high: float | None
    none: float = Field(description="the value of no difference")


class QuestionAnswered(Part):
    """A row of "What was found"."""

    theory: Theory
    page: str = Field(description="name of the page that answers it at length; empty without one")
    question: str
    state: State
    state_words: str
    answer: Literal["differs", "same", "open", ""] = Field(
        description="what the printed 95 % intervals show; empty where none is printed"
    )
    sentence: str = Field(description="the result")
    against: str = Field(description="against the limit")
    reliable: str = Field(description="how reliable the result is")
    effects: tuple[EffectShown, ...] = Field(description="effects that the result prints")


class FigureShown(Part):
    """One of the three comparisons of Decide, in points of approval: negative is against the group."""

    name: Literal["all", "adjusted", "nearest"]
    label: str
    detail: str
    attribute: str
    group: str
    reference: str
    among: int = Field(description="groups that this one was chosen among")
    state: State
    state_words: str
    points: Number
    interval: Interval
    limit: Number
    n: Number


class Approval(Part):
    """Share approved by a decision maker."""

    decision_maker: str
    rate: Number
    low: float | None
    high: float | None


class Judged(Part):
    """The answer to a question for a group, with the row that decides it.

    A difference is group less reference group in approval: -0.126 is approved less often. Ratios, costs and scores are
    as measured. ``shown`` is what the page of the question prints.
    """

    theory: Theory
    decision_maker: str
    method: str
    measure: str
    state: str
    state_words: str
    effect: Number
    interval: Interval
    unit: str = Field(description="what the shown numbers count; empty: the unit of the measure, or no number")


class GroupShown(Part):
    """A group of people."""

    attribute: str
    group: str
    reference: bool
    n: Number
    approvals: tuple[Approval, ...]
    verdicts: tuple[Judged, ...]


class Broken(Part):
    """An expectation that did not hold."""

    expectation: str
    column: str | None
    expected: str
    elements: int | None
    unexpected: int | None
    set_aside: bool = Field(description="whether the rows that broke it were set aside and the rest kept")


class Checks(Part):
    """The expectations that a table of a stage was held against."""

    stage: str
    table: str
    expectations: int
    broken: tuple[Broken, ...]


class Line(Part):
    """A line of advice (what would change the result, what to do next, what the report cannot show), with its rule."""

    rule: str
    words: str
    command: str = Field(description="a command that does it; empty without one")


class Signature(Part):
    """Who signed a run, and what."""

    name: str
    role: Literal["prepared", "reviewed", "approved", "rejected", "withdrawn"]
    date: str
    sha256: str = Field(description="of the manifest that was signed")
    key: str = Field(description="fingerprint of the key; empty where the name is as given, and not verified")


class Rows(Part):
    """A table: the names of its columns, and its rows in that order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | bool | None, ...], ...]


class Report(Part):
    """The content of report.json for one run."""

    schema_version: Literal["2.0"] = SCHEMA_VERSION
    run: str
    audit: str
    title: str
    year: int
    partition: RowsOf | None = Field(description="the rows that it is about, of one lender say; null: every row")
    state: State = Field(description="the state that decides the exit code")
    source: SourceRead
    digests: Digests
    disclosure: str = Field(description="profile of disclosure control: public or strict")
    headline: HeadlineSaid
    questions: tuple[QuestionAnswered, ...]
    figures: tuple[FigureShown, ...]
    groups: tuple[GroupShown, ...]
    checks: tuple[Checks, ...]
    change: tuple[Line, ...]
    next: tuple[Line, ...]
    cannot: tuple[Line, ...]
    signatures: tuple[Signature, ...]
    pages: tuple[str, ...] = Field(description="paths of the other files, from the folder of this one")
    theories: Rows = Field(description="the table of verdicts")
    findings: Rows = Field(description="what a mean hides and what in the file misleads, with the next step of each")
    warnings: tuple[str, ...]


def report_now(document: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a report.json with the keys and the sign of this version; version 1 had effects on denial.

    Args:
        document: as it was read, of this version or an earlier one.
    """
    if not str(document.get("schema_version", "")).startswith("1."):
        return dict(document)
    renamed = {name: [row_now(row) for row in document.get(name, ())] for name in ("questions", "figures")}
    table = document["theories"]
    rows = [row_now(dict(zip(table["columns"], row, strict=True))) for row in table["rows"]]
    groups = []
    for group in document["groups"]:
        verdicts = []
        for verdict in map(row_now, group["verdicts"]):
            effect, interval = verdict["effect"], verdict["interval"]
            if verdict["theory"] in (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL):
                ends = effect["value"], interval["high"], interval["low"]
                value, low, high = (None if end is None else -end for end in ends)
                effect, interval = {**effect, "value": value}, {**interval, "low": low, "high": high}
            verdicts.append({**verdict, "effect": effect, "interval": interval})
        groups.append({**group, "verdicts": verdicts})
    turned = [list(in_approval(row).values()) for row in rows]
    theories = {"columns": table["columns"], "rows": turned}
    return {**document, **renamed, "groups": groups, "theories": theories, "state": state_now(document["state"])}


def schema() -> dict[str, Any]:
    """The JSON schema of report.json."""
    content = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **content}


def schema_text() -> str:
    """The content of ``report.schema.json``."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
