"""The first page of a run: its parts together, and their texts within the number of words that it has room for."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from tasks.reporting.chapters.decide.advice.changes import View, changes
from tasks.reporting.chapters.decide.advice.steps import cannot_tell, files_of, next_steps
from tasks.reporting.chapters.decide.facts import Run
from tasks.reporting.chapters.decide.figures import figures
from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.chapters.decide.headline import headline
from tasks.reporting.chapters.decide.questions import questions
from tasks.reporting.chapters.decide.result import Decision, Line, Question
from tasks.reporting.chapters.decide.sentences import words

MOST_WORDS = 234
"""Of all texts below the headline; the page has 300 there, and headings, signatures and axes need the rest."""
R = TypeVar("R", Question, Line)
Ruled = tuple[tuple[str, tuple[str, ...]], ...]


def decide(run: Run) -> Decision:
    """The first page of a run. Equal runs give equal pages, in whatever order their rows and groups are."""
    groups = Groups(run)
    shown = figures(groups)
    view = View(groups, shown.key)
    asked, change, steps, cannot = questions(groups), changes(view), next_steps(view), cannot_tell(view)
    command = _command(view)
    page = Decision(
        headline(groups),
        tuple(row for row, _ in asked),
        shown,
        _lines(change),
        tuple(replace(line, command=command if line.rule == "read_files" else "") for line in _lines(steps)),
        _lines(cannot),
    )
    return _fitted(page, [forms for _, forms in asked], [forms for _, forms in change], [forms for _, forms in steps])


def _lines(ruled: Ruled) -> tuple[Line, ...]:
    return tuple(Line(rule, forms[0]) for rule, forms in ruled)


def _command(view: View) -> str:
    found = files_of(view)
    return "" if found is None else found[1].command


def _fitted(
    page: Decision,
    asked: Sequence[tuple[str, ...]],
    change: Sequence[tuple[str, ...]],
    steps: Sequence[tuple[str, ...]],
) -> Decision:
    """The page within its words: the sentence that gains most is shortened first, lines go last.

    The last step goes before the last line of what would change it; what the page cannot tell stays whole.
    """
    while below_headline(page) > MOST_WORDS:
        at, form = _shorter([row.sentence for row in page.questions], asked)
        if form:
            page = replace(page, questions=_exchanged(page.questions, at, sentence=form))
            continue
        at, form = _shorter([line.words for line in page.change], change)
        if form:
            page = replace(page, change=_exchanged(page.change, at, words=form))
            continue
        at, form = _shorter([line.words for line in page.next], steps)
        if form:
            page = replace(page, next=_exchanged(page.next, at, words=form))
        elif len(page.next) > 1:
            page = replace(page, next=page.next[:-1])
        elif len(page.change) > 1:
            page = replace(page, change=page.change[:-1])
        else:
            break
    return page


def below_headline(page: Decision) -> int:
    """Words of all texts but the first."""
    return words(*islice(page.texts(), 1, None))


def _shorter(now: Sequence[str], forms: Sequence[tuple[str, ...]]) -> tuple[int, str]:
    """Which text becomes shortest by its next form, and that form; empty where none has one."""
    saved: list[tuple[int, int, str]] = []
    for at, text in enumerate(now):
        rest = forms[at][forms[at].index(text) + 1 :]
        if rest and words(rest[0]) < words(text):
            saved.append((words(text) - words(rest[0]), -at, rest[0]))
    gain = max(saved, default=(0, 0, ""))
    return -gain[1], gain[2]


def _exchanged(rows: tuple[R, ...], at: int, **texts: Any) -> tuple[R, ...]:
    return tuple(replace(row, **texts) if number == at else row for number, row in enumerate(rows))
