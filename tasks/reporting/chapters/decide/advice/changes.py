"""What would change the findings: rules in their order, of which the first three that apply are printed.

A rule returns the forms of its line, the longest first, or nothing where it does not apply.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from schemas.terms import State, Theory
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import Groups, short
from tasks.reporting.chapters.decide.numbers import of_100, percent, points_below, whole_percent
from tasks.reporting.chapters.decide.sentences import forms, said
from tasks.reporting.material import capital, listed
from tasks.reporting.numbers import count

MOST_LINES = 3
MOST_COLUMNS = 3
"""That a line names."""
LEAST_SIZE = 0.1
"""Points below which no size is printed."""
LIMITED = (Theory.OUTCOME, Theory.DIRECT, Theory.TOTAL, Theory.RECOURSE)
"""Theories that have a limit by default; a score of reasons has no external scale, and none is asked for."""
MEASURED = (Theory.DIRECT, Theory.TOTAL, Theory.OUTCOME)
"""Theories whose smallest difference is known in points; those whose limit is one of points first."""


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
        """The adjusted row of a group whose numbers may be printed."""
        row = self.groups.standing(Theory.DIRECT, key).row
        return None if row is None or row.withheld else row

    def outside(self) -> Iterator[Key]:
        """Groups whose adjusted difference is outside, that of the figures first."""
        yield from (k for k in self.ordered() if self.groups.standing(Theory.DIRECT, k).state is State.BREACH)

    def outside_but_for_missing(self) -> Iterator[Key]:
        """Groups of which it would be, were its interval not widened for columns that the table lacks."""
        for key in self.ordered():
            row = self.adjusted(key)
            if row is not None and row.outside_but_for_missing:
                yield key

    def open_rows(self) -> Iterator[Row]:
        """Rows with too little to say of groups with enough people, by theory, the group of the figures first."""
        for theory in MEASURED:
            for key in self.ordered():
                standing = self.groups.standing(theory, key)
                if standing.row is not None and not standing.withheld and standing.state is State.INSUFFICIENT_EVIDENCE:
                    yield standing.row

    def without_limit(self) -> bool:
        """Whether a theory that could have a limit was measured without one."""
        found = [self.groups.run.theory(theory) for theory in LIMITED]
        return any(row is not None and row.state is State.NO_LIMIT for row in found)


Rule = Callable[[View], tuple[str, ...]]


def changes(view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The name of each rule that is printed, with the forms of its line."""
    return first(RULES, view)


def first(rules: Sequence[tuple[str, Rule]], view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The first three rules that apply, in their order."""
    told = ((name, rule(view)) for name, rule in rules)
    return tuple((name, tuple(capital(form) for form in found)) for name, found in told if found)[:MOST_LINES]


def _confounder(view: View) -> tuple[str, ...]:
    """Adjusted is outside, or would be but for the widening: how strong an unseen column would have to be."""
    for key in (*view.outside(), *view.outside_but_for_missing()):
        row = view.adjusted(key)
        if row is None or row.robustness is None:
            continue
        words = {"share": percent(row.robustness), "attribute": short(key[0], 3)}
        known = view.groups.run.strongest.get(key)
        if known is None:
            return tuple(form.format(**words) for form in forms("change", "confounder")[1:])
        words |= {"column": capital(short(known.column, 4))}
        words |= {"of_group": whole_percent(known.of_group), "of_approval": whole_percent(known.of_approval)}
        return said("change", "confounder", **words)
    return ()


def _no_credit_score(view: View) -> tuple[str, ...]:
    """No column is a credit history, nobody said that the columns are all, and the adjusted gap is shown.

    A column that is not there can have moved the gap either way: no bound is claimed.
    """
    run, row = view.groups.run, None if view.chosen is None else view.adjusted(view.chosen)
    shown = row is not None and row.value is not None
    return forms("change", "no_credit_score") if shown and not run.credit_history and not run.complete else ()


def _year_lacks(view: View) -> tuple[str, ...]:
    """The year of the data has not all columns that other years of the audit have."""
    run = view.groups.run
    if not run.lacking:
        return ()
    found = said("change", "year_lacks", year=run.year, columns=listed(short(each, 4) for each in run.lacking))
    return found if len(run.lacking) <= MOST_COLUMNS else found[1:]


def _left_out(view: View) -> tuple[str, ...]:
    """More than 5 % of applications lack a column."""
    left = view.groups.run.left_out
    if left is None or not left.is_told:
        return ()
    if left.denied is None or left.denied_of_others is None:
        return tuple(form.format(n=count(left.n)) for form in forms("change", "left_out")[1:])
    rates = {"denied": of_100(left.denied), "others": of_100(left.denied_of_others)}
    return said("change", "left_out", n=count(left.n), **rates)


def _detectable(view: View) -> tuple[str, ...]:
    """A state is too little to say: below which size a difference is shown to be outside in few such audits.

    The people are those of the row: an adjusted gap is of complete records. Not where the interval is widened for
    columns that the table lacks: more people would not narrow that.
    """
    for row in view.open_rows():
        size = view.groups.detectable_points(row)
        if row.n is not None and size is not None and size >= LEAST_SIZE and not row.bias:
            words = {"n": count(row.n), "group": view.groups.label(row.key), "points": points_below(size)}
            return said("change", "detectable", what=forms("differences", row.theory)[0], **words)
    return ()


def _missing_limit(view: View) -> tuple[str, ...]:
    """A theory was measured, and nobody said how much is too much."""
    return forms("change", "missing_limit") if view.without_limit() else ()


RULES: tuple[tuple[str, Rule], ...] = (
    ("confounder", _confounder),
    ("no_credit_score", _no_credit_score),
    ("year_lacks", _year_lacks),
    ("left_out", _left_out),
    ("detectable", _detectable),
    ("missing_limit", _missing_limit),
)
