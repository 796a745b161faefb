"""Rules of the first page: headline, answers, changes and next steps."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.charts.values import WITHHELD
from tasks.reporting.declared import PAGES
from tasks.reporting.first_page.facts import (
    WORST,
    Files,
    Group,
    Groups,
    Key,
    Row,
    Standing,
    fitting,
    forecast,
    forms,
    in_points,
    of_100,
    part,
    percent,
    points,
    points_below,
    said,
    sentences,
    short,
    some_points,
    whole_percent,
    words,
)
from tasks.reporting.first_page.result import Headline, Question
from tasks.reporting.material import capital, listed
from tasks.reporting.text import count

# --------------------------------------------------------------------------------------------------------------------
# The first sentence, by the table of report.md 4: the first row that any group meets makes it.
#
# A group without enough people is never named; it counts where a sentence is about all groups.


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
    """Whether the adjusted interval would lie outside, were it not widened for columns missing from the table."""


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
        candidates = said("headline", "check_data", what=_warning_words(groups.run.warnings))
        return Headline("check_data", fitting(candidates, MOST_WORDS)[0])
    judged_cases = cases(groups)
    for rule, meets in NAMING:
        meeting = [case.key for case in judged_cases if groups.enough(case.key) and meets(case)]
        if meeting:
            applicant_forms, reference_forms = groups.applicants(meeting), groups.references(meeting)
            filled = [
                capital(form.format(applicants=applicants, reference=reference))
                for applicants, reference, form in product(applicant_forms, reference_forms, forms("headline", rule))
            ]
            naming = fitting(filled, MOST_WORDS)[0]
            return Headline(rule, naming, tuple(meeting))
    return _unnamed_headline(judged_cases, groups)


def cases(groups: Groups) -> tuple[Case, ...]:
    """Every judged group by its two states, in the order of groups."""
    result = []
    for key in groups.order:
        gap, adjusted = (groups.standing(theory, key) for theory in OWN_THEORIES)
        open_only = adjusted.row is not None and adjusted.row.outside_but_for_missing and not adjusted.disagree
        result.append(Case(key, gap.state, adjusted.state, open_only))
    return tuple(result)


def _unnamed_headline(judged_cases: Sequence[Case], groups: Groups) -> Headline:
    """The sentence where it names no group.

    It must not read as if no question were outside: those that are get a word. Its own two are outside without a name
    only where the group has too few people to be named.
    """
    outside = [theory for theory in Theory if (row := groups.run.theory(theory)) and row.state is State.BREACH]
    if len(outside) > 2:
        elsewhere = said("elsewhere", "several", n=len(outside))[0]
    else:
        elsewhere = listed([forms("elsewhere", theory)[0] for theory in outside]) if outside else ""
    rule = "too_little"
    if judged_cases:
        shared = (
            name for name, state in OF_ALL if all(case.gap is state and case.adjusted is state for case in judged_cases)
        )
        rule = next(shared, rule)
    if elsewhere:
        rule = f"{rule}_elsewhere"
    sizes = _sizes(groups) if rule == "inside" else {}
    if rule == "inside" and not sizes:
        rule = "inside_no_size"
    return Headline(rule, fitting(said("headline", rule, elsewhere=elsewhere, **sizes), MOST_WORDS)[0])


def _sizes(groups: Groups) -> dict[str, str]:
    """The difference that each of both questions would have found in every group, in points; empty if one is unknown.

    Each question has limits and intervals of its own, and so a size of its own.
    """
    largest: dict[str, str] = {}
    for name, theory in zip(("gap", "adjusted"), OWN_THEORIES, strict=True):
        rows = [groups.standing(theory, key).row for key in groups.order]
        sizes = [size for row in rows if row is not None and (size := groups.detectable_points(row)) is not None]
        if not sizes or len(sizes) < len(rows):
            return {}
        largest[name] = some_points(max(sizes))
    return largest


def _warning_words(warnings: Sequence[str]) -> str:
    """The first warning in words, and the number of others; known ones first, in the order of the file."""
    words = sentences()["what"]
    names = [name for name in words if name != "more" and any(warning.startswith(name) for warning in warnings)]
    unknown = sorted({warning for warning in warnings if not warning.startswith(tuple(names))})
    first = words[names[0]] if names else short(unknown[0].rstrip("."), MOST_WORDS_OF_WARNING)
    others = len(names) + len(unknown) - 1
    return said("what", "more", first=first, others=others)[0] if others else str(first)


# --------------------------------------------------------------------------------------------------------------------
# The rows of "What was found": one for each theory of harm, with its state and one sentence in whole numbers.
#
# A sentence has several forms, and the page prints the longest that it has room for. Groups with too little to say are
# in each form, if only by their number.


QUESTIONS_MOST_WORDS = 16


def questions(groups: Groups) -> tuple[tuple[Question, tuple[str, ...]], ...]:
    """Each row with the forms of its sentence, the longest first; the row has that one."""
    rows = []
    for theory in PAGES:
        overall_row = groups.run.theory(theory)
        if overall_row is None and theory is Theory.OWN:
            continue
        state = State.NOT_RUN if overall_row is None else overall_row.state
        candidates = fitting([capital(form) for form in _sentence_forms(theory, state, groups)], QUESTIONS_MOST_WORDS)
        rows.append(
            (Question(theory, PAGES[theory], QUESTIONS[theory], state, STATES[state], candidates[0]), candidates)
        )
    return tuple(rows)


def _sentence_forms(theory: Theory, state: State, groups: Groups) -> list[str]:
    if theory is Theory.OUTCOME and (rates := list(_rates(groups))):
        return rates
    if state is State.NOT_RUN:
        # The reason in words of the reader, without the name of a method.
        reason = "" if (overall_row := groups.run.theory(theory)) is None else overall_row.reason
        reasons: Mapping[str, str] = sentences()["not_run"]
        return [next((text for pattern, text in reasons.items() if fnmatchcase(reason, pattern)), _nothing())]
    if theory is Theory.OWN:
        rows = [row for row in groups.run.rows if row.theory is Theory.OWN and row.role != "theory"]
        limits = [Standing(row.key, row.state, row) for row in rows]
        counted = said("questions", "of_limits", limits=_number("limits", len(rows)), counts=_counts(limits))[0]
        return [counted, _state_sentence(state, limits, "limits")]
    standings = groups.standings(theory)
    builders: Mapping[Theory, Callable[[State, Sequence[Standing], Groups], Iterator[str]]] = {
        Theory.DIRECT: _effect_forms,
        Theory.TOTAL: _effect_forms,
        Theory.RECOURSE: _route_forms,
        Theory.REASONS: _reason_forms,
    }
    own_forms = builders[theory](state, standings, groups) if theory in builders and standings else iter(())
    counted = said("questions", "counted", counts=_counts(standings, "groups"))[0]
    if not standings or words(counted) > QUESTIONS_MOST_WORDS:
        counted = _state_sentence(state, standings, "groups")
    return [*own_forms, counted]


def _rates(groups: Groups) -> Iterator[str]:
    """Approvals of 100 by group, with the reference group; by range if groups are many.

    The lender decided on every application, and the model on those that it scored.
    """
    makers = {group.decision_maker for group in groups.run.groups}
    name = "rates_of_model" if makers == {DecisionMaker.MODEL} else "rates"
    visible_groups = [group for group in groups.run.groups if group.approval is not None or group.approval_text]
    hidden = len(groups.run.groups) - len(visible_groups)
    if not visible_groups:
        yield from forms("questions", "rates_withheld") if hidden else ()
        return
    attributes = sorted({group.attribute for group in groups.run.groups})
    every = "; ".join(
        ", ".join(
            said("questions", "rate", group=groups.label(group.key), rate=_of_100(group))[0]
            for group in sorted((g for g in groups.run.groups if g.attribute == attribute), key=_by_rate)
        )
        for attribute in attributes
    )
    yield said("questions", name, rates=every)[0]
    withheld_words = said("questions", "and_withheld", n=hidden)[0] if hidden else ""
    reference = next((group for group in visible_groups if group.reference), None)
    other_groups = [group for group in visible_groups if group is not reference]
    if reference is not None and other_groups and len(attributes) == 1:
        rates = said(
            "questions",
            "rates_of_others",
            reference=groups.label(reference.key),
            rate=_of_100(reference),
            range=_range(other_groups),
            others=_number("others", len(other_groups)),
            withheld=withheld_words,
        )[0]
        yield said("questions", name, rates=rates)[0]
    rates = said(
        "questions",
        "rates_by_range",
        range=_range(visible_groups),
        groups=_number("groups", len(visible_groups)),
        withheld=withheld_words,
    )[0]
    yield said("questions", name, rates=rates)[0]


def _by_rate(group: Group) -> tuple[bool, float, str]:
    """The highest rate first, those withheld last; of a range its end as printed: ``more than 95``, ``less than 5``."""
    if group.approval is None and group.approval_text:
        return False, -float(group.approval_text.split()[-1]) / 100, group.name
    return group.approval is None, -(group.approval or 0.0), group.name


def _of_100(group: Group) -> str:
    if group.approval_text:
        return group.approval_text
    return WITHHELD if group.approval is None else of_100(group.approval)


def _range(visible_groups: Sequence[Group]) -> str:
    ordered = [_of_100(group) for group in sorted(visible_groups, key=_by_rate)]
    return ordered[0] if len(set(ordered)) == 1 else f"{ordered[-1]} to {ordered[0]}"


def _effect_forms(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """Each group's points of approval, the worst state first, with its own state where it is not the theory's."""
    ordered = _ordered(standings)
    first = next((status for status in ordered if _value(status) is not None), None)

    def listing(statuses: Sequence[Standing], parts: bool) -> str:
        return "; ".join(_effect(status, status is first, state, groups, parts) for status in statuses)

    shares = {
        _part(status, groups) if status.state is State.BREACH and not status.disagree else "" for status in ordered
    }
    if len(ordered) > 1 and len(shares) == 1 and "" not in shares and all(status.state is state for status in ordered):
        yield f"{listing(ordered, False)}; {said('questions', 'gap_left_each', part=shares.pop())[0]}."
    for parts in (True, False):
        yield f"{listing(ordered, parts)}."
    same = [status for status in ordered if status.state is state and not status.withheld]
    if same and len(same) < len(ordered):
        yield f"{listing(same, False)}; {_counts([status for status in ordered if status not in same], 'groups')}."


def _ordered(standings: Sequence[Standing]) -> list[Standing]:
    """Those outside first, those withheld last; within a state in the order of groups."""
    return sorted(standings, key=lambda status: (status.withheld, WORST.index(status.state)))


def _value(status: Standing) -> float | None:
    return None if status.row is None else status.row.value


def _effect(status: Standing, first: bool, state: State, groups: Groups, parts: bool) -> str:
    name, value = groups.label(status.key), _value(status)
    if value is None:
        return f"{name} {WITHHELD if status.withheld else STATES[status.state]}"
    text = f"{name} {in_points(-100 * value) if first else points(-100 * value)}"
    if status.disagree:
        return f"{text}, {forms('questions', 'disagree')[0]}"
    if status.state is not state:
        return f"{text}, {STATES[status.state]}"
    part_left = _part(status, groups) if parts and status.state is State.BREACH else ""
    return f"{text}, {said('questions', 'gap_left', part=part_left)[0]}" if part_left else text


def _part(status: Standing, groups: Groups) -> str:
    """How much of the gap is left among similar records, in words; empty where it is no part of it.

    Both are those that the page prints: the plain gap in approvals, and the adjusted one of the same decision maker.
    """
    if status.row is None or status.row.theory is not Theory.DIRECT or status.row.value is None:
        return ""
    plain = groups.standing(Theory.OUTCOME, status.key).row
    gap = groups.gap_points(plain)
    if plain is None or gap is None or gap >= 0 or plain.decision_maker != status.row.decision_maker:
        return ""
    share = -100 * status.row.value / gap
    return part(share) if 0 < share <= 1 else ""


def _route_forms(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """The cost of the way for the reference group and for the group; the denials, where they are too few."""
    added = [
        status for status in standings if status.row is not None and status.row.role == "adds" and not status.disagree
    ]
    if added:
        yield from _with_others("without_a_way", added, standings, groups)
    if state is State.INSUFFICIENT_EVIDENCE:
        with_events = [
            (status, status.row.events) for status in standings if status.row is not None and not status.withheld
        ]
        denied = [f"{count(n)} {groups.label(status.key)}" for status, n in with_events if n is not None]
        makers = {status.row.decision_maker for status, _ in with_events if status.row is not None}
        if denied and len(denied) == len(standings) and len(makers) == 1:
            name = "denials_of_model" if makers == {DecisionMaker.MODEL} else "denials"
            yield said("questions", name, denials=listed(denied))[0]
        return
    costs = []
    for status in _ordered(standings):
        name = groups.label(status.key)
        if status.withheld or status.row is None or status.row.value is None or status.row.role == "adds":
            costs.append(f"{name} {WITHHELD if status.withheld else STATES[status.state]}")
        else:
            own_state = "" if status.state is state else f", {STATES[status.state]}"
            costs.append(f"{name} {of_100(status.row.value)}{own_state}")
    yield said("questions", "costs", costs="; ".join(costs))[0]


def _reason_forms(state: State, standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """Whether reasons differ by more than within a group; a score has no unit that the page could print."""
    with_values = [(status, status.row.value) for status in standings if status.row is not None and not status.withheld]
    above = [groups.label(status.key) for status, value in with_values if value is not None and value > 0]
    if state is State.BREACH:
        yield from _with_others("own_reasons_outside", [e for e in standings if e.state is state], standings, groups)
    elif above:
        yield said("questions", "own_reasons_above", groups=listed(above))[0]
    elif with_values and len(with_values) == len(standings) and all(value is not None for _, value in with_values):
        yield forms("questions", "own_reasons_within")[0]


def _with_others(name: str, named: Sequence[Standing], standings: Sequence[Standing], groups: Groups) -> Iterator[str]:
    """A sentence that names groups, and the number of the others by state."""
    other_statuses = [status for status in standings if status not in named]
    remark = f"; {_counts(other_statuses, 'groups')}" if other_statuses else ""
    if named:
        yield said("questions", name, groups=listed([groups.label(status.key) for status in named]), others=remark)[0]


def _state_sentence(state: State, standings: Sequence[Standing], noun: str) -> str:
    same = sum(status.state is state and not status.withheld for status in standings)
    withheld = sum(status.withheld for status in standings)
    if same:
        return said("questions", "most_of", n=same, groups=_number(noun, len(standings)), state=STATES[state])[0]
    return said("questions", "withheld", groups=_number(noun, withheld))[0] if withheld else _nothing()


def _nothing() -> str:
    return forms("questions", "nothing")[0]


def _counts(standings: Sequence[Standing], noun: str = "") -> str:
    """Numbers by state, the worst first, and of what: "2 groups outside limit, 3 too little to say"."""
    numbers = Counter(WITHHELD if status.withheld else STATES[status.state] for status in standings)
    ordered = [word for word in (*(STATES[state] for state in WORST), WITHHELD) if word in numbers]
    first = {word: _number(noun, numbers[word]) for word in ordered[:1] if noun}
    return ", ".join(f"{first.get(word, numbers[word])} {word}" for word in ordered)


def _number(name: str, n: int) -> str:
    """A number with its noun."""
    singular, several = forms("questions", name)
    return (singular if n == 1 else several).format(n=n)


# --------------------------------------------------------------------------------------------------------------------
# What would change the findings: rules in order; the first three that apply are printed.
#
# A rule returns the forms of its line, the longest first, or nothing where it does not apply.


MOST_LINES = 3
MOST_COLUMNS = 3
"""That a line names."""
LEAST_SIZE = 0.1
"""Points below which no size is printed."""
LIMITED = (Theory.OUTCOME, Theory.DIRECT, Theory.TOTAL, Theory.RECOURSE)
"""Theories that have a limit by default; a score of reasons has no external scale, and needs none."""
MEASURED = (Theory.DIRECT, Theory.TOTAL, Theory.OUTCOME)
"""Theories with a smallest difference in points; those with a limit in points first."""


@dataclass(frozen=True)
class View:
    """What rules look at."""

    groups: Groups
    chosen: Key | None
    """The group of the figures."""

    def ordered(self) -> tuple[Key, ...]:
        """Groups with enough people, that of the figures first."""
        enough = [key for key in self.groups.order if self.groups.enough(key)]
        return tuple(sorted(enough, key=lambda key: key != self.chosen))

    def adjusted(self, key: Key) -> Row | None:
        """The adjusted row of a group with printable numbers."""
        row = self.groups.standing(Theory.DIRECT, key).row
        return None if row is None or row.withheld else row

    def outside(self) -> Iterator[Key]:
        """Groups with an adjusted difference outside the limit, that of the figures first."""
        yield from (k for k in self.ordered() if self.groups.standing(Theory.DIRECT, k).state is State.BREACH)

    def outside_but_for_missing(self) -> Iterator[Key]:
        """Groups that would be outside if their interval were not widened for columns missing from the table."""
        for key in self.ordered():
            row = self.adjusted(key)
            if row is not None and row.outside_but_for_missing:
                yield key

    def open_rows(self) -> Iterator[Row]:
        """Rows with too little to say of groups with enough people, by theory, the group of the figures first."""
        for theory in MEASURED:
            for key in self.ordered():
                status = self.groups.standing(theory, key)
                if status.row is not None and not status.withheld and status.state is State.INSUFFICIENT_EVIDENCE:
                    yield status.row

    def without_limit(self) -> bool:
        """Whether a theory that could have a limit was measured without one."""
        rows = [self.groups.run.theory(theory) for theory in LIMITED]
        return any(row is not None and row.state is State.NO_LIMIT for row in rows)


Rule = Callable[[View], tuple[str, ...]]


def changes(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The name of each rule that is printed, with the forms of its line."""
    return first(RULES, view)


def first(rules: Sequence[tuple[str, Rule]], view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The first three rules that apply, in their order."""
    lines = ((name, rule(view)) for name, rule in rules)
    return tuple((name, tuple(capital(form) for form in texts)) for name, texts in lines if texts)[:MOST_LINES]


def _confounder(view: View) -> tuple[str, ...]:
    """Adjusted is outside, or would be but for the widening: how strong an unseen column would have to be."""
    for key in (*view.outside(), *view.outside_but_for_missing()):
        row = view.adjusted(key)
        if row is None or row.robustness is None:
            continue
        words = {"share": percent(row.robustness), "attribute": short(key[0], 3)}
        benchmark = view.groups.run.strongest.get(key)
        if benchmark is None:
            return tuple(form.format(**words) for form in forms("change", "confounder")[1:])
        words |= {"column": capital(short(benchmark.column, 4))}
        words |= {"of_group": whole_percent(benchmark.of_group), "of_approval": whole_percent(benchmark.of_approval)}
        return said("change", "confounder", **words)
    return ()


def _no_credit_score(view: View) -> tuple[str, ...]:
    """No column is a credit history, the columns are not declared complete, and the adjusted gap is shown.

    A missing column can have shifted the gap either way: no bound is claimed.
    """
    run, row = view.groups.run, None if view.chosen is None else view.adjusted(view.chosen)
    if row is None or row.value is None or run.credit_history or run.complete:
        return ()
    return forms("change", "no_credit_score")


def _missing_columns(view: View) -> tuple[str, ...]:
    """The year of the data has not all columns that other years of the audit have."""
    run = view.groups.run
    if not run.lacking:
        return ()
    texts = said("change", "year_lacks", year=run.year, columns=listed(short(column, 4) for column in run.lacking))
    return texts if len(run.lacking) <= MOST_COLUMNS else texts[1:]


def _left_out(view: View) -> tuple[str, ...]:
    """More than 5 % of applications have no value in a column."""
    left_out = view.groups.run.left_out
    if left_out is None or not left_out.is_told:
        return ()
    if left_out.denied is None or left_out.denied_of_others is None:
        return tuple(form.format(n=count(left_out.n)) for form in forms("change", "left_out")[1:])
    rates = {"denied": of_100(left_out.denied), "others": of_100(left_out.denied_of_others)}
    return said("change", "left_out", n=count(left_out.n), **rates)


def _detectable(view: View) -> tuple[str, ...]:
    """A state is too little to say: below which size a difference is shown to be outside in few such audits.

    The people are those of the row: an adjusted gap is of complete records. Not where the interval is widened for
    columns missing from the table: more people would not narrow that.
    """
    for row in view.open_rows():
        size = view.groups.detectable_points(row)
        if row.n is not None and size is not None and size >= LEAST_SIZE and not row.bias:
            words = {"n": count(row.n), "group": view.groups.label(row.key), "points": points_below(size)}
            return said("change", "detectable", what=forms("differences", row.theory)[0], **words)
    return ()


RULES: tuple[tuple[str, Rule], ...] = (
    ("confounder", _confounder),
    ("no_credit_score", _no_credit_score),
    ("year_lacks", _missing_columns),
    ("left_out", _left_out),
    ("detectable", _detectable),
    ("missing_limit", lambda view: forms("change", "missing_limit") if view.without_limit() else ()),
)


# --------------------------------------------------------------------------------------------------------------------
# What to do next, and what the page cannot show: rules in their order, the first three that apply.
#
# Steps on the data come first; files of persons are read before anything is repeated, unless the file is a public one
# that names neither lender nor score.


OLD = 5
"""Years after which data say little of decisions made today: a choice of this project."""
MOST_REPORTED = 3
"""Small groups that are named."""
MOST_WORDS_OF_LOST = 34
"""Of the line on groups that lost rows."""
LONGEST = 20
"""Years beyond which the page does not count the years of a wait."""


def next_steps(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The name of each step that is printed, with the forms of its line."""
    return first(STEPS, view)


def cannot_tell(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Three lines: the second gives way to what is special about these data.

    A sample, and groups that lost half or more of their rows to missing features, have a line more each.
    """
    run = view.groups.run
    special = {
        "mixed_lenders": run.lenders is None or run.lenders > 1,
        "sample": run.sampled,
        "old_years": run.years_old is not None and run.years_old >= OLD,
        "unseen": True,
    }
    second = next(name for name, applies in special.items() if applies)
    part = "perhaps" if second == "mixed_lenders" and run.lenders is None else "cannot"
    lines = [("why_lawful", forms("cannot", "why_lawful")), (second, forms(part, second))]
    if run.sample is not None:
        sampled, total = run.sample
        lines.append(("asked", said("cannot", "asked", asked=count(sampled), of=count(total))))
    if run.lost:
        lines.append(("lost", _lost_rows(view)))
    if run.reported:
        lines.append(
            ("reported", said("cannot", "reported", groups=listed(run.reported[:MOST_REPORTED]), n=run.minimum_n))
        )
    return (*lines, ("single_person", forms("cannot", "single_person")))


def _lost_rows(view: View) -> tuple[str, ...]:
    """Groups with half or more of their rows without a feature: up to two by name, with the feature if it fits."""
    lost = view.groups.run.lost
    candidates: list[str] = []
    for n_named, n_columns in ((2, MOST_COLUMNS), (1, MOST_COLUMNS), (1, 0)):
        parts = []
        for group in lost[:n_named]:
            label = view.groups.label((group.attribute, group.name))
            words = {"n": count(group.n), "used": count(group.used), "group": label}
            if n_columns and group.columns:
                columns = listed(short(name, 3) for name in group.columns[:n_columns])
                parts.append(said("lost", "group_lacks", columns=columns, **words)[0])
            else:
                parts.append(said("lost", "group", **words)[0])
        if rest := len(lost) - len(parts):
            singular, several = forms("lost", "more")
            parts.append((singular if rest == 1 else several).format(n=rest))
        candidates += said("cannot", "lost", groups="; ".join(parts))
    return fitting(candidates, MOST_WORDS_OF_LOST)


def files_of(view: View) -> tuple[Key, Files] | None:
    """The group and the files of it that should be read; None where no group is outside."""
    key = next(view.outside(), None)
    return None if key is None else (key, view.groups.run.files.get(key, Files()))


def _add_columns(view: View) -> tuple[str, ...]:
    """Public data: the lender's files know more, wherever similar records are not shown to be inside."""
    row = view.groups.run.theory(Theory.DIRECT)
    not_inside = State.BREACH, State.INSUFFICIENT_EVIDENCE, State.NO_LIMIT
    measured = row is not None and row.state in not_inside
    return forms("next", "add_columns") if view.groups.run.public and measured else ()


def _by_lender(view: View) -> tuple[str, ...]:
    lenders = view.groups.run.lenders
    if lenders is None:
        return forms("perhaps", "by_lender")
    return forms("next", "by_lender") if lenders > 1 else ()


def _read_files(view: View) -> tuple[str, ...]:
    """Similar records are outside, and the data are the lender's own."""
    group_files = files_of(view)
    if group_files is None or view.groups.run.public:
        return ()
    key, files = group_files
    words = _named(view, key)
    if files.n is None:
        return tuple(form.format(**words) for form in forms("next", "read_files")[1:])
    return said("next", "read_files", n=count(files.n), **words)


def _wait(view: View) -> tuple[str, ...]:
    """Too few applications: how many would settle it, and in how many years they come."""
    for row in view.open_rows():
        now = None if row.n is None or row.n_reference is None else row.n + row.n_reference
        if row.needed is not None and now and row.needed > now:
            whose = said("whose", "both", **_named(view, row.key))[0]
            return said("next", "wait", needed=forecast(row.needed), whose=whose, years=_years(row.needed / now))
    least = view.groups.run.minimum_n
    few = {key: n for key in view.groups.order if (n := view.groups.people(key)) and n < least}
    if not few:
        return ()
    key = next(iter(few))  # the largest of the first attribute
    whose = said("whose", "group", **_named(view, key))[0]
    return said("next", "wait", needed=count(least), whose=whose, years=_years(least / few[key]))


def _named(view: View, key: Key) -> dict[str, str]:
    return {"group": view.groups.label(key), "reference": view.groups.reference_label(key[0])}


def _years(years: float) -> str:
    """Years at this year's number."""
    n = math.ceil(years - 1e-9)
    if n > LONGEST:
        return said("years", "many", n=LONGEST)[0]
    singular, several = forms("years", "years")
    return (singular if n == 1 else several).format(n=n)


STEPS: tuple[tuple[str, Rule], ...] = (
    ("fix_data", lambda view: forms("next", "fix_data") if view.groups.run.warnings else ()),
    ("add_columns", _add_columns),
    ("by_lender", _by_lender),
    # A public file names no applicant to read a file of: that step follows the lender's own data.
    ("read_later", lambda view: forms("next", "read_later") if view.groups.run.public and files_of(view) else ()),
    ("read_files", _read_files),
    ("ask_reasons", lambda view: forms("next", "ask_reasons") if not view.groups.run.public and files_of(view) else ()),
    ("repeat", lambda view: forms("next", "repeat") if not view.groups.run.public and files_of(view) else ()),
    ("wait", _wait),
    ("set_limits", lambda view: forms("next", "set_limits") if view.without_limit() else ()),
)
