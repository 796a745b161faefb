"""A page of a question: the five parts that all share, in their order."""

from collections.abc import Iterator, Sequence

from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import State, Theory
from tasks.reporting.chapters.agreement import Apart, apart
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import WORST
from tasks.reporting.chapters.questions.by_group import by_group
from tasks.reporting.chapters.questions.confidence import named_sizes, sentences
from tasks.reporting.chapters.questions.declaration import Lead, Question, declaration, in_words
from tasks.reporting.chapters.questions.marks import SCALES, judged_mark, limit_of, measure_mark
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.chapters.questions.pictures import figures
from tasks.reporting.chapters.questions.room import MOST_WORDS, ROOMS, Room, words
from tasks.reporting.charts.marks import shown, value_text
from tasks.reporting.charts.numbers import WITHHELD, exact
from tasks.reporting.declared import declared
from tasks.reporting.material import capital, listed
from tasks.reporting.section import Link, Notice, Section

MOST_NAMED = 6
"""Groups of one state that are named; more are counted."""


def page(matter: Matter, name: str, question: Question) -> Section:
    """A page within its words: of many groups it shows as many as there is room for."""
    for room in ROOMS[:-1]:
        made = _page(matter, name, question, room)
        if words(made) <= MOST_WORDS:
            return made
    return _page(matter, name, question, ROOMS[-1])


def _page(matter: Matter, name: str, question: Question, room: Room) -> Section:
    """All parts of a page."""
    titles = declaration().parts
    table = by_group(matter, question, room)
    parts = (
        _answer(matter, question),
        Section(titles["picture"], "picture", _nothing(matter, question), figures=figures(matter, question, room)),
        Section(titles["sure"], "sure", points=sentences(matter, question), links=(_quality(),)),
        Section(titles["groups"], "groups", tables=(table,) if table else (), words=_nothing(matter, question)),
        Section(titles["cannot"], "cannot", points=question.cannot, links=tuple(_links(matter, question))),
    )
    return Section(QUESTIONS[question.theory], name, parts=parts)


def _answer(matter: Matter, question: Question) -> Section:
    """What Decide says, the numbers in full, and the states; of an open answer the numbers come first."""
    said = tuple(each.sentence for each in matter.decision.questions if each.theory is question.theory)[:1]
    whole = matter.groups.run.theory(question.theory)
    leads = tuple(_leads(matter, question))
    is_open = whole is not None and whole.state is State.INSUFFICIENT_EVIDENCE
    return Section(
        declaration().parts["answer"],
        "answer",
        (*((*leads, *said) if is_open else (*said, *leads)), _whole(matter, question)),
        tuple(_states(matter, question)),
        tuple(_apart(matter, question)),
    )


def _leads(matter: Matter, question: Question) -> Iterator[str]:
    """The numbers of the groups that the run has, in sentences that the question declares."""
    keys = matter.shown(question)
    for lead in question.leads:
        scale, sizes, order = SCALES[lead.scale], {}, []
        for key in keys:
            mark = measure_mark(matter, lead.series, key, scale) if lead.series else judged_mark(matter, question, key)
            if isinstance(mark.value, int | float):
                sizes[key] = _beside(matter, lead, key, shown(mark, scale.unit))
                order.append(mark.value)
        if sizes:
            words = {"whose": _whose(matter, question, lead, keys), "reference": matter.references(keys)}
            yield lead.words.format(sizes=named_sizes(matter, sizes, order), **words)


def _beside(matter: Matter, lead: Lead, key: Key, size: str) -> str:
    """A number, and in brackets what it is held against."""
    other = measure_mark(matter, lead.beside, key, SCALES[lead.scale]) if lead.beside else None
    if other is None or not isinstance(other.value, int | float):
        return size
    beside = value_text(other, SCALES[lead.scale].unit)
    return declaration().answer["beside"].format(size=size, reference=matter.references([key]), beside=beside)


def _whose(matter: Matter, question: Question, lead: Lead, keys: Sequence[Key]) -> str:
    """By whose decisions: one decision maker, as the pictures say."""
    of = (matter.measure(lead.series, key) if lead.series else matter.primary(question.theory, key) for key in keys)
    return next(matter.material.whose(each.decision_maker) for each in of if each is not None)


def _whole(matter: Matter, question: Question) -> str:
    """The state of the question, and its limit."""
    words, whole = declaration().answer, matter.groups.run.theory(question.theory)
    state = STATES[State.NOT_RUN if whole is None else whole.state]
    rows = [row for key in matter.shown(question) if (row := matter.primary(question.theory, key))]
    limits = {limit for row in rows if (limit := _limit(matter, question, row))}
    if len(limits) > 1:
        return words["whole_limits"].format(state=state)
    return words["whole_limit" if limits else "whole"].format(state=state, limit=next(iter(limits), ""))


def _limit(matter: Matter, question: Question, row: Row) -> str:
    """The limit of a row in the unit of the page."""
    scale = SCALES[question.scale]
    limit = None if row.withheld else limit_of(matter.groups, row, scale)
    return "" if limit is None else declaration().limits[question.scale].format(n=exact(limit, scale.unit))


def _states(matter: Matter, question: Question) -> Iterator[str]:
    """A line a state, with its groups in their order."""
    words = declaration().answer
    of: dict[tuple[int, bool], list[Key]] = {}
    for each in matter.groups.standings(question.theory):
        of.setdefault((WORST.index(each.state), each.withheld), []).append(each.key)
    for (place, withheld), keys in sorted(of.items()):
        names = [matter.groups.label(key) for key in keys]
        more = {"names": ", ".join(names[:MOST_NAMED]), "n": len(names) - MOST_NAMED}
        told = listed(names) if len(names) <= MOST_NAMED else words["more"].format(**more)
        state = STATES[WORST[place]] + f" ({WITHHELD})" * withheld
        yield words["state"].format(state=capital(state), groups=told)


def _apart(matter: Matter, question: Question) -> Iterator[Notice]:
    """What contradicts: tests of the assumed graph; one method outside, another inside, for the same group."""
    words = declaration().answer
    tests = matter.groups.run.graph_tests if question.theory is Theory.TOTAL else None
    if tests is not None and tests.against:
        said = declaration().sure["checked"].format(n=tests.n, against=tests.against)
        yield Notice(words["doubted"], said)
    found = [each for each in apart(matter.material.named("agreement")) if each.theory == question.theory]
    if found:
        points = tuple(words["apart"].format(**_named(matter, each)) for each in found)
        yield Notice(words["apart_title"], words["quality"], points[:MOST_NAMED])


def _named(matter: Matter, each: Apart) -> dict[str, str]:
    outside, inside = (listed([in_words(name) for name in names]) for names in (each.outside, each.inside))
    return {"group": matter.groups.label(each.key), "outside": outside, "inside": inside}


def _nothing(matter: Matter, question: Question) -> tuple[str, ...]:
    """Why there is neither picture nor table."""
    if matter.shown(question):
        return ()
    whole = matter.groups.run.theory(question.theory)
    reason = whole.reason if whole is not None and whole.reason else STATES[State.NOT_RUN]
    return (declaration().pictures["nothing"].format(reason=reason.rstrip(".")),)


def _quality() -> Link:
    """Where the data of the run are described."""
    return Link(declaration().links["quality"], "pages/quality.html")


def _links(matter: Matter, question: Question) -> Iterator[Link]:
    """The definitions, then limits and evidence of each method that the run has."""
    words = declaration().links
    yield Link(words["method"], "method.html#questions")
    present = {m.method for m in matter.material.measures}
    for method in question.methods:
        if method in present:
            title = declared(method).short
            yield Link(words["cannot"].format(title=title), f"method.html#{method}-cannot")
            yield Link(words["evidence"].format(title=title), f"evidence/{method}.html")
