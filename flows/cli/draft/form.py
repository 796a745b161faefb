"""A draft as a form of plain values, and the answers of a form as a draft: intake's questions for a browser.

The form holds what a page shows: the questions, the first rows as they are read, and what was converted. Values of
protected columns are in it as counts alone. The form is a value, too: the same draft makes the same form.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from flows.cli.draft.drafting import Choices, Draft
from flows.cli.draft.questions import Question, answered, open_questions, questions
from flows.cli.draft.table import Column
from flows.cli.draft.vocabulary import protected_kind
from schemas.audit.intake import FOLDINGS, ColumnRecipe
from schemas.errors import SpecError
from tasks.ingest.intake.recipe import Cell, Reading, cells_of

MOST_ROWS: Final = 20
MOST_COLUMNS: Final = 40
MOST_LETTERS: Final = 60
"""Of a cell that is shown."""
MOST_VALUES: Final = 20
"""Of a protected column; of one with more their number alone."""
IN_WORDS: Final = {
    "join": "the name of the column, or THIS=OTHER where the second file calls it OTHER",
    "decision": "the name of another column",
    "sides": "one value that favours the applicant",
    "protected": "names of columns, with commas between",
    "reference": "the name of a group, or groups to join, such as Other = Asian, Samoan",
    "groups": "groups to join, such as Other = Asian, Samoan",
    "year": "a year such as 2024",
}
"""Questions that take an answer in words -> what is expected."""


def fingerprint(question: Question) -> str:
    """A digest of a question as a person reads it, with its default and its options, but without its answer."""
    words = {key: value for key, value in question.as_json().items() if key != "answered"}
    return hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# Answers of a form.


@dataclass(frozen=True)
class Outcome:
    """A draft after the answers of a form."""

    draft: Draft
    faults: Mapping[str, str] = field(default_factory=dict)
    """Key of a question -> why its answer was not taken."""


def answered_as_shown(draft: Draft, fingerprints: Mapping[str, str], answers: Mapping[str, str]) -> Outcome:
    """The draft with the answers of a form, the worst question first.

    An answer that changes the draft may change later questions. An answer is taken only for the question that a person
    read; a question that reads otherwise by then stays open.

    Args:
        draft: that the form was made of.
        fingerprints: key of each question of the form -> its ``fingerprint``, as a person read it.
        answers: key of a question -> a default, an option, or words.
    """
    faults: dict[str, str] = {}
    now = {question.key: question for question in questions(draft)}
    defaults: dict[str, str] = {}
    for question in list(now.values()):
        key = question.key
        if key not in answers or key not in now or fingerprint(now[key]) != fingerprints.get(key):
            continue
        option = next((option for option in now[key].options if option.answer == answers[key]), None)
        if answers[key] == now[key].default and not (option and option.set):
            defaults[key] = answers[key]
            continue
        try:
            draft = answered(answered(draft, defaults) if defaults else draft, {key: answers[key]})
        except SpecError as error:
            faults[key] = str(error)
        else:
            defaults = {}
            now = {question.key: question for question in questions(draft)}
    return Outcome(answered(draft, defaults) if defaults else draft, faults)


def choices_as_json(choices: Choices) -> dict[str, Any]:
    """Choices as JSON has them."""
    return {"settings": dict(choices.settings), "confirmed": sorted(choices.confirmed)}


def choices_of(document: Mapping[str, Any]) -> Choices:
    """The choices that ``choices_as_json`` wrote; a list is a tuple, as the keys of a spec have it."""
    return Choices(
        {key: _tuples(value) for key, value in document["settings"].items()}, frozenset(document["confirmed"])
    )


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tuples(of) for name, of in value.items()}
    return tuple(value) if isinstance(value, list) else value


# --------------------------------------------------------------------------------------------------------------------
# What a page shows of a draft.


def form_of(draft: Draft) -> dict[str, Any]:
    """The form of a draft, as JSON has it; at most 12 steps, each with the questions of one weight, the worst first."""
    table, steps = draft.table, dict[int, list[dict[str, Any]]]()
    for question in open_questions(draft):
        entry = {**question.as_json(), "shown": fingerprint(question), "in_words": IN_WORDS.get(question.key, "")}
        steps.setdefault(question.weight, []).append(entry)
    people = {*(a.column for a in draft.attributes), *draft.left_people, *filter(protected_kind, table.names)}
    people -= {draft.decision_column}
    recipes = draft.recipes()
    return {
        "title": draft.title,
        "rows": table.file_rows or table.rows + table.repeated,
        "sampled": table.rows if table.file_rows else 0,
        "columns": len(table.names),
        "notes": list(table.notes),
        "refused": dict(table.refused),
        "steps": list(steps.values()),
        "preview": _preview(draft, people, recipes),
        "people": [
            {
                "column": name,
                "values": [[value[:MOST_LETTERS], rows] for value, rows in column.values.items()]
                if column.form != "number" and len(column.values) <= MOST_VALUES
                else [],
                "distinct": column.distinct,
                "missing": column.absent_rows,
            }
            for name, column in table.columns.items()
            if name in people
        ],
        "converted": [row for name in table.names for row in _converted(table.columns[name], recipes.get(name))],
    }


def form_of_join(question: Question) -> dict[str, Any]:
    """The form with the question by which column a second file is joined; no draft is made before."""
    entry = {**question.as_json(), "shown": fingerprint(question), "in_words": IN_WORDS[question.key]}
    return {"steps": [[entry]], "columns": 0}


def _preview(draft: Draft, people: set[str], recipes: Mapping[str, ColumnRecipe]) -> dict[str, Any]:
    """The first rows as they are read, without columns that describe people."""
    table = draft.table
    names = [name for name in table.names if name not in people]
    names.sort(key=lambda name: name != draft.decision_column)  # the decision first: it is what is confirmed
    columns = []
    for name in names[:MOST_COLUMNS]:
        column = table.columns[name]
        texts = [column.texts[code] for code in column.codes[:MOST_ROWS]]
        cells = _cells(column, recipes.get(name), dict.fromkeys(texts, 1))
        values = ["" if cells[text].fate == "missing" else cells[text].text for text in texts]
        columns.append([v if len(v) <= MOST_LETTERS else f"{v[: MOST_LETTERS - 1]}…" for v in values])
    return {
        "header": [name[:MOST_LETTERS] for name in names[:MOST_COLUMNS]],
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "left_out": max(0, len(names) - MOST_COLUMNS),
    }


def _cells(column: Column, recipe: ColumnRecipe | None, counts: Mapping[str, int]) -> dict[str, Cell]:
    """What some texts of a column are read as: by its recipe, else as the spelling that is printed."""
    if recipe is not None and recipe.read in ("number", "date"):
        return cells_of(Reading(column.name, recipe, FOLDINGS), counts)
    printed = column.printed
    return {
        text: Cell("", "missing", ("missing_word",) if text else ())
        if text in column.absent_texts
        else Cell(printed.get(text, text), "value", ("fold",) if printed.get(text, text) != text else ())
        for text in counts
    }


def _converted(column: Column, recipe: ColumnRecipe | None) -> list[dict[str, Any]]:
    """Rule -> cells of a column that it changed, and cells that stay unread."""
    texts = column.counts
    if column.number is not None and column.is_number:  # cells that are written as they are read need no second look
        plain = column.number.values
        texts = {text: rows for text, rows in texts.items() if plain.get(text) != text}
    changed: dict[str, int] = {}
    for text, cell in _cells(column, recipe, texts).items():
        for rule in (*cell.rules, *(("unread",) if cell.fate == "unread" else ())):
            changed[rule] = changed.get(rule, 0) + texts[text]
    return [{"column": column.name, "rule": rule, "cells": cells} for rule, cells in sorted(changed.items())]
