"""Rules of the first page: headline, what to know, next steps, and what the page cannot show."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from schemas.questions import QUESTIONS
from schemas.sentences import parts_sentence
from schemas.terms import State, Theory
from tasks.reporting.first_page.answers import MOST_NAMED, effects_of
from tasks.reporting.first_page.facts import (
    Files,
    Finding,
    Groups,
    Key,
    Row,
    fitting,
    forecast,
    forms,
    of_100,
    percent,
    points_below,
    said,
    sentences,
    short,
    some_points,
    whole_percent,
)
from tasks.reporting.first_page.result import DIFFERS, Effect, Headline, Question
from tasks.reporting.material import capital, listed
from tasks.reporting.text import count

# --------------------------------------------------------------------------------------------------------------------
# The first sentence: the strongest reliable result, or what would have been seen.
#
# A group without enough people is never named.


MOST_WORDS = 25
MOST_WORDS_OF_WARNING = 12
"""Of a warning that no sentence names."""
MOST_WORDS_OF_WHO = 6
Words = dict[str, str]


def headline(groups: Groups, rows: Sequence[Question]) -> Headline:
    """The sentence of a run, of at most 25 words.

    Args:
        groups: the judged groups.
        rows: the questions as they are answered, so that the sentence says nothing else.
    """
    rule, words, keys = _strongest_result(groups, rows)
    about = groups.run.about
    year = f", {groups.run.year}" if groups.run.year else ""
    prefixes = [f"{short(about.who, most)}{year}" for most in (MOST_WORDS_OF_WHO, 4, 3)] if about.who else [""]
    candidates = [
        said("headline", "prefix", who=prefix, words=text)[0] if prefix else capital(text)
        for prefix in prefixes
        for text in said("headline", rule, **words)
    ]
    if len(keys) > 1:  # groups with long names by their number
        people = said("groups", "counted_borrowers" if rule == "price" else "counted", n=len(keys))[0]
        candidates += [capital(form) for form in said("headline", rule, **{**words, "people": people})]
    return Headline(rule, fitting(candidates, MOST_WORDS)[0], tuple(keys))


def _strongest_result(groups: Groups, rows: Sequence[Question]) -> tuple[str, Words, Sequence[Key]]:
    """The rule that makes the sentence, the words for its places, and the groups that it names."""
    run = groups.run
    if run.warnings:
        return "check_data", {"what": _warning_words(run.warnings)}, ()
    reliable = {row.theory: row for row in rows if row.state is not State.UNRELIABLE}
    less, more = ({theory: _differing(theory, groups, sign) for theory in reliable} for sign in (-1, 1))
    outside = [effect for effect in less.get(Theory.SIMILAR_APPLICANTS, []) if _state(effect, groups) is State.OUTSIDE]
    dear = [status.key for status in groups.outside_by_price() if groups.enough(status.key)]
    if dear:
        return "price", _borrowers(dear, groups), dear
    if similar := outside or less.get(Theory.SIMILAR_APPLICANTS, []):
        rule = "similar"
        if not outside:
            states = {_state(effect, groups) for effect in similar}
            rule = "similar_lacking" if not run.complete else "similar_within" if states == {State.WITHIN} else rule
        lacks = f" ({listed(run.lacks)})" if run.lacks else ""
        return rule, _people(similar, groups) | {"lacking": lacks}, [effect.key for effect in similar]
    if run.differing_parts and Theory.SIMILAR_APPLICANTS in reliable:
        part = run.differing_parts[0]
        key = (part.attribute, part.group)
        column, _, level = part.part.partition(": ")
        return "part", {"groups": groups.label(key), "part": f"{column} is {level}"}, [key]
    if less.get(Theory.APPROVAL_RATES):
        compared = Theory.SIMILAR_APPLICANTS in reliable and reliable[Theory.SIMILAR_APPLICANTS].answer
        rule = "rates" if compared else "rates_alone"
        return (
            rule,
            _people(less[Theory.APPROVAL_RATES], groups),
            [effect.key for effect in less[Theory.APPROVAL_RATES]],
        )
    for rule, theory, effects in (
        ("similar_more", Theory.SIMILAR_APPLICANTS, more),
        ("causal", Theory.CAUSAL_MODEL, less),
        ("rates_more", Theory.APPROVAL_RATES, more),
    ):
        if differing := effects.get(theory):
            return rule, _people(differing, groups), [effect.key for effect in differing]
    names = sentences()["elsewhere"]
    elsewhere = [
        names[row.theory]
        for row in rows
        if row.theory in names and row.theory in reliable and (row.state is State.OUTSIDE or row.answer == DIFFERS)
    ]
    if elsewhere:
        return "elsewhere", {"elsewhere": listed(elsewhere)}, ()
    if not any(groups.enough(key) for key in groups.order):
        return "too_few", {}, ()
    size = _smallest_seen(groups)
    return ("nothing", {"points": some_points(size)}, ()) if size is not None else ("nothing_no_size", {}, ())


def _differing(theory: Theory, groups: Groups, sign: int) -> list[Effect]:
    """Groups with enough people whose printed interval excludes no difference, on one side of it."""
    return [
        effect
        for effect in effects_of(theory, groups)
        if effect.excludes and groups.enough(effect.key) and (effect.value - effect.none) * sign > 0
    ]


def _state(effect: Effect, groups: Groups) -> State:
    return groups.standing(Theory.SIMILAR_APPLICANTS, effect.key).state


def _people(effects: Sequence[Effect], groups: Groups) -> Words:
    """Groups, and the reference group that all of them have; else the word for one."""
    keys = [effect.key for effect in effects]
    reference = groups.references(keys)[0]
    return {"people": groups.applicants(keys), "groups": groups.named(keys), "reference": reference}


def _borrowers(keys: Sequence[Key], groups: Groups) -> Words:
    """The same of groups whose loans have a price."""
    name = "counted_borrowers" if len(keys) > MOST_NAMED else "named_borrowers"
    people = said("groups", name, n=len(keys), names=groups.named(keys))[0]
    return {"people": people, "reference": groups.references(keys)[0]}


POWER = 1.43
"""Of half a 95 % interval: a difference so large makes the interval exclude none in four of five such audits."""


def _smallest_seen(groups: Groups) -> float | None:
    """Points above which a difference among similar applicants, or else in rates, is seen in each group."""
    keys = {key for key in groups.order if groups.enough(key)}
    for theory in (Theory.SIMILAR_APPLICANTS, Theory.APPROVAL_RATES):
        effects = [effect for effect in effects_of(theory, groups) if effect.key in keys]
        sizes = [POWER * (e.high - e.low) / 2 for e in effects if e.low is not None and e.high is not None]
        if sizes and len(sizes) == len(keys):
            return max(sizes)
    return None


def _warning_words(warnings: Sequence[str]) -> str:
    """The first warning in words, and the number of others; known ones first, in the order of the file."""
    words = sentences()["what"]
    names = [name for name in words if name != "more" and any(warning.startswith(name) for warning in warnings)]
    unknown = sorted({warning for warning in warnings if not warning.startswith(tuple(names))})
    first = words[names[0]] if names else short(unknown[0].rstrip("."), MOST_WORDS_OF_WARNING)
    others = len(names) + len(unknown) - 1
    return said("what", "more", first=first, others=others)[0] if others else str(first)


# --------------------------------------------------------------------------------------------------------------------
# What to know about the results: rules in order; the first three that apply are printed.
#
# A rule returns the forms of its line, the longest first, or nothing where it does not apply.


MOST_LINES = 3
MOST_COLUMNS = 3
"""That a line names."""
LEAST_SIZE = 0.1
"""Points below which no size is printed."""
LIMITED = (Theory.APPROVAL_RATES, Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL, Theory.PATH_TO_APPROVAL)
"""Theories that have a limit by default; a score of reasons has no external scale, and needs none."""
MEASURED = (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL, Theory.APPROVAL_RATES)
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
        row = self.groups.standing(Theory.SIMILAR_APPLICANTS, key).row
        return None if row is None or row.withheld else row

    def finding(self, kind: str) -> Finding | None:
        """The first finding of a kind, but for those of groups that are known to have too few people."""
        for finding in self.groups.run.findings:
            n = self.groups.people((finding.attribute, finding.group)) if finding.group else None
            if finding.kind == kind and (n is None or n >= self.groups.run.minimum_n):
                return finding
        return None

    def outside(self) -> Iterator[Key]:
        """Groups with an adjusted difference outside the limit, that of the figures first."""
        for key in self.ordered():
            if self.groups.standing(Theory.SIMILAR_APPLICANTS, key).state is State.OUTSIDE:
                yield key

    def outside_but_for_missing(self) -> Iterator[Key]:
        """Groups that would be outside if their interval were not widened for columns missing from the table."""
        for key in self.ordered():
            row = self.adjusted(key)
            if row is not None and row.outside_but_for_missing:
                yield key

    def open_rows(self) -> Iterator[Row]:
        """Inconclusive rows of groups with enough people, by theory, the group of the figures first."""
        for theory in MEASURED:
            for key in self.ordered():
                status = self.groups.standing(theory, key)
                if status.row is not None and not status.withheld and status.state is State.INCONCLUSIVE:
                    yield status.row

    def without_limit(self) -> bool:
        """Whether a theory that could have a limit was measured without one."""
        rows = [self.groups.run.theory(theory) for theory in LIMITED]
        return any(row is not None and row.state is State.NO_LIMIT for row in rows)


Rule = Callable[[View], tuple[str, ...]]


def remarks(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The name of each rule that is printed, with the forms of its line."""
    return first(RULES, view)


def first(rules: Sequence[tuple[str, Rule]], view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The first three rules that apply, in their order."""
    lines = ((name, rule(view)) for name, rule in rules)
    return tuple((name, tuple(capital(form) for form in texts)) for name, texts in lines if texts)[:MOST_LINES]


def _finding(kind: str) -> Rule:
    """The rule that prints the first finding of a kind; a part that is the result of its row is not printed twice."""

    def rule(view: View) -> tuple[str, ...]:
        first_finding = view.finding(kind)
        if first_finding is None or (kind == "part" and not _differing(Theory.SIMILAR_APPLICANTS, view.groups, -1)):
            return ()
        return (first_finding.sentence,)

    return rule


def _confounder(view: View) -> tuple[str, ...]:
    """Similar applicants differ: how strong a factor that the data lack would have to be."""
    run = view.groups.run
    for effect in _differing(Theory.SIMILAR_APPLICANTS, view.groups, -1):
        row = view.adjusted(effect.key)
        if row is None or row.robustness is None:
            continue
        words = {"share": percent(row.robustness), "attribute": short(effect.key[0], 3)}
        benchmark = run.strongest.get(effect.key)
        if benchmark is None:
            return tuple(form.format(**words) for form in forms("know", "confounder")[1:])
        words |= {"column": short(benchmark.column, 4)}
        words |= {"of_group": whole_percent(benchmark.of_group), "of_approval": whole_percent(benchmark.of_approval)}
        return said("know", "confounder", **words)
    return ()


def _no_credit_score(view: View) -> tuple[str, ...]:
    """No column is a credit history, the columns are not declared complete, and the adjusted gap is shown.

    A missing column can have shifted the gap either way: no bound is claimed.
    """
    run, row = view.groups.run, None if view.chosen is None else view.adjusted(view.chosen)
    if row is None or row.value is None or run.credit_history or run.complete:
        return ()
    return forms("know", "no_credit_score")


def _missing_columns(view: View) -> tuple[str, ...]:
    """The year of the data has not all columns that other years of the audit have."""
    run = view.groups.run
    if not run.lacking:
        return ()
    texts = said("know", "year_lacks", year=run.year, columns=listed(short(column, 4) for column in run.lacking))
    return texts if len(run.lacking) <= MOST_COLUMNS else texts[1:]


def _left_out(view: View) -> tuple[str, ...]:
    """More than 5 % of applications have no value in a column."""
    left_out = view.groups.run.left_out
    if left_out is None or not left_out.is_many:
        return ()
    if left_out.denied is None or left_out.denied_of_others is None:
        return said("know", "left_out", n=count(left_out.n), rate="", others="")[1:]
    rates = {"rate": of_100(left_out.denied), "others": of_100(left_out.denied_of_others)}
    return said("know", "left_out", n=count(left_out.n), **rates)


def _detectable(view: View) -> tuple[str, ...]:
    """A state is open: below which size a difference is missed in many such audits.

    The people are those of the row: an adjusted gap is of complete records. Not where the interval is widened for
    columns missing from the table: more people would not narrow that.
    """
    for row in view.open_rows():
        size = view.groups.detectable_points(row)
        if row.n is not None and size is not None and size >= LEAST_SIZE and not row.bias:
            words = {"n": count(row.n), "group": view.groups.label(row.key), "points": points_below(size)}
            return said("know", "detectable", what=forms("differences", row.theory)[0], **words)
    return ()


def _parts(view: View) -> tuple[str, ...]:
    """A group is within: what was looked for in its parts, and how much would have been seen there."""
    looked_at = view.groups.run.parts
    for key in view.ordered() if looked_at else ():
        row = view.adjusted(key)
        if row is None or row.state is not State.WITHIN or row.part_n is None or row.part_detectable is None:
            continue
        minimum_n, limit = looked_at or (0, 0.0)
        sentence = parts_sentence(view.groups.label(key), minimum_n, limit, row.part_n, row.part_detectable)
        return said("know", "parts", sentence=sentence)
    return ()


OF_FINDINGS = ("copies", "missing", "undecided", "part", "place", "through", "ratio", "bands", "no_noise")
"""Kinds of findings that have a line, the one that changes most first."""


def _apart(view: View) -> tuple[str, ...]:
    """Two questions point apart for one group: one is outside its limit, and another within."""
    for key in view.ordered():
        standings = [(theory, view.groups.standing(theory, key)) for theory in MEASURED]
        states = {standing.state: theory for theory, standing in reversed(standings) if not standing.withheld}
        if {State.OUTSIDE, State.WITHIN} <= set(states):
            names = {"outside": QUESTIONS[states[State.OUTSIDE]].short, "within": QUESTIONS[states[State.WITHIN]].short}
            return said("know", "apart", group=short(key[1], 3), **names)
    return ()


RULES: tuple[tuple[str, Rule], ...] = (
    *((kind, _finding(kind)) for kind in OF_FINDINGS),
    ("apart", _apart),
    ("confounder", _confounder),
    ("no_credit_score", _no_credit_score),
    ("year_lacks", _missing_columns),
    ("left_out", _left_out),
    ("detectable", _detectable),
    ("parts", _parts),
    ("missing_limit", lambda view: forms("know", "missing_limit") if view.without_limit() else ()),
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
MOST_WORDS_OF_LOST = 24
"""Of the line on groups that lost rows."""
MOST_TIMES = 10
"""Times this year's number beyond which nobody can wait for more."""


def next_steps(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The name of each step that is printed, with the forms of its line; never none."""
    return first(STEPS, view) or first((("outside", _outside),), view) or (("done", said("next", "done")),)


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


OF_FILES = ("missing", "undecided", "part", "place", "through", "ratio")
"""Kinds of findings whose step needs the lender's own files or rules."""


def _cause(kind: str) -> Rule:
    """The step of the first finding of a kind."""

    def rule(view: View) -> tuple[str, ...]:
        finding = view.finding(kind)
        if finding is None or (view.groups.run.public and kind in OF_FILES):
            return ()
        return (finding.next,) if finding.next else ()

    return rule


def _add_columns(view: View) -> tuple[str, ...]:
    """Columns that the data are known to lack, wherever similar applicants are not shown to be within the limit."""
    run, row = view.groups.run, view.groups.run.theory(Theory.SIMILAR_APPLICANTS)
    if row is None or row.state in (State.WITHIN, State.NOT_RUN) or not run.lacks or run.complete:
        return ()
    return said("next", "add_columns", columns=listed(run.lacks))


def _by_lender(view: View) -> tuple[str, ...]:
    lenders = view.groups.run.lenders
    if lenders is None:
        return forms("perhaps", "by_lender")
    return forms("next", "by_lender") if lenders > 1 else ()


def _read_files(view: View) -> tuple[str, ...]:
    """Similar applicants are outside the limit, and the data are the lender's own."""
    group_files = files_of(view)
    if group_files is None or view.groups.run.public:
        return ()
    key, files = group_files
    words = _named(view, key)
    if files.n is None:
        return said("next", "read_files", n="", **words)[1:]
    return said("next", "read_files", n=count(files.n), **words)


def _ask_reasons(view: View) -> tuple[str, ...]:
    return forms("next", "ask_reasons") if not view.groups.run.public and files_of(view) else ()


def _ask_prices(view: View) -> tuple[str, ...]:
    """Prices of a group are outside their limit, and the data are the lender's own."""
    dear = [status.key for status in view.groups.dear()]
    if not dear or view.groups.run.public:
        return ()
    return said("next", "ask_prices", groups=view.groups.named(dear))


def _causal_order(view: View) -> tuple[str, ...]:
    """The data contradict the causal model."""
    row = view.groups.run.theory(Theory.CAUSAL_MODEL)
    return forms("next", "causal_order") if row is not None and row.state is State.UNRELIABLE else ()


def _outside(view: View) -> tuple[str, ...]:
    """A question other than that of similar applicants is outside its limit, and no other step is there."""
    for theory in (Theory.CAUSAL_MODEL, Theory.PATH_TO_APPROVAL, Theory.APPROVAL_RATES):
        row = view.groups.run.theory(theory)
        if row is not None and row.state is State.OUTSIDE:
            return said("next", "outside", name=QUESTIONS[theory].short.casefold())
    return ()


def _wait(view: View) -> tuple[str, ...]:
    """A row is open by the number of people alone: how many would settle it if they come in a few years."""
    is_old = (view.groups.run.years_old or 0) > MOST_TIMES  # nobody waits for applicants of that time
    for row in view.open_rows():
        now = None if row.n is None or row.n_reference is None else row.n + row.n_reference
        if row.bias or any((finding.attribute, finding.group) == row.key for finding in view.groups.run.findings):
            continue
        if row.needed is not None and now and row.needed > now:
            if row.needed >= MOST_TIMES * now or is_old:
                return said("next", "wider")
            whose = said("whose", "both", **_named(view, row.key))[0]
            years = _years(row.needed / now)
            return said("next", "wait", needed=forecast(row.needed), whose=whose, years=years)
    least = view.groups.run.minimum_n
    few = {key: n for key in view.groups.order if (n := view.groups.people(key)) and n < least}
    if not few:
        return ()
    key = next(iter(few))  # the largest of the first attribute
    if least >= MOST_TIMES * few[key] or is_old:
        return said("next", "wider")
    whose = said("whose", "group", **_named(view, key))[0]
    return said("next", "wait", needed=count(least), whose=whose, years=_years(least / few[key]))


def _named(view: View, key: Key) -> dict[str, str]:
    return {"group": view.groups.label(key), "reference": view.groups.reference_label(key[0])}


def _years(years: float) -> str:
    """Years at this year's number."""
    n = math.ceil(years - 1e-9)
    singular, several = forms("years", "years")
    return (singular if n == 1 else several).format(n=n)


STEPS: tuple[tuple[str, Rule], ...] = (
    ("fix_data", lambda view: forms("next", "fix_data") if view.groups.run.warnings else ()),
    *((kind, _cause(kind)) for kind in ("copies", "missing", "undecided", "part", "place", "through", "ratio")),
    # A public file names no applicant to read a file of.
    ("read_files", _read_files),
    ("ask_reasons", _ask_reasons),
    ("ask_prices", _ask_prices),
    ("bands", _cause("bands")),
    ("add_columns", _add_columns),
    ("by_lender", _by_lender),
    ("causal_order", _causal_order),
    ("wait", _wait),
    ("set_limits", lambda view: forms("next", "set_limits") if view.without_limit() else ()),
)
