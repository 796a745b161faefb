"""Sentence patterns of the results, from sentences.yaml, and docs/glossary.md, which ``make docs`` writes.

Pages, terminal, ``report.json``, workbook, messages and alerts fill these patterns. Names: ``schemas.questions``.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import Any

import yaml

from schemas.questions import QUESTIONS, STATES


def sentences(part: str) -> Mapping[str, Any]:
    """The sentence patterns of one part; names in braces are filled in.

    Args:
        part: ``first_page``, ``question_pages``, ``findings`` or ``messages``.
    """
    patterns: Mapping[str, Any] = _content("sentences.yaml")[part]
    return patterns


@cache
def _content(name: str) -> Mapping[str, Any]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content: Mapping[str, Any] = yaml.load(text, safe)  # noqa: S506 - in C where there is one
    return content


def glossary() -> str:
    """docs/glossary.md: questions and states of this version, and every other term."""
    content = _content("glossary.yaml")
    questions = [
        (f"`{key}`", question.words, question.short, f"`{question.file}.html`", f"`{question.before}`")
        for key, question in QUESTIONS.items()
    ]
    states = [
        (f"`{key}`", state.words, state.meaning, f"`{state.before}`" if state.before else "")
        for key, state in STATES.items()
    ]
    lines = [
        *("# Glossary", "", "<!-- written by `make docs` from schemas/questions.py and schemas/glossary.yaml -->", ""),
        *(line for paragraph in content["introduction"] for line in (*wrap(paragraph, 120), "")),
        *_table("Questions", ("key", "question", "short name", "page", "before"), questions),
        *_table("States", ("key", "printed", "meaning", "before"), states),
        *_table("Terms", ("term", "meaning"), content["terms"].items()),
        *_table("Reasons of refusal", ("reason", "meaning"), content["reasons"].items()),
        *_table("Verdicts", ("verdict", "method", "meaning"), content["verdicts"]),
        *_table("Suffixes of measures", ("suffix", "meaning"), content["suffixes"].items()),
        *wrap(content["ends"], 120),
    ]
    return "\n".join(lines) + "\n"


def _table(title: str, header: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield from (f"## {title}", "", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}")
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


if __name__ == "__main__":
    sys.stdout.write(glossary())
