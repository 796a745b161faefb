"""The rows of the first page: what a question found, against which limit, and how reliable that is.

Scope: one row a question. The first word follows from the interval that is printed beside it and from nothing else; the
limit has a column of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from schemas.questions import QUESTIONS, STATES
from schemas.sentences import ENOUGH_CHOICES
from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.charts.values import MINUS, POINTS, places_of
from tasks.reporting.first_page.facts import (
    DECIMALS,
    Finding,
    Group,
    Groups,
    Key,
    Row,
    Standing,
    approval_points,
    of_100,
    percent,
    points,
    said,
    sentences,
    some_points,
)
from tasks.reporting.first_page.facts import words as words_of
from tasks.reporting.first_page.result import DIFFERS, OPEN, SAME, Answer, Effect, Question
from tasks.reporting.material import listed
from tasks.reporting.plain_words import longest_sentence
from tasks.reporting.text import count

MOST_RATES = 6
"""Groups whose rates are printed; of more, the lowest four."""
LOWEST = 4
MOST_OF_A_SENTENCE = 25
"""Words."""
MOST_NAMED = 2
"""Groups that a sentence names with their numbers."""
MOST_OF_NAMES = 8, 40
"""Words and letters of a group and its reference together, with which a sentence still reads."""
EQUAL_COSTS = 100.0
"""Percent: the path of both groups is as long."""
NONE = "\N{EN DASH}"
"""Where nothing of reliability is to be said."""
POOR_SUPPORT = 0.8
MANY_UNKNOWN = 0.1
CONTRADICTED = 0.1
"""Share of the tests of a causal model above which these data contradict it."""
ABOUT_ALIKE = (Theory.SIMILAR_APPLICANTS,)
"""Questions that ask whether people were treated alike, so that a difference answers no."""


def questions(groups: Groups, most: int) -> tuple[Question, ...]:
    """The rows in the order of the pages.

    Args:
        groups: the case groups.
        most: words of a result, all its sentences together; longer ones name fewer groups.
    """
    return tuple(
        _question(theory, groups, most)
        for theory in QUESTIONS
        if theory is not Theory.OWN_LIMITS or groups.run.theory(theory) is not None
    )


def _question(theory: Theory, groups: Groups, most: int) -> Question:
    overall_row = groups.run.theory(theory)
    state = State.NOT_RUN if overall_row is None else overall_row.state
    effects = effects_of(theory, groups)
    if state in (State.NOT_RUN, State.INFORMATION):  # no interval of these covers as it says
        effects = tuple(replace(effect, low=None, high=None) for effect in effects)
    answer = answer_of(theory, effects, groups)
    priced = prices_result(groups) if theory is Theory.SIMILAR_APPLICANTS else ""
    sentence, printed = _result(theory, state, answer, effects, groups, most - words_of(priced))
    return Question(
        theory=theory,
        page=QUESTIONS[theory].file,
        question=QUESTIONS[theory].words,
        state=state,
        state_words=STATES[state].words,
        sentence=" ".join(filter(None, (sentence, priced))),
        answer=answer,
        against=_against(theory, state, groups),
        reliable=_reliable(theory, state, effects, groups),
        effects=printed,
    )


# --------------------------------------------------------------------------------------------------------------------
# The result: a word by the printed interval, then numbers.


def effects_of(theory: Theory, groups: Groups) -> tuple[Effect, ...]:
    """Every group's effect as it is printed, that with the clearest difference first; groups without a value not."""
    effects = []
    for status in groups.standings(theory):
        row = status.row
        if row is None or row.value is None or status.withheld or row.role == "adds":
            continue
        if (effect := effect_of(theory, status.key, row, groups)) is not None:
            effects.append(effect)
    return tuple(sorted(effects, key=lambda effect: (-effect.clearance, groups.order.index(effect.key))))


def effect_of(theory: Theory, key: Key, row: Row, groups: Groups) -> Effect | None:
    """The value of a row with its two-sided 95 % interval as printed; points of approval, or percent of costs."""
    numbers = (row.value, *(row.printed_ends or (None, None)))
    if theory is Theory.APPROVAL_RATES:
        value, low, high = (None if n is None else groups.gap_points(row, n) for n in numbers)
    elif theory in (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL):
        value, high, low = (None if n is None else approval_points(n) for n in numbers)
    elif theory is Theory.PATH_TO_APPROVAL:
        value, low, high = (None if n is None else round(100 * n, DECIMALS) for n in numbers)
    else:
        return None
    if value is None:
        return None
    none = EQUAL_COSTS if theory is Theory.PATH_TO_APPROVAL else 0.0
    if low is None or high is None:
        return Effect(key, round(value), None, None, none, 0)
    decimals = places_of(POINTS, low, high)
    if none in (round(low, decimals), round(high, decimals)):
        decimals = 1
    return Effect(
        key, round(value, decimals) + 0.0, round(low, decimals) + 0.0, round(high, decimals) + 0.0, none, decimals
    )


def answer_of(theory: Theory, effects: Sequence[Effect], groups: Groups) -> Answer:
    """What the printed intervals show: a difference, less than the limit in every group, or neither."""
    if any(effect.excludes for effect in effects) or (
        theory is Theory.SIMILAR_APPLICANTS and groups.run.differing_parts
    ):
        return DIFFERS
    if all(effect.low is None for effect in effects):
        return ""
    statuses = [status for status in groups.standings(theory) if not status.withheld]
    inside = [_below_limit(theory, effect, groups) for effect in effects]
    return SAME if len(effects) == len(statuses) and all(inside) else OPEN


def _below_limit(theory: Theory, effect: Effect, groups: Groups) -> bool:
    """Whether the whole interval lies between the limit and its counterpart on the other side."""
    row = groups.standing(theory, effect.key).row
    if row is None or row.limit is None or effect.low is None or effect.high is None:
        return False
    if theory is Theory.APPROVAL_RATES:
        least, most = groups.gap_points(row, row.limit), groups.gap_points(row, 1 / row.limit)
    elif theory is Theory.PATH_TO_APPROVAL:
        least, most = 100 * row.limit, 100 / row.limit
    else:
        limit = 100 * (row.limit if row.limit_used is None else row.limit_used)
        least, most = -limit, limit
    return least is not None and most is not None and least < effect.low and effect.high < most


def _result(
    theory: Theory, state: State, answer: Answer, effects: Sequence[Effect], groups: Groups, most: int
) -> tuple[str, tuple[Effect, ...]]:
    """The result, and the effects that it prints."""
    if theory is Theory.OWN_LIMITS:
        return limits_result(groups), ()
    if state is State.NOT_RUN and not (theory is Theory.APPROVAL_RATES and groups.run.groups):
        overall_row = groups.run.theory(theory)
        reason = "" if overall_row is None else overall_row.reason
        reasons: Mapping[str, str] = sentences()["not_run"]
        words = next((text for pattern, text in reasons.items() if fnmatchcase(reason, pattern)), "")
        return words or said("result", "nothing")[0], ()
    if theory is Theory.MODEL_REASONS:
        return reasons_result(groups), ()
    first = ""
    if answer:
        first = said("answer", f"{answer}_alike" if theory in ABOUT_ALIKE else answer)[0]
    named = list(effects)
    if answer == DIFFERS:  # those that differ as the clearest one does
        named = [effect for effect in effects if effect.excludes]
        named = [effect for effect in named if (effect.value < effect.none) == (named[0].value < named[0].none)]
    if answer == DIFFERS and not named:
        return f"{first} {groups.run.differing_parts[0].sentence}", (part_effect(groups.run.differing_parts[0]),)
    if not named:
        return " ".join(filter(None, (first, _without_numbers(theory, groups)))), ()
    most_named = 1 if theory is Theory.PATH_TO_APPROVAL else MOST_NAMED
    # Where the data contradict the model, its effect is never printed without the one that assumes least.
    contradicted = theory is Theory.CAUSAL_MODEL and state is State.UNRELIABLE
    last = saturated_result(named[0].key, groups) if contradicted else ""
    forms = [
        (
            " ".join(filter(None, (_with_numbers(theory, answer, first, named[:n], len(effects) - n, groups), last))),
            tuple(named[:n]),
        )
        for n in range(min(len(named), most_named), 0, -1)
    ]
    plain = [form for form in forms if longest_sentence([form[0]]) <= MOST_OF_A_SENTENCE] or forms[-1:]
    return next((form for form in plain if words_of(form[0]) <= most), min(plain, key=lambda form: words_of(form[0])))


def _with_numbers(
    theory: Theory, answer: Answer, first: str, named: Sequence[Effect], rest: int, groups: Groups
) -> str:
    builders: Mapping[Theory, Callable[[Answer, Sequence[Effect], Groups], str]] = {
        Theory.APPROVAL_RATES: rates_result,
        Theory.SIMILAR_APPLICANTS: similar_result,
        Theory.CAUSAL_MODEL: causal_result,
        Theory.PATH_TO_APPROVAL: path_result,
    }
    remark = groups.number("result", "others", rest) if rest and theory is Theory.SIMILAR_APPLICANTS else ""
    return " ".join(filter(None, (first, builders[theory](answer, named, groups), remark)))


def part_effect(part: Finding) -> Effect:
    """A part of a group as its sentence prints it."""
    low, high = (None if end is None else round(approval_points(end)) + 0.0 for end in (part.high, part.low))
    value = 0.0 if part.value is None else round(approval_points(part.value)) + 0.0
    return Effect((part.attribute, part.group), value, low, high, 0.0, 0)


def _interval(effect: Effect, signed: bool = False) -> str:
    """The ends in brackets: sizes where all lies on one side, with signs where it reaches over no difference."""
    if effect.low is None or effect.high is None:
        return ""
    ends = (effect.low, effect.high)
    if signed or (effect.none == 0 and not effect.excludes):
        low, high = (points(end, effect.decimals) for end in ends)
    else:
        low, high = (points(end, effect.decimals).lstrip(f"+{MINUS}") for end in sorted(map(abs, ends)))
    return str(said("result", "from_to", low=low, high=high)[0])


def _size(effect: Effect) -> str:
    text = points(effect.value, effect.decimals).lstrip(f"+{MINUS}")
    return f"{text} point" if text == "1" else f"{text} points"


def _signed(effect: Effect, groups: Groups) -> str:
    """An effect that may be none: with its sign and that of its ends."""
    size = points(effect.value, effect.decimals)
    words = {"group": groups.label(effect.key), "size": size if size.endswith("points") else f"{size} points"}
    return said("result", "level", interval=_interval(effect, signed=True), **words)[0]


def _way(effect: Effect) -> str:
    return said("result", "less" if effect.value < 0 else "more")[0]


def rates_result(answer: Answer, named: Sequence[Effect], groups: Groups) -> str:
    """Approvals of 100 by group, the lowest first, and how far the named groups are from their reference."""
    references = dict.fromkeys(groups.reference_label(effect.key[0]) for effect in named)
    if answer == DIFFERS and len(references) == 1:
        words = {"group": groups.label(named[0].key), "size": _size(named[0]), "interval": _interval(named[0])}
        way = "lower" if named[0].value < 0 else "higher"
        compared = said("result", way, reference=listed(references), more=_more(named, groups), **words)[0]
    else:
        effects = ", ".join(_signed(effect, groups) for effect in named)
        compared = said("result", "compared", reference=listed(references), effects=effects)[0]
    return " ".join(filter(None, (rates_of(groups, groups.reference_key(named[0].key[0])), compared)))


def _more(named: Sequence[Effect], groups: Groups) -> str:
    """The further groups after the first, by their number and interval alone."""
    return "".join(
        f", {groups.label(effect.key)} {_size(effect).split()[0]}{_interval(effect)}" for effect in named[1:]
    )


def rates_of(groups: Groups, reference: Key | None = None) -> str:
    """Rates of every group, the lowest first; above six groups the four lowest, and the reference of what follows."""
    published = groups.run.groups
    visible = sorted((g for g in published if g.approval is not None or g.approval_text), key=_by_rate)
    if not visible:
        return said("result", "rates_withheld")[0] if published else ""
    makers = {group.decision_maker for group in published}
    name = "rates_of_model" if makers == {DecisionMaker.MODEL} else "rates"
    for n in (len(visible), LOWEST, 3, 2, 1):
        if len(published) > MOST_RATES and n > LOWEST:
            continue
        first = [*visible[:n], *(group for group in visible[n:] if group.key == reference)]
        rates = ", ".join(f"{groups.label(g.key)} {g.approval_text or of_100(g.approval or 0.0)}" for g in first)
        if rest := len(published) - len(first):
            rates = said("result", "and_more", rates=rates, n=rest)[rest > 1]
        text = said("result", name, rates=rates)[0]
        if longest_sentence([text]) <= MOST_OF_A_SENTENCE:
            break
    return text


def _by_rate(group: Group) -> tuple[float, str]:
    """By the rate; of a range, ``more than 95``, by its end; groups of few people, ``3 of 7``, come last."""
    if group.approval is not None:
        return group.approval, group.name
    first, *_, last = group.approval_text.split()
    return (1 + float(first) / float(last) if first.isdigit() else float(last) / 100), group.name


def similar_result(answer: Answer, named: Sequence[Effect], groups: Groups) -> str:
    """Similar applicants: how much less or more often they were approved."""
    columns = groups.run.columns.get(named[0].key)
    unknown = "" if columns else "_unknown"
    if answer != DIFFERS:
        effects = ", ".join(_signed(effect, groups) for effect in named)
        return said("result", f"similar_open{unknown}", n=columns, effects=effects)[0]
    first = named[0]
    words = {"group": groups.label(first.key), "size": _size(first), "way": _way(first)}
    words |= {"interval": _interval(first), "more": _more(named, groups)}
    return said("result", f"similar{unknown}", n=columns, **words)[0]


def prices_result(groups: Groups) -> str:
    """The largest price beyond its limit that similar borrowers of a group pay; empty where none is beyond it."""
    beyond = [status.row for status in groups.dear() if status.row is not None]
    if not beyond:
        return ""
    row = max(beyond, key=lambda row: row.value or 0.0)
    low, high = row.printed_ends or (None, None)
    ends = "" if low is None or high is None else said("result", "from_to", low=f"{low:.2f}", high=f"{high:.2f}")[0]
    return said("result", "price", group=groups.label(row.key), size=f"{row.value:.2f}", interval=ends)[0]


def causal_result(answer: Answer, named: Sequence[Effect], groups: Groups) -> str:
    """The causal model: how often they would be approved in the other group."""
    if answer != DIFFERS:
        effects = ", ".join(_signed(effect, groups) for effect in named)
        return said("result", "causal_open", effects=effects)[0]
    # In the other group they would be approved more often where they are approved less often now.
    first = named[0]
    way = said("result", "more" if first.value < 0 else "less")[0]
    words = {"group": groups.label(first.key), "reference": groups.reference_label(first.key[0]), "way": way}
    words |= {"size": _size(first), "interval": _interval(first), "more": _more(named, groups)}
    return said("result", "causal", **words)[0]


def saturated_result(key: Key, groups: Groups) -> str:
    """The effect by a causal model without an assumed edge, of the first group that is printed; empty without it."""
    value, low, high = groups.run.saturated.get(key, (None, None, None))
    if value is None:
        return ""
    points_low, points_high = (None if end is None else round(approval_points(end)) + 0.0 for end in (high, low))
    effect = Effect(key, round(approval_points(value)) + 0.0, points_low, points_high)
    way = said("result", "more" if effect.value < 0 else "less")[0]  # in the other group, as the sentence before says
    return said("result", "saturated", size=_size(effect), way=way, interval=_interval(effect))[0]


def path_result(_answer: Answer, named: Sequence[Effect], groups: Groups) -> str:
    """The path to approval: the change that the reference group needs, in percent of the group's."""
    texts = []
    for effect in named:
        size = f"{points(effect.value, effect.decimals).lstrip('+')} %"
        interval = _interval(effect)
        words = {"group": groups.label(effect.key), "reference": groups.reference_label(effect.key[0])}
        texts.append(said("result", "path", size=size, interval=interval, **words)[0])
    return " ".join(texts)


def _without_numbers(theory: Theory, groups: Groups) -> str:
    """What is printed where no group has a number."""
    if theory is Theory.APPROVAL_RATES:
        return rates_of(groups)
    standings = groups.standings(theory)
    no_path = [s.key for s in standings if s.row is not None and s.row.role == "adds" and s.state is State.OUTSIDE]
    if no_path:
        return said("result", "path_none", people=groups.applicants(no_path))[0]
    if standings and all(status.withheld for status in standings):
        return said("result", "withheld")[0]
    if standings:
        return said("result", "few", people=groups.applicants([status.key for status in standings]))[0]
    return said("result", "nothing")[0]


def reasons_result(groups: Groups) -> str:
    """Whether reasons differ by more than within a group; a score has no unit that the page could print.

    They do where the interval excludes it, or without an interval where the value is above all but a few relabellings.
    """
    rows = [s.row for s in groups.standings(Theory.MODEL_REASONS) if s.row is not None and not s.withheld]
    above = []
    for row in rows:
        bound, least = (row.value, groups.run.relabelled.get(row.key, math.inf)) if row.low is None else (row.low, 0.0)
        if bound is not None and bound > least:
            above.append(row.key)
    if above:
        return said("result", "reasons_more", people=groups.applicants(above))[0]
    if any(row.value is not None for row in rows):
        return said("result", "reasons_same")[0]
    return _without_numbers(Theory.MODEL_REASONS, groups)


def limits_result(groups: Groups) -> str:
    """The limits of the spec: how many are kept."""
    states = [row.state for row in groups.run.rows if row.theory is Theory.OWN_LIMITS and row.role != "theory"]
    missed, limits = states.count(State.OUTSIDE), len(states)
    if missed:
        words = said("result", "own_some", n=missed, limits=limits, are="is" if missed == 1 else "are")[0]
        return f"{said('answer', 'same')[0]} {words}"
    n_kept = states.count(State.WITHIN)
    if n_kept == limits and limits:
        return f"{said('answer', 'differs')[0]} {groups.number('result', 'own_all', limits)}"
    words = said("result", "own_open", n=limits - n_kept, limits=limits)[0]
    return f"{said('answer', 'open')[0]} {words}"


# --------------------------------------------------------------------------------------------------------------------
# Against the limit: the state, with the limit and what keeps it open.


def _against(theory: Theory, state: State, groups: Groups) -> str:
    rows = _judged_rows(theory, groups)
    matching = [status for status in rows if status.state is state and not status.withheld]
    words = {"state": STATES[state].words}
    row = _clearest(theory, matching, groups)
    if state is State.UNRELIABLE:
        return said("against", "unreliable", **words)[0]
    if theory is Theory.SIMILAR_APPLICANTS and state is State.OUTSIDE and (dear := groups.outside_by_price()):
        return said("against", "of_price", **words, **price_limit(dear, groups))[0]
    if state not in (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE) or theory is Theory.OWN_LIMITS:
        return said("against", "plain", **words)[0]
    if row is None or row.limit is None or row.role == "adds":
        few = state is State.INCONCLUSIVE
        return said("against", "open_few" if few else "plain", **words)[0]
    kind = {Theory.APPROVAL_RATES: "ratio", Theory.PATH_TO_APPROVAL: "share"}.get(theory, "points")
    named = {"group": row.group, "reference": groups.reference_label(row.protected_attribute)}
    words |= _limit_words(theory, row, groups) | named
    # The first form names both groups; long names, and one of many, would hide what it says.
    words_of_names, letters = words_of(*named.values()), sum(map(len, named.values()))
    are_long = words_of_names > MOST_OF_NAMES[0] or letters > MOST_OF_NAMES[1]
    form = -1 if are_long or len(rows) > MOST_RATES else 0
    if state is not State.INCONCLUSIVE:
        words["side"] = said("against", "below" if state is State.OUTSIDE else "above")[0]
        words["which"] = _which(matching, rows, groups.applicants)
        return said("against", f"of_{kind}", **words)[-1 if words["which"] else form]
    if row.value is None:
        return said("against", "open_few", **words)[0]
    if theory is Theory.SIMILAR_APPLICANTS and (why := _kept_open(row, groups)):
        return said("against", why, **words)[0]
    effect = effect_of(theory, row.key, row, groups)
    if effect is None or not _crosses(theory, row, effect):
        return said("against", "open_corrected", **words)[0]
    low, high = ("" if end is None else points(end, effect.decimals).lstrip("+") for end in (effect.low, effect.high))
    if kind == "share" and not low:
        form = -1
    return said("against", f"open_{kind}", low=low, high=high, **words)[form]


def price_limit(dear: Sequence[Standing], groups: Groups) -> dict[str, str]:
    """The limit that prices are beyond, and whose prices where others are not."""
    limits = {f"{status.row.limit:g}" for status in dear if status.row is not None}
    return {"limit": listed(sorted(limits)), "which": _which(dear, groups.prices(), groups.named)}


def _judged_rows(theory: Theory, groups: Groups) -> list[Standing]:
    return [status for status in groups.standings(theory) if status.row is not None]


def _clearest(theory: Theory, standings: Sequence[Standing], groups: Groups) -> Row | None:
    """The row whose limit is printed: of the group that the result names first."""
    order = [effect.key for effect in effects_of(theory, groups)]
    rows = {status.key: status.row for status in standings}
    return next((rows[key] for key in order if rows.get(key) is not None), next(iter(rows.values()), None))


def _which(matching: Sequence[Standing], rows: Sequence[Standing], named: Callable[[Sequence[Key]], str]) -> str:
    """The groups of a state where others have another one; empty where all have it."""
    if len(matching) == len(rows):
        return ""
    keys = [status.key for status in matching]
    several = said("against", "groups", n=len(keys), of=len(rows))[0]
    return said("against", "which", groups=named(keys) if len(keys) <= MOST_NAMED else several)[0]


def _limit_words(theory: Theory, row: Row, groups: Groups) -> dict[str, str]:
    """The limit as declared, and of a ratio its value and interval; that of a path in the unit of its result."""
    if theory is Theory.PATH_TO_APPROVAL:
        return {"limit": f"{percent(row.limit or 0.0)} %"}
    if theory is Theory.APPROVAL_RATES:
        ends, ratio, in_points = row.ends, f"{row.limit:.2f}", groups.gap_points(row, row.limit)
        if in_points is not None:  # as the picture draws it
            ratio = said("against", "in_points", limit=ratio, points=points(in_points, groups.gap_decimals))[0]
        return {
            "limit": ratio,
            "value": "" if row.value is None else f"{row.value:.2f}",
            "interval": "" if ends is None else f" ({ends[0]:.2f} to {ends[1]:.2f})",
        }
    limit = 100 * ((row.limit or 0.0) if row.limit_used is None else row.limit_used)
    text = points(limit, 1).lstrip("+")
    return {"limit": some_points(limit) if float(text).is_integer() else f"{text} points"}


def _kept_open(row: Row, groups: Groups) -> str:
    """What other than the number of people keeps a row open; empty for nothing."""
    kinds = {finding.kind for finding in groups.run.findings if (finding.attribute, finding.group) == row.key}
    if row.bias and row.outside_but_for_missing:
        return "open_lacking"
    if kinds & {"missing", "undecided"}:
        return "open_left_out"
    limit = row.limit if row.limit_used is None else row.limit_used
    inside = limit is not None and row.high is not None and row.high < limit
    return "open_part" if inside else ""


def _crosses(theory: Theory, row: Row, effect: Effect) -> bool:
    """Whether the printed interval holds the limit."""
    if effect.low is None or effect.high is None or row.limit is None:
        return True
    if theory is Theory.APPROVAL_RATES:
        ends = row.ends
        return ends is None or ends[0] <= row.limit <= ends[1]
    if theory is Theory.PATH_TO_APPROVAL:
        return effect.low <= 100 * row.limit <= effect.high
    limit = 100 * (row.limit if row.limit_used is None else row.limit_used)
    return effect.low <= -limit <= effect.high


# --------------------------------------------------------------------------------------------------------------------
# How reliable: one phrase, the first that holds.


@dataclass(frozen=True)
class Judged:
    """A question with its state, and the row that its result is about."""

    theory: Theory
    state: State
    row: Row
    groups: Groups


Rule = Callable[[Judged], str]


def _reliable(theory: Theory, state: State, effects: Sequence[Effect], groups: Groups) -> str:
    """The worst that holds for the group that the result names first; a dash where nothing was measured."""
    if state is State.NOT_RUN or theory is Theory.OWN_LIMITS:
        return NONE
    if theory is Theory.SIMILAR_APPLICANTS and (dear := groups.outside_by_price()):
        priced = max((status.row for status in dear if status.row is not None), key=lambda row: row.value or 0.0)
        return lacking(Judged(theory, state, priced, groups)) or loans(priced, groups)
    standings = _judged_rows(theory, groups)
    first = {status.key: status.row for status in standings}
    row = next((first[e.key] for e in effects if first.get(e.key) is not None), next(iter(first.values()), None))
    if row is None:
        return NONE
    return next(filter(None, (rule(Judged(theory, state, row, groups)) for rule in RELIABILITY)), NONE)


def loans(row: Row, groups: Groups) -> str:
    """How many loans a price rests on, which alone is outside; a dash where that is withheld."""
    return NONE if row.n is None else said("reliable", "loans", n=count(row.n), group=groups.label(row.key))[0]


def few_people(case: Judged) -> str:
    """The number of people, where it alone keeps the row open."""
    row, groups = case.row, case.groups
    if case.state is not State.INCONCLUSIVE:
        return ""
    if case.theory is Theory.PATH_TO_APPROVAL:
        judged_rows = [(status.row, status.key) for status in _judged_rows(case.theory, groups)][:MOST_NAMED]
        events = [(r.events, groups.label(key)) for r, key in judged_rows if r is not None and r.events is not None]
        if events and len(events) == len(judged_rows):
            return said("reliable", "denials", denials=listed(f"{count(n)} {name}" for n, name in events))[0]
    kept_open = case.theory is Theory.SIMILAR_APPLICANTS and _kept_open(row, groups)
    if row.n is None or kept_open:
        return ""
    name = "few" if row.n < groups.run.minimum_n or row.value is None else "people"
    return said("reliable", name, n=count(row.n), group=groups.label(row.key))[0]


def choices(case: Judged) -> str:
    """The state of a whole group holds in fewer than 40 of the 48 choices of how its effect is made.

    A part, or files that the effect leaves out, may decide a state that no choice of the whole group has.
    """
    row = case.row
    if case.theory is not Theory.SIMILAR_APPLICANTS or not row.reason.startswith("the whole interval"):
        return ""
    n = {State.OUTSIDE: row.choices_outside, State.WITHIN: row.choices_within}.get(row.state)
    if n is None or row.choices is None or n >= ENOUGH_CHOICES:
        return ""
    return said("reliable", "choices", n=n, choices=row.choices)[0]


def lacking(case: Judged) -> str:
    """Columns that the data lack."""
    run = case.groups.run
    compares = case.theory in (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL)
    if run.complete or not compares or case.state is State.UNRELIABLE:
        return ""
    return said("reliable", "lacking" if run.lacks else "lacking_some", columns=listed(run.lacks))[0]


def graph(case: Judged) -> str:
    """The causal model, contradicted by the data or assumed."""
    tests = case.groups.run.graph_tests
    if case.theory is not Theory.CAUSAL_MODEL:
        return ""
    if tests is not None and (tests.against > CONTRADICTED * tests.n or case.state is State.UNRELIABLE):
        return said("reliable", "graph", against=tests.against, n=tests.n)[0]
    return said("reliable", "assumed")[0]


def left_out(case: Judged) -> str:
    """Files that are in no comparison, where that may change it."""
    run = case.groups.run
    for finding in run.findings:
        is_about_row = (finding.attribute, finding.group) == case.row.key
        if finding.kind in ("missing", "undecided") and is_about_row and finding.n:
            name = "left_out" if finding.kind == "missing" else "undecided"
            return said("reliable", name, n=count(finding.n))[0]
    left_out = run.left_out
    if case.theory is Theory.APPROVAL_RATES or left_out is None or not left_out.is_many or not left_out.differs:
        return ""
    return said("reliable", "left_out", n=count(left_out.n))[0]


def form(case: Judged) -> str:
    """A second estimate of the effect differs by more than its error."""
    findings = case.groups.run.findings
    depends = any(f.kind == "form" and (f.attribute, f.group) == case.row.key for f in findings)
    return said("reliable", "form")[0] if depends and case.theory is Theory.SIMILAR_APPLICANTS else ""


def support(case: Judged) -> str:
    """Too few comparable applicants of the reference group."""
    share = case.groups.run.support.get(case.row.key)
    if case.theory is not Theory.SIMILAR_APPLICANTS or share is None or share >= POOR_SUPPORT:
        return ""
    reference = case.groups.reference_label(case.row.protected_attribute)
    return said("reliable", "support", share=of_100(share), reference=reference)[0]


def sampled(case: Judged) -> str:
    """A part of the applicants was drawn."""
    sample = case.groups.run.sample
    if case.theory in (Theory.APPROVAL_RATES, Theory.SIMILAR_APPLICANTS) or sample is None:
        return ""
    return said("reliable", "asked", asked=count(sample[0]), of=count(sample[1]))[0]


def unknown_group(case: Judged) -> str:
    """Many applications name no group."""
    attribute = case.row.protected_attribute
    share = case.groups.run.unknown.get(attribute, 0.0)
    return said("reliable", "unknown", attribute=attribute, share=of_100(share))[0] if share > MANY_UNKNOWN else ""


def otherwise(case: Judged) -> str:
    """Nothing of these holds: what a missing factor could explain, which model, or how many people there are."""
    row, groups = case.row, case.groups
    times = groups.run.outlasts.get(row.key)
    if case.theory is Theory.SIMILAR_APPLICANTS and times is not None and (row.plain_low or 0.0) > 0:
        return said("reliable", "robust", times=times)[min(times, 2)]
    if case.theory is Theory.MODEL_REASONS and groups.run.fitted:
        return said("reliable", "fitted")[0]
    if row.n is None or case.theory in (Theory.PATH_TO_APPROVAL, Theory.MODEL_REASONS):
        return ""
    return said("reliable", "people", n=count(row.n), group=groups.label(row.key))[0]


RELIABILITY: tuple[Rule, ...] = (
    *(few_people, choices, lacking, graph, left_out, form),
    *(support, sampled, unknown_group, otherwise),
)
"""In the order in which one stands for a row."""
