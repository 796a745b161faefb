"""The page of definitions: what words, states and measures mean. It is the same for every run of one version.

It is made of ``definitions.yaml`` and of what methods declare: ``report.yaml``, and by which measure each theory is
judged.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml

from schemas.audit.limits import Disclosure, Limits
from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import Theory
from tasks.pipeline.method import Judged
from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD
from tasks.reporting.declared import PAGES, Declared, all_declared, declared, words
from tasks.reporting.material import listed
from tasks.reporting.numbers import SPACE
from tasks.reporting.section import Cell, Section, TableView


def definitions() -> tuple[Section, ...]:
    """The sections of the page, in order; the anchor of a method's section is its name."""
    return (_states(), _questions(), _verdicts(), _methods(), _glossary(), _disclosure())


@cache
def _texts() -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("definitions.yaml").read_text(encoding="utf-8"))
    return said


def _states() -> Section:
    texts = _texts()["states"]
    rows = tuple((Cell(printed, "state", state), Cell(texts["means"][state])) for state, printed in STATES.items())
    table = TableView(texts["title"], ("Printed", "What it says"), rows)
    return Section(texts["title"], "states", tuple(texts["words"]), tables=(table,))


def _questions() -> Section:
    texts = _texts()["questions"]
    header = ("Question", "Measure", "Method", "It", "Limit by default")
    rows = tuple(_row(theory, method, each) for theory, method, each in judged())
    return Section(
        texts["title"], "questions", tuple(texts["words"]), tables=(TableView(texts["title"], header, rows),)
    )


def judged() -> Iterator[tuple[Theory, str, Judged]]:
    """Each measure by which a question is judged, with its method, by question: first what decides."""
    made = [(OUTCOMES_METHOD, Judged(Theory.OUTCOME, "approval_rate_ratio"))]
    made += [(name, each) for name, method in METHODS.items() for each in method.judged]
    for theory in PAGES:
        mine = [(theory, name, each) for name, each in made if each.theory is theory]
        yield from sorted(mine, key=lambda row: row[2].role != "primary")


def _row(theory: Theory, method: str, each: Judged) -> tuple[Cell, ...]:
    texts = _texts()["questions"]
    base = each.measure.removesuffix("_ratio")
    name = words()[each.measure].words if each.measure in words() else f"{words()[base].words}, ratio to the reference"
    return (
        Cell(QUESTIONS[theory]),
        Cell(name),
        Cell(declared(method).short),
        Cell(texts["roles"][each.role]),
        Cell("–" if each.role == "beside" else _limit(theory, each)),
    )


def _limit(theory: Theory, each: Judged) -> str:
    """The default limit of a measure in its unit, with the side that is allowed."""
    value = getattr(Limits(), str(theory))
    if hasattr(value, "ratio"):
        value = value.ratio if each.role == "primary" else value.difference
    if value is None:
        return str(_texts()["questions"]["none"])
    known = words().get(each.measure)
    if known is None or known.unit == "number":
        return f"at least {value:g}"
    return f"at most {100 * value:g}{SPACE}pp"


def _verdicts() -> Section:
    texts = _texts()["verdicts"]
    measures = listed(words()[name].words for method in METHODS.values() for name in sorted(method.covering))
    parts = tuple(
        Section(part["title"], f"verdicts-{i}", tuple(text.format(covering=measures) for text in part["words"]))
        for i, part in enumerate(texts["parts"], 1)
    )
    return Section(texts["title"], "verdicts", parts=parts)


def _methods() -> Section:
    texts = _texts()["methods"]
    parts = tuple(_method(name, said) for name, said in all_declared().items())
    return Section(texts["title"], "methods", parts=parts)


def _method(name: str, said: Declared) -> Section:
    """Question, how it works, measures with their meaning, and what it cannot tell."""
    texts = _texts()["methods"]
    rows = tuple((Cell(each.words), Cell(each.meaning)) for each in said.measures.values())
    table = TableView(f"{texts['measures']}: {said.short}", ("Measure", "Meaning"), rows)
    cannot = Section(texts["cannot"], f"{name}-cannot", points=said.cannot)
    return Section(said.title, name, (said.question, *said.method), tables=(table,), parts=(cannot,))


def _glossary() -> Section:
    texts = _texts()["glossary"]
    terms = {
        **texts["terms"],
        **{term: text for said in all_declared().values() for term, text in said.glossary.items()},
    }
    rows = tuple((Cell(term), Cell(terms[term])) for term in sorted(terms, key=lambda term: (term.casefold(), term)))
    return Section(texts["title"], "glossary", tables=(TableView(texts["title"], ("Term", "Meaning"), rows),))


def _disclosure() -> Section:
    texts = _texts()["disclosure"]
    known = get_args(Disclosure.model_fields["profile"].annotation)
    rows = tuple((Cell(name), *map(Cell, texts["profiles"][name])) for name in texts["profiles"] if name in known)
    table = TableView(texts["title"], ("Profile", "Withheld", "Rounded", "For"), rows)
    return Section(texts["title"], "disclosure", tuple(texts["words"]), tables=(table,))
