"""The rows of "What was found": one for each theory of harm, with its state and one sentence in whole numbers.

A sentence has several forms, and the page prints the longest that it has room for. Groups with too little to say are
in each form, if only by their number.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.chapters.decide.facts import Group, Row
from tasks.reporting.chapters.decide.groups import WORST, Groups, Standing
from tasks.reporting.chapters.decide.numbers import in_points, of_100, part, points
from tasks.reporting.chapters.decide.result import Question
from tasks.reporting.chapters.decide.sentences import fitting, forms, said, sentences, words
from tasks.reporting.charts.numbers import WITHHELD
from tasks.reporting.declared import PAGES
from tasks.reporting.material import capital, listed
from tasks.reporting.numbers import count

MOST_WORDS = 16


def questions(groups: Groups) -> tuple[tuple[Question, tuple[str, ...]], ...]:
    """Each row with the forms of its sentence, the longest first; the row has that one."""
    theories = [theory for theory in PAGES if theory is not Theory.OWN or groups.run.theory(theory)]
    return tuple(_question(theory, groups) for theory in theories)


def _question(theory: Theory, groups: Groups) -> tuple[Question, tuple[str, ...]]:
    whole = groups.run.theory(theory)
    state = State.NOT_RUN if whole is None else whole.state
    found = fitting([capital(form) for form in _forms(theory, state, groups)], MOST_WORDS)
    return Question(theory, PAGES[theory], QUESTIONS[theory], state, STATES[state], found[0]), found


def _forms(theory: Theory, state: State, groups: Groups) -> list[str]:
    if theory is Theory.OUTCOME and (rates := list(_rates(groups))):
        return rates
    if state is State.NOT_RUN:
        return [_why_not(groups.run.theory(theory))]
    if theory is Theory.OWN:
        return [*_of_limits(state, groups)]
    standings = groups.standings(theory)
    own: Mapping[Theory, Callable[[State, Sequence[Standing], Groups], Iterator[str]]] = {
        Theory.DIRECT: _effects,
        Theory.TOTAL: _effects,
        Theory.RECOURSE: _ways,
        Theory.REASONS: _reasons,
    }
    told = own[theory](state, standings, groups) if theory in own and standings else iter(())
    return [*told, *_counted(state, standings)]


def _rates(groups: Groups) -> Iterator[str]:
    """Approvals of 100 by group, the reference group among them; by range where there are many.

    The lender decided on every application, and the model on those that it scored.
    """
    makers = {group.decision_maker for group in groups.run.groups}
    name = "rates_of_model" if makers == {DecisionMaker.MODEL} else "rates"
    shown = [group for group in groups.run.groups if group.approval is not None or group.shown]
    hidden = len(groups.run.groups) - len(shown)
    if not shown:
        yield from forms("questions", "rates_withheld") if hidden else ()
        return
    attributes = sorted({group.attribute for group in groups.run.groups})
    of = [sorted((g for g in groups.run.groups if g.attribute == a), key=_by_rate) for a in attributes]
    every = "; ".join(", ".join(_rate(group, groups) for group in ordered) for ordered in of)
    yield said("questions", name, rates=every)[0]
    more = said("questions", "and_withheld", n=hidden)[0] if hidden else ""
    reference = next((group for group in shown if group.reference), None)
    others = [group for group in shown if group is not reference]
    if reference is not None and others and len(attributes) == 1:
        told = {"reference": groups.label(reference.key), "rate": _of_100(reference), "range": _range(others)}
        rates = said("questions", "rates_of_others", others=_number("others", len(others)), withheld=more, **told)[0]
        yield said("questions", name, rates=rates)[0]
    told = {"range": _range(shown), "groups": _number("groups", len(shown)), "withheld": more}
    yield said("questions", name, rates=said("questions", "rates_by_range", **told)[0])[0]


def _by_rate(group: Group) -> tuple[bool, float, str]:
    """The highest rate first, those withheld last; of a range its end as printed: ``more than 95``, ``less than 5``."""
    if group.approval is None and group.shown:
        return False, -float(group.shown.split()[-1]) / 100, group.name
    return group.approval is None, -(group.approval or 0.0), group.name


def _rate(group: Group, groups: Groups) -> str:
    return said("questions", "rate", group=groups.label(group.key), rate=_of_100(group))[0]


def _of_100(group: Group) -> str:
    if group.shown:
        return group.shown
    return WITHHELD if group.approval is None else of_100(group.approval)


def _range(shown: Sequence[Group]) -> str:
    ordered = [_of_100(group) for group in sorted(shown, key=_by_rate)]
    return ordered[0] if len(set(ordered)) == 1 else f"{ordered[-1]} to {ordered[0]}"


def _effects(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """Each group's points of approval, the worst state first, with its own state where it is not the theory's."""
    ordered = _ordered(standings)
    first = next((each for each in ordered if _value(each) is not None), None)

    def told(those: Sequence[Standing], parts: bool) -> str:
        return "; ".join(_effect(each, each is first, state, groups, parts) for each in those)

    shares = {_part(each, groups) if each.state is State.BREACH and not each.disagree else "" for each in ordered}
    if len(ordered) > 1 and len(shares) == 1 and "" not in shares and all(each.state is state for each in ordered):
        yield f"{told(ordered, False)}; {said('questions', 'gap_left_each', part=shares.pop())[0]}."
    for parts in (True, False):
        yield f"{told(ordered, parts)}."
    same = [each for each in ordered if each.state is state and not each.withheld]
    if same and len(same) < len(ordered):
        yield f"{told(same, False)}; {_counts([each for each in ordered if each not in same], 'groups')}."


def _ordered(standings: Sequence[Standing]) -> list[Standing]:
    """Those outside first, those withheld last; within a state in the order of groups."""
    return sorted(standings, key=lambda each: (each.withheld, WORST.index(each.state)))


def _value(each: Standing) -> float | None:
    return None if each.row is None else each.row.value


def _effect(each: Standing, first: bool, state: State, groups: Groups, parts: bool) -> str:
    name, value = groups.label(each.key), _value(each)
    if value is None:
        return f"{name} {WITHHELD if each.withheld else STATES[each.state]}"
    text = f"{name} {in_points(-100 * value) if first else points(-100 * value)}"
    if each.disagree:
        return f"{text}, {forms('questions', 'disagree')[0]}"
    if each.state is not state:
        return f"{text}, {STATES[each.state]}"
    left = _part(each, groups) if parts and each.state is State.BREACH else ""
    return f"{text}, {said('questions', 'gap_left', part=left)[0]}" if left else text


def _part(each: Standing, groups: Groups) -> str:
    """How much of the gap is left among similar records, in words; empty where it is no part of it.

    Both are those that the page prints: the plain gap in approvals, and the adjusted one of the same decision maker.
    """
    if each.row is None or each.row.theory is not Theory.DIRECT or each.row.value is None:
        return ""
    plain = groups.standing(Theory.OUTCOME, each.key).row
    gap = groups.gap_points(plain)
    if plain is None or gap is None or gap >= 0 or plain.decision_maker != each.row.decision_maker:
        return ""
    share = -100 * each.row.value / gap
    return part(share) if 0 < share <= 1 else ""


def _ways(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """The reference group's cost of the way beside the group's; the denials, where they say too little."""
    added = [each for each in standings if each.row is not None and each.row.role == "adds" and not each.disagree]
    if added:
        yield from _with_others("without_a_way", added, standings, groups)
    if state is State.INSUFFICIENT_EVIDENCE:
        known = [(each, each.row.events) for each in standings if each.row is not None and not each.withheld]
        denied = [f"{count(n)} {groups.label(each.key)}" for each, n in known if n is not None]
        makers = {each.row.decision_maker for each, _ in known if each.row is not None}
        if denied and len(denied) == len(standings) and len(makers) == 1:
            name = "denials_of_model" if makers == {DecisionMaker.MODEL} else "denials"
            yield said("questions", name, denials=listed(denied))[0]
        return
    yield said("questions", "costs", costs="; ".join(_cost(each, state, groups) for each in _ordered(standings)))[0]


def _cost(each: Standing, state: State, groups: Groups) -> str:
    name = groups.label(each.key)
    if each.withheld or each.row is None or each.row.value is None or each.row.role == "adds":
        return f"{name} {WITHHELD if each.withheld else STATES[each.state]}"
    own = "" if each.state is state else f", {STATES[each.state]}"
    return f"{name} {of_100(each.row.value)}{own}"


def _reasons(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """Whether reasons differ by more than within a group; a score has no unit that the page could print."""
    known = [(each, each.row.value) for each in standings if each.row is not None and not each.withheld]
    above = [groups.label(each.key) for each, value in known if value is not None and value > 0]
    if state is State.BREACH:
        yield from _with_others("own_reasons_outside", [e for e in standings if e.state is state], standings, groups)
    elif above:
        yield said("questions", "own_reasons_above", groups=listed(above))[0]
    elif known and len(known) == len(standings) and all(value is not None for _, value in known):
        yield forms("questions", "own_reasons_within")[0]


def _with_others(name: str, named: Sequence[Standing], standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """A sentence that names groups, and the number of the others by state."""
    others = [each for each in standings if each not in named]
    more = f"; {_counts(others, 'groups')}" if others else ""
    if named:
        yield said("questions", name, groups=listed([groups.label(each.key) for each in named]), others=more)[0]


def _of_limits(state: State, groups: Groups) -> Iterator[str]:
    """How many of the spec's own limits are in each state."""
    rows = [row for row in groups.run.rows if row.theory is Theory.OWN and row.role != "theory"]
    standings = [Standing(row.key, row.state, row) for row in rows]
    yield said("questions", "of_limits", limits=_number("limits", len(rows)), counts=_counts(standings))[0]
    yield _same(state, standings, "limits")


def _counted(state: State, standings: Sequence[Standing]) -> Iterator[str]:
    """How many groups are in each state; only where that is too long, how many in that of the theory."""
    told = said("questions", "counted", counts=_counts(standings, "groups"))[0]
    yield told if standings and words(told) <= MOST_WORDS else _same(state, standings, "groups")


def _same(state: State, standings: Sequence[Standing], noun: str) -> str:
    same = sum(each.state is state and not each.withheld for each in standings)
    withheld = sum(each.withheld for each in standings)
    if same:
        return said("questions", "most_of", n=same, groups=_number(noun, len(standings)), state=STATES[state])[0]
    return said("questions", "withheld", groups=_number(noun, withheld))[0] if withheld else _nothing()


def _nothing() -> str:
    return forms("questions", "nothing")[0]


def _counts(standings: Sequence[Standing], noun: str = "") -> str:
    """Numbers by state, the worst first, and of what: "2 groups outside limit, 3 too little to say"."""
    of = Counter(WITHHELD if each.withheld else STATES[each.state] for each in standings)
    ordered = [word for word in (*(STATES[state] for state in WORST), WITHHELD) if word in of]
    first = {word: _number(noun, of[word]) for word in ordered[:1] if noun}
    return ", ".join(f"{first.get(word, of[word])} {word}" for word in ordered)


def _why_not(whole: Row | None) -> str:
    """Why a theory did not run, without the name of a method."""
    known: Mapping[str, str] = sentences()["not_run"]
    reason = "" if whole is None else whole.reason
    return next((text for pattern, text in known.items() if fnmatchcase(reason, pattern)), _nothing())


def _number(name: str, n: int) -> str:
    """A number with its noun."""
    one, several = forms("questions", name)
    return (one if n == 1 else several).format(n=n)
