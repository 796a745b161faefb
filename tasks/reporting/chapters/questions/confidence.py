"""How sure an answer is: rules, each of which gives its sentences or none. Which apply is declared a question."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from schemas.terms import State
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import short
from tasks.reporting.chapters.decide.numbers import forecast, percent, some_points, whole_percent
from tasks.reporting.chapters.questions.declaration import Question, declaration
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.material import capital, listed
from tasks.reporting.numbers import p_text

MOST_NAMED = 6
"""Groups whose numbers stand in a sentence; of more, the range does."""
MOST_EDGES = 12
Rule = Callable[[Matter, Question], Iterator[str]]


def sentences(matter: Matter, question: Question) -> tuple[str, ...]:
    """All that apply, and last what the answer hangs on."""
    found = (each for name in question.sure for each in RULES[name](matter, question))
    return (*found, question.hangs)


def _said(name: str, **words: object) -> str:
    return declaration().sure[name].format(**words)


def _rows(matter: Matter, question: Question) -> list[Row]:
    """The deciding rows whose numbers may be printed."""
    rows = (matter.primary(question.theory, key) for key in matter.shown(question))
    return [row for row in rows if row is not None and not row.withheld]


def named_sizes(matter: Matter, sizes: Mapping[Key, str], order: Sequence[float]) -> str:
    """A number a group; the range of them where there are many."""
    if len(sizes) <= MOST_NAMED:
        return "; ".join(f"{matter.groups.label(key)} {text}" for key, text in sizes.items())
    texts = [text for _, text in sorted(zip(order, sizes.values(), strict=True))]
    name = "same" if texts[0] == texts[-1] else "range"
    return _said(name, low=texts[0], high=texts[-1], n=len(texts))


def _interval(matter: Matter, question: Question) -> Iterator[str]:
    rows = _rows(matter, question)
    judged = [row for row in rows if row.low is not None and row.limit is not None]
    if judged:
        yield _said("interval_verdict" if len(judged) > 1 else "interval_one", n=len(judged))
    elif any(row.value is not None for row in rows):
        yield _said("interval_plain" if any(row.ends for row in rows) else "interval_none")


def _widened(matter: Matter, question: Question) -> Iterator[str]:
    if any(row.bias for row in _rows(matter, question)):
        unseen = matter.material.settings.verdicts.unseen
        yield _said("widened", denial=percent(unseen.denial), group=percent(unseen.group))


def _robustness(matter: Matter, question: Question) -> Iterator[str]:
    known = {row.key: row.robustness for row in _rows(matter, question) if row.robustness is not None}
    if known:
        sizes = {key: f"{percent(value)} %" for key, value in known.items()}
        yield _said("robustness", sizes=named_sizes(matter, sizes, list(known.values())))


def _strongest(matter: Matter, _question: Question) -> Iterator[str]:
    key = matter.decision.figures.key
    known = None if key is None else matter.groups.run.strongest.get(key)
    if key is not None and known is not None:
        shares = {"of_approval": whole_percent(known.of_approval), "of_group": whole_percent(known.of_group)}
        column = short(known.column, 4)
        yield _said("strongest", column=capital(column), group=matter.groups.label(key), **shares)


def _detectable(matter: Matter, question: Question) -> Iterator[str]:
    found = {row.key: matter.groups.detectable_points(row) for row in _rows(matter, question)}
    known = {key: size for key, size in found.items() if size is not None and size > 0}
    if known:
        sizes = {key: some_points(size).split()[0] for key, size in known.items()}
        yield _said("detectable", sizes=named_sizes(matter, sizes, list(known.values())))


def _needed(matter: Matter, question: Question) -> Iterator[str]:
    open_rows = [row for row in _rows(matter, question) if row.state is State.INSUFFICIENT_EVIDENCE]
    known = {row.key: row.needed for row in open_rows if row.needed is not None}
    if known:
        sizes = {key: forecast(n) for key, n in known.items()}
        yield _said("needed", sizes=named_sizes(matter, sizes, list(known.values())))


def _few(matter: Matter, question: Question) -> Iterator[str]:
    few = [key for key in matter.shown(question) if not matter.groups.enough(key)]
    if few:
        names = [matter.groups.label(key) for key in few[:MOST_NAMED]]
        more = f"; {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
        hides = any(matter.groups.people(key) is None for key in few)  # withheld for others, it may have many
        yield _said("few_withheld" if hides else "few", n=matter.groups.run.minimum_n, groups=listed(names) + more)


def _draws(matter: Matter, question: Question) -> Iterator[str]:
    series = (each for picture in question.pictures for each in picture.series)
    found = (matter.measure(each, key) for each in series for key in matter.shown(question))
    if any(m is not None and m.of_draws and m.low is not None for m in found):
        yield _said("draws")


def _graph(matter: Matter, _question: Question) -> Iterator[str]:
    edges = matter.material.settings.causal_graph.edges
    if edges:
        of: dict[str, list[str]] = {}
        for source, target in edges:
            of.setdefault(matter.material.label(source), []).append(matter.material.label(target))
        told = "; ".join(f"{source} on {listed(targets)}" for source, targets in of.items())
        yield _said("edges" if len(edges) <= MOST_EDGES else "edges_more", n=len(edges), edges=told)
    tests = matter.groups.run.graph_tests
    yield _said("checked", n=tests.n, against=tests.against) if tests else _said("unchecked")


def _lifted(matter: Matter, question: Question) -> Iterator[str]:
    if question.lifted is None:
        return
    found = {key: list(matter.every(question.lifted, key)) for key in matter.shown(question)}
    shares = {key: [100 * m.value for m in each if m.value is not None] for key, each in found.items()}
    known = {key: each for key, each in shares.items() if each}
    if known:
        sizes = {key: _span(each) for key, each in known.items()}
        named = dict(list(sizes.items())[:MOST_NAMED])
        yield _said("lifted", sizes=named_sizes(matter, named, [min(each) for each in known.values()]))


def _span(shares: Sequence[float]) -> str:
    """The least and the largest of shares of 100; one number where they are printed alike."""
    return " to ".join(dict.fromkeys(f"{end(shares):.0f}" for end in (min, max)))


def _permuted(matter: Matter, question: Question) -> Iterator[str]:
    if question.permuted is None:
        return
    found = {key: matter.measure(question.permuted, key) for key in matter.shown(question)}
    known = {key: m.value for key, m in found.items() if m is not None and m.value is not None}
    if known:
        sizes = {key: p_text(p) for key, p in known.items()}
        yield _said("permuted", sizes=named_sizes(matter, sizes, list(known.values())))


RULES: Mapping[str, Rule] = {
    "interval": _interval,
    "widened": _widened,
    "robustness": _robustness,
    "strongest": _strongest,
    "detectable": _detectable,
    "needed": _needed,
    "few": _few,
    "draws": _draws,
    "graph": _graph,
    "lifted": _lifted,
    "permuted": _permuted,
}
