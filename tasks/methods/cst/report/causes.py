"""What CST assumes to cause what: the causal graph as a figure and in sentences, and what the data say against it.

A reader has to be able to disagree with every line of it. So each effect has a sentence of its own, what is assumed of
every column is said once, and a test that the data fail stands before everything else. Here belong assumptions and
their checks; what they come to for a group is in ``counterfactuals``.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import networkx as nx

from schemas.audit.causal import CausalGraph
from schemas.audit.column import ColumnSpec
from tasks.counterfactuals.algorithm.scm.mechanisms import AUTO
from tasks.methods.cst.report.charts import causal_chart
from tasks.methods.cst.report.lookups import COUNTERPARTS
from tasks.methods.cst.settings import CstSettings
from tasks.reporting.chapters.waterfall import count_cell
from tasks.reporting.comparison import capital
from tasks.reporting.lookups import plain_words, words_for
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import number_cell, p_cell, significant
from tasks.reporting.section import Cell, Figure, Notice, Section, TableView

Check = Mapping[str, Any]
"""A row of the table of causal checks."""
FAILS = 0.05
"""A test with q below this speaks against the causal model."""

_NAMED = 6
"""Failed tests that are told one by one; the others stand in the table."""

_FORMS = {
    "linear": "each cause moves it by a constant amount, and what the causes do not explain is kept as it is",
    "forest": "a random forest expects it of its causes, and what that does not explain is kept as it is",
    "boosting": "boosted trees expect it of their causes, and what they do not explain is kept as it is",
    "count": "it is a count whose mean depends on its causes, and an applicant keeps its rank among those alike",
    "ordinal": "its categories have an order, and an applicant keeps its rank among those alike",
    "nominal": "its categories have no order, and an applicant keeps its own leaning to each (Gumbel-max)",
}
_FIT = "held_out_fit"
_CHECKS = {
    "noise_location": "level of the noise and a cause",
    "noise_spread": "spread of the noise and a cause",
    "independence": "columns that the graph keeps apart",
}
_AGAINST = {
    "noise_location": "{node}: what its causes do not explain is higher or lower as {other} differs",
    "noise_spread": "{node}: what its causes do not explain varies more or less as {other} differs",
    "independence": "{node} and {other} go together{given}, and the graph says that they do not",
}
"""What a failed test says, with the columns by their labels."""
_MEANING = {
    "noise_location": "Higher or lower: the mechanism misses part of the effect, or the two have a common cause.",
    "noise_spread": "More or less spread: the noise is not merely added; imagined values may be too near or too far.",
    "independence": "Together: an arrow or a common cause may be missing.",
}


def section(material: Material) -> Section:
    """The causal assumptions, first what the data contradict."""
    title, name = "What is assumed to cause what", "cst-causes"
    asked = material.settings.methods.of(CstSettings)
    instead = COUNTERPARTS.get(asked.generator if asked else "")
    if instead:
        words = (f"No causal graph is used here. The imagined applicant is {instead}.",)
        return Section("Who stands for a complainant in the reference group", name, words)
    assumed = _graph(material)
    if not assumed.edges:
        words = (
            "The audit spec has no causal graph, so that nobody could be imagined in another group: this chapter holds "
            "situation testing (ST) only. It compares complainants as they are, and takes every difference that "
            "membership itself has brought about as given.",
        )
        return Section(title, name, words)
    return Section(
        title,
        name,
        _words(material),
        points=(*_sentences(material, assumed), *_ALWAYS),
        notices=tuple(_failed(material)),
        figures=(_figure(material, assumed),),
        tables=tuple(t for t in (_fits(material), _tests(material)) if t.rows),
    )


_ALWAYS = (
    "Nothing that is not in the graph is a cause of two of its columns, or of a protected attribute and a column.",
    "A column that no arrow from a protected attribute leads to, directly or through others, stays as it is.",
    "The mechanisms are the same for everybody, and are fitted to the applications of all groups.",
)


def _words(material: Material) -> tuple[str, ...]:
    by = listed(f"{p.name} (reference: {p.reference})" for p in material.settings.protected)
    _, tested = failed_and_tested(material)
    checked = (
        "None of the checks below shows that the graph is right: they can only speak against it, and a common cause "
        "that nobody recorded leaves no trace in them."
        if tested
        else "The causal model was not checked against the data in this run; nothing here shows that it is right."
    )
    return (
        checked,
        "Every complainant is imagined as a member of the reference group: membership is set, what the causes of a "
        f"column do not explain is kept, and what follows from membership is computed anew. Attributes: {by}. The "
        "results hold under these assumptions, and only under them:",
    )


def _graph(material: Material) -> CausalGraph:
    """The graph of the audit spec without the decision, which is never imagined through the graph."""
    s = material.settings
    return s.causal_graph.without_node(s.decision.column)


def _sentences(material: Material, assumed: CausalGraph) -> Iterator[str]:
    """One for each effect, causes first, with its mechanism and bounds."""
    for node in nx.lexicographical_topological_sort(assumed.directed):
        causes = assumed.parents(node)
        if causes:
            said = f"{words_for(material, node)} comes about from {_only([words_for(material, c) for c in causes])}: "
            yield capital(said) + _mechanism(assumed, node, material.settings.columns[node])


def _only(causes: list[str]) -> str:
    return f"{causes[0]} alone" if len(causes) == 1 else f"{listed(causes)}, and nothing else that the audit sees"


def _mechanism(assumed: CausalGraph, node: str, column: ColumnSpec) -> str:
    m = assumed.mechanisms.get(node)
    form = AUTO[column.type] if m is None or m.kind == "auto" else m.kind
    low, high = m.bounds if m else (None, None)
    ends = [f"not {side} {end:g}" for side, end in (("below", low), ("above", high)) if end is not None]
    return _FORMS[form] + (f"; imagined values are {' and '.join(ends)}" if ends else "") + "."


def _figure(material: Material, assumed: CausalGraph) -> Figure:
    words = {node: plain_words(material, node) for node in assumed.directed}
    alike = Counter(words.values())  # two columns of one label would else become one
    edges = nx.relabel_nodes(assumed.directed, {n: said if alike[said] == 1 else n for n, said in words.items()})
    attributes = frozenset(p.name for p in material.settings.protected if p.name in edges)
    label = "Causal graph. " + "; ".join(f"{cause} causes {effect}" for cause, effect in edges.edges)
    caption = (
        "Assumed by whoever wrote the audit spec, not found in the data. An arrow leads from a cause to its direct "
        "effect; an arrow that is missing claims that there is no direct effect."
    )
    made = causal_chart.graph("The causal graph", label, edges, attributes)
    kinds = {row["kind"] for row in made.spec["datasets"]["rows"] if row["part"] == "box"}
    legend = tuple(swatch for kind, swatch in causal_chart.KINDS.items() if kind in kinds)
    return Figure("The causal graph", (made,), caption, legend)


def failed_and_tested(material: Material) -> tuple[int, int]:
    """How many tests speak against the causal model, and how many there are."""
    return len(_contradicting(material)), sum(check["q"] is not None for check in material.causal_checks)


def _contradicting(material: Material) -> list[Check]:
    """The tests that speak against the causal model, the worst first."""
    failed = (check for check in material.causal_checks if check["q"] is not None and check["q"] < FAILS)
    return sorted(failed, key=lambda check: float(check["q"]))


def _failed(material: Material) -> Iterator[Notice]:
    failed, (n, tested) = _contradicting(material), failed_and_tested(material)
    if failed:
        named = failed[:_NAMED]
        kinds = dict.fromkeys(check["check"] for check in named)
        rest = [f"The other {n - _NAMED} stand in the table below."] * (n > _NAMED)
        said = " ".join([*(_MEANING[kind] for kind in kinds), *rest])
        points = tuple(f"{_against(material, check)}." for check in named)
        yield Notice(f"The data speak against the causal model in {n} of {tested} tests", said, points)


def _against(material: Material, check: Check) -> str:
    given = [plain_words(material, name) for name in _given(check)]
    named = {side: plain_words(material, check[side]) for side in ("node", "other")}
    return capital(_AGAINST[check["check"]].format(**named, given=f", given {listed(given)}" if given else ""))


def _fits(material: Material) -> TableView:
    """How well each mechanism predicts rows that it was not fitted to."""
    columns: dict[str, Callable[[Check], Cell]] = {
        "Column": lambda check: Cell(words_for(material, check["node"])),
        "Given": lambda check: Cell(listed(words_for(material, name) for name in _given(check))),
        "Fit": _statistic,
        "Rows": lambda check: count_cell(check["n"], material.policy),
    }
    note = (
        "1 would be perfect, 0 is no better than the mean or the plain shares. A low fit is no fault by itself: what "
        "the causes do not explain is kept as the applicant's own."
    )
    fits = [check for check in material.causal_checks if check["check"] == _FIT]
    return TableView.of("Fit of the mechanisms, on rows that they were not fitted to", fits, columns, note)


def _tests(material: Material) -> TableView:
    """What would contradict the graph or a mechanism, the worst first."""
    tests = [check for check in material.causal_checks if check["check"] != _FIT]
    tests.sort(key=lambda check: 2.0 if check["q"] is None else float(check["q"]))
    columns: dict[str, Callable[[Check], Cell]] = {
        "Looked at": lambda check: Cell(_CHECKS[check["check"]]),
        "Column": lambda check: Cell(words_for(material, check["node"])),
        "Other column": lambda check: Cell(words_for(material, check["other"]) if check["other"] else "–"),
        "Given": lambda check: Cell(
            listed(words_for(material, name) for name in _given(check)) if _given(check) else "–"
        ),
        "Statistic": _statistic,
        "p": lambda check: p_cell(check["p"]),
        "q": lambda check: p_cell(check["q"]),
        "Rows": lambda check: count_cell(check["n"], material.policy),
        "Against the model": lambda check: Cell("yes" if check["q"] is not None and check["q"] < FAILS else "not seen"),
    }
    note = (
        f"q below {FAILS:g} speaks against the causal model; q takes the number of tests of its kind into account. A "
        "test that found nothing may have had too few rows to find it. None of this shows that the graph is right."
    )
    title = "Tests of the causal model against the data"
    return TableView.of(title, tests, columns, note, folded=len(tests) > 2 * _NAMED)


def _given(check: Check) -> list[str]:
    return list(json.loads(check["given"] or "[]"))


def _statistic(check: Check) -> Cell:
    return Cell("–", "none") if check["statistic"] is None else number_cell(significant(check["statistic"]))
