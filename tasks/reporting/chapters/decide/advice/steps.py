"""What to do next, and what the page cannot tell: rules in their order, the first three that apply.

Steps on the data come first; files of persons are read before anything is repeated, unless the file is a public one
that names neither lender nor score.
"""

import math

from schemas.terms import State, Theory
from tasks.reporting.chapters.decide.advice.changes import MOST_COLUMNS, Rule, View, first
from tasks.reporting.chapters.decide.facts import Files, Key, Lost
from tasks.reporting.chapters.decide.groups import short
from tasks.reporting.chapters.decide.numbers import forecast
from tasks.reporting.chapters.decide.sentences import fitting, forms, said
from tasks.reporting.material import listed
from tasks.reporting.numbers import count

OLD = 5
"""Years after which data say little of decisions made today: a choice of this project."""
MOST_WORDS_OF_LOST = 34
"""Of the line on groups that lost rows."""
LONGEST = 20
"""Years beyond which a wait is not told more closely."""


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
    of_asked = () if run.asked is None else (("asked", _of_asked(*run.asked)),)
    plain = [(n, forms(part if n == second else "cannot", n)) for n in ("why_lawful", second, "single_person")]
    lost = (("lost", _of_lost(view)),) if run.lost else ()
    return (*plain[:2], *of_asked, *lost, *plain[2:])


def _of_lost(view: View) -> tuple[str, ...]:
    """Groups of which half or more lack a feature: up to two by name, with what they lack where there is room."""
    lost = view.groups.run.lost
    candidates: list[str] = []
    for named, columns in ((2, MOST_COLUMNS), (1, MOST_COLUMNS), (1, 0)):
        parts = [_group_lost(view, each, columns) for each in lost[:named]]
        if more := len(lost) - len(parts):
            one, several = forms("lost", "more")
            parts.append((one if more == 1 else several).format(n=more))
        candidates += said("cannot", "lost", groups="; ".join(parts))
    return fitting(candidates, MOST_WORDS_OF_LOST)


def _group_lost(view: View, each: Lost, columns: int) -> str:
    words = {"n": count(each.n), "used": count(each.used), "group": view.groups.label((each.attribute, each.name))}
    if not columns or not each.columns:
        return said("lost", "group", **words)[0]
    lacks = listed(short(name, 3) for name in each.columns[:columns])
    return said("lost", "group_lacks", columns=lacks, **words)[0]


def _of_asked(asked: int, of: int) -> tuple[str, ...]:
    return said("cannot", "asked", asked=count(asked), of=count(of))


def files_of(view: View) -> tuple[Key, Files] | None:
    """The group whose files are to be read, and which; None where none is outside."""
    key = next(view.outside(), None)
    return None if key is None else (key, view.groups.run.files.get(key, Files()))


def _fix_data(view: View) -> tuple[str, ...]:
    return forms("next", "fix_data") if view.groups.run.warnings else ()


def _add_columns(view: View) -> tuple[str, ...]:
    """Public data: the lender's files know more, wherever similar records are not shown to be inside."""
    whole = view.groups.run.theory(Theory.DIRECT)
    measured = whole is not None and whole.state in (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.NO_LIMIT)
    return forms("next", "add_columns") if view.groups.run.public and measured else ()


def _by_lender(view: View) -> tuple[str, ...]:
    lenders = view.groups.run.lenders
    if lenders is None:
        return forms("perhaps", "by_lender")
    return forms("next", "by_lender") if lenders > 1 else ()


def _read_later(view: View) -> tuple[str, ...]:
    """A public file names nobody whose file could be read: that comes after the lender's own data."""
    return forms("next", "read_later") if view.groups.run.public and files_of(view) else ()


def _read_files(view: View) -> tuple[str, ...]:
    """Similar records are outside, and the data are the lender's own."""
    found = files_of(view)
    if found is None or view.groups.run.public:
        return ()
    key, files = found
    words = _named(view, key)
    if files.n is None:
        return tuple(form.format(**words) for form in forms("next", "read_files")[1:])
    return said("next", "read_files", n=count(files.n), **words)


def _ask_reasons(view: View) -> tuple[str, ...]:
    return forms("next", "ask_reasons") if files_of(view) and not view.groups.run.public else ()


def _repeat(view: View) -> tuple[str, ...]:
    return forms("next", "repeat") if files_of(view) and not view.groups.run.public else ()


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


def _years(needed: float) -> str:
    """Years at this year's number."""
    n = math.ceil(needed - 1e-9)
    if n > LONGEST:
        return said("years", "many", n=LONGEST)[0]
    one, several = forms("years", "years")
    return (one if n == 1 else several).format(n=n)


def _set_limits(view: View) -> tuple[str, ...]:
    return forms("next", "set_limits") if view.without_limit() else ()


STEPS: tuple[tuple[str, Rule], ...] = (
    ("fix_data", _fix_data),
    ("add_columns", _add_columns),
    ("by_lender", _by_lender),
    ("read_later", _read_later),
    ("read_files", _read_files),
    ("ask_reasons", _ask_reasons),
    ("repeat", _repeat),
    ("wait", _wait),
    ("set_limits", _set_limits),
)
