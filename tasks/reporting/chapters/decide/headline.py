"""The first sentence, by the table of report.md 4: the first row that any group meets makes it.

A group without enough people is never named; it counts where a sentence is about all groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from schemas.terms import State, Theory
from tasks.reporting.chapters.decide.facts import Key
from tasks.reporting.chapters.decide.groups import Groups, short
from tasks.reporting.chapters.decide.numbers import some_points
from tasks.reporting.chapters.decide.result import Headline
from tasks.reporting.chapters.decide.sentences import fitting, forms, said, sentences
from tasks.reporting.material import capital, listed

MOST_WORDS = 25
MOST_WORDS_OF_WARNING = 12
"""Of a warning that sentences.yaml does not know."""
OWN_THEORIES = (Theory.OUTCOME, Theory.DIRECT)
"""The two that the sentence is about."""


@dataclass(frozen=True)
class Case:
    """A group by its two states."""

    key: Key
    gap: State
    adjusted: State
    but_for_missing: bool = False
    """Whether the adjusted interval would lie outside, were it not widened for columns that the table lacks."""


Meets = Callable[[Case], bool]
NAMING: tuple[tuple[str, Meets], ...] = (
    ("both_outside", lambda case: case.gap is State.BREACH and case.adjusted is State.BREACH),
    ("adjusted_outside", lambda case: case.adjusted is State.BREACH),
    ("outside_but_for_missing", lambda case: case.but_for_missing),
    ("gap_outside_adjusted_inside", lambda case: case.gap is State.BREACH and case.adjusted is State.WITHIN),
    ("gap_outside_no_limit", lambda case: case.gap is State.BREACH and case.adjusted is State.NO_LIMIT),
    ("gap_outside", lambda case: case.gap is State.BREACH),
)
"""Rows of the table that name groups, in its order."""
OF_ALL: tuple[tuple[str, State], ...] = (("inside", State.WITHIN), ("no_limit", State.NO_LIMIT))
"""Rows that hold where both states of every group are this one."""


def headline(groups: Groups) -> Headline:
    """The sentence of a run, of at most 25 words."""
    if groups.run.warnings:
        found = said("headline", "check_data", what=_what(groups.run.warnings))
        return Headline("check_data", fitting(found, MOST_WORDS)[0])
    known = cases(groups)
    for rule, meets in NAMING:
        meeting = [case.key for case in known if groups.enough(case.key) and meets(case)]
        if meeting:
            return Headline(rule, _naming(rule, meeting, groups), tuple(meeting))
    return _of_all(known, groups)


def cases(groups: Groups) -> tuple[Case, ...]:
    """Every judged group by its two states, in the order of groups."""
    return tuple(_case(key, groups) for key in groups.order)


def _case(key: Key, groups: Groups) -> Case:
    gap, adjusted = (groups.standing(theory, key) for theory in OWN_THEORIES)
    open_only = adjusted.row is not None and adjusted.row.outside_but_for_missing and not adjusted.disagree
    return Case(key, gap.state, adjusted.state, open_only)


def _naming(rule: str, keys: Sequence[Key], groups: Groups) -> str:
    """The longest form that fits; groups keep their names longer than the reference group keeps its own."""
    who, whom = groups.applicants(keys), groups.references(keys)
    filled = [
        capital(form.format(applicants=applicants, reference=reference))
        for applicants, reference, form in product(who, whom, forms("headline", rule))
    ]
    return fitting(filled, MOST_WORDS)[0]


def _of_all(known: Sequence[Case], groups: Groups) -> Headline:
    elsewhere = _elsewhere(groups)
    for name, state in OF_ALL:
        if known and all(case.gap is state and case.adjusted is state for case in known):
            rule = name
            break
    else:
        rule = "too_little"
    if elsewhere:
        rule = f"{rule}_elsewhere"
    sizes = _sizes(groups) if rule == "inside" else {}
    if rule == "inside" and not sizes:
        rule = "inside_no_size"
    return Headline(rule, fitting(said("headline", rule, elsewhere=elsewhere, **sizes), MOST_WORDS)[0])


def _elsewhere(groups: Groups) -> str:
    """Questions that are outside though the sentence names no group: it must not read as if there were none.

    Its own two are outside without a name only where the group has too few people to be named.
    """
    outside = [theory for theory in Theory if (row := groups.run.theory(theory)) and row.state is State.BREACH]
    if len(outside) > 2:
        return said("elsewhere", "several", n=len(outside))[0]
    return listed([forms("elsewhere", theory)[0] for theory in outside]) if outside else ""


def _sizes(groups: Groups) -> dict[str, str]:
    """The difference that each of both questions would have found in every group, in points; empty if one is unknown.

    Each question has limits and intervals of its own, and so a size of its own.
    """
    of: dict[str, str] = {}
    for name, theory in zip(("gap", "adjusted"), OWN_THEORIES, strict=True):
        rows = [groups.standing(theory, key).row for key in groups.order]
        sizes = [None if row is None else groups.detectable_points(row) for row in rows]
        known = [size for size in sizes if size is not None]
        if not known or len(known) < len(sizes):
            return {}
        of[name] = some_points(max(known))
    return of


def _what(warnings: Sequence[str]) -> str:
    """The first warning in words, and how many more there are; known ones first, in the order of the file."""
    words = sentences()["what"]
    known = [name for name in words if name != "more" and any(each.startswith(name) for each in warnings)]
    others = sorted({each for each in warnings if not each.startswith(tuple(known))} if known else set(warnings))
    first = words[known[0]] if known else short(others[0].rstrip("."), MOST_WORDS_OF_WARNING)
    more = len(known) + len(others) - 1
    return said("what", "more", first=first, others=more)[0] if more else str(first)
