"""Pages of questions: table by group, and how sure the answer is."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from schemas.questions import QUESTIONS, STATES
from schemas.terms import State, Theory
from tasks.reporting.charts.values import WITHHELD, Mark, exact, shown, value_text
from tasks.reporting.declared import declared
from tasks.reporting.first_page.answers import price_limit
from tasks.reporting.first_page.facts import (
    WORST,
    Groups,
    Key,
    Row,
    forecast,
    percent,
    short,
    some_points,
    whole_percent,
)
from tasks.reporting.first_page.page import run_of
from tasks.reporting.first_page.result import Decision
from tasks.reporting.material import Material, capital, listed
from tasks.reporting.question_pages.charts import apart, figures
from tasks.reporting.question_pages.data import (
    MOST_WORDS,
    ROOMS,
    SCALES,
    Column,
    Matter,
    Question,
    Room,
    adjusted_p_cell,
    count_cell,
    count_of,
    declaration,
    in_words,
    interval_cell,
    judged_mark,
    largest,
    limit_of,
    measure_mark,
    state_cell,
    value_cell,
    words,
)
from tasks.reporting.text import Cell, Link, Notice, Section, TableView, p_text

# --------------------------------------------------------------------------------------------------------------------
# The table of a page: every group with number, value, interval, state and adjusted p.


DASH = Cell("–", "none")
Make = Callable[[Key], Cell]


def by_group(matter: Matter, question: Question, room: Room) -> TableView | None:
    """Groups in the order of all pages, reference groups before theirs; None without groups.

    Of more rows than there is room for those with the largest values are shown, and those outside a limit before them.
    A column in which nothing stands is left out.
    """
    keys = matter.shown(question)
    if not keys:
        return None
    marks = {key: judged_mark(matter, question, key) for key in keys}
    columns = [column for column in question.columns if matter.has(column.series)]
    references = {key[0] for key in keys} if any(column.references for column in columns) else set()
    largest_keys = largest(marks.items(), room.table - len(references), SCALES[question.scale])
    row_keys = matter.with_references(largest_keys) if references else largest_keys
    total = len(keys) + len(references) if len(largest_keys) < len(keys) else 0
    words, makers = declaration().table, _cells(matter, question, marks, columns)
    cells = {header: [make(key) for key in row_keys] for header, make in makers.items()}
    cells = {header: column for header, column in cells.items() if any(cell.text != DASH.text for cell in column)}
    besides = [cell for column in columns for cell in cells.get(column.words, ())]
    plain = words["plain"] if any(cell.detail.startswith("[") for cell in besides) else ""
    note = " ".join(filter(None, (words["note"] if words["p"] in cells else "", plain)))
    return TableView(words["title"], tuple(cells), tuple(zip(*cells.values(), strict=True)), note, whole=total)


def _cells(matter: Matter, question: Question, marks: dict[Key, Mark], columns: list[Column]) -> dict[str, Make]:
    """Header -> what makes the cell of a group; reference groups have no verdict."""
    words, unit = declaration().table, SCALES[question.scale].unit

    def judged(make: Make) -> Make:
        return lambda key: make(key) if key in marks else DASH

    return {
        words["group"]: lambda key: Cell(
            words["reference"].format(group=matter.groups.label(key))
            if matter.is_reference(key)
            else matter.groups.label(key)
        ),
        words["n"]: lambda key: count_cell(count_of(matter.groups, key)),
        **{column.words: _column_cells(matter, column) for column in columns if column.references},
        question.value: judged(lambda key: value_cell(marks[key], unit)),
        words["interval"]: judged(lambda key: interval_cell(marks[key], unit)),
        words["state"]: judged(lambda key: state_cell(matter.groups.standing(question.theory, key))),
        words["p"]: judged(lambda key: adjusted_p_cell(matter, matter.primary(question.theory, key))),
        **{column.words: _column_cells(matter, column) for column in columns if not column.references},
    }


def _column_cells(matter: Matter, column: Column) -> Make:
    """What makes the cells of a declared column."""
    scale = SCALES[column.scale]

    def cell(key: Key) -> Cell:
        if matter.is_reference(key) and not column.references:
            return DASH
        mark = measure_mark(matter, column.series, key, scale)
        group_rate = matter.groups.published(key)
        if (
            mark.value is None
            and group_rate is not None
            and group_rate.approval_text
            and mark.note == group_rate.approval_text
        ):
            return Cell(group_rate.approval_text, "number")
        return value_cell(mark, scale.unit, ends=True)

    return cell


# --------------------------------------------------------------------------------------------------------------------
# Certainty of an answer: rules that each give sentences or none. Each question declares its rules.


MOST_NAMED = 6
"""Most groups of a sentence with a number each; of more groups it has the range."""
MOST_EDGES = 12
Rule = Callable[[Matter, Question], Iterator[str]]


def sentences(matter: Matter, question: Question) -> tuple[str, ...]:
    """All that apply, and last what the answer hangs on."""
    rule_sentences = (sentence for name in question.sure for sentence in RULES[name](matter, question))
    return (*rule_sentences, question.hangs)


def _sentence(name: str, **words: object) -> str:
    return declaration().sure[name].format(**words)


def _rows(matter: Matter, question: Question) -> list[Row]:
    """The deciding rows with printable numbers."""
    rows = (matter.primary(question.theory, key) for key in matter.shown(question))
    return [row for row in rows if row is not None and not row.withheld]


def named_sizes(matter: Matter, sizes: Mapping[Key, str], order: Sequence[float]) -> str:
    """The number of each group; their range for many groups."""
    if len(sizes) <= MOST_NAMED:
        return "; ".join(f"{matter.groups.label(key)} {text}" for key, text in sizes.items())
    texts = [text for _, text in sorted(zip(order, sizes.values(), strict=True))]
    name = "same" if texts[0] == texts[-1] else "range"
    return _sentence(name, low=texts[0], high=texts[-1], n=len(texts))


def _interval(matter: Matter, question: Question) -> Iterator[str]:
    rows = _rows(matter, question)
    limited_rows = [row for row in rows if row.low is not None and row.limit is not None]
    if limited_rows:
        yield _sentence("interval_verdict" if len(limited_rows) > 1 else "interval_one", n=len(limited_rows))
    elif any(row.value is not None for row in rows):
        yield _sentence("interval_plain" if any(row.ends for row in rows) else "interval_none")


def _widened(matter: Matter, question: Question) -> Iterator[str]:
    if any(row.bias for row in _rows(matter, question)):
        unseen = matter.material.settings.verdicts.unseen
        yield _sentence("widened", denial=percent(unseen.denial), group=percent(unseen.group))


def _robustness(matter: Matter, question: Question) -> Iterator[str]:
    robustness = {row.key: row.robustness for row in _rows(matter, question) if row.robustness is not None}
    if robustness:
        sizes = {key: f"{percent(value)} %" for key, value in robustness.items()}
        yield _sentence("robustness", sizes=named_sizes(matter, sizes, list(robustness.values())))


def _strongest(matter: Matter, _question: Question) -> Iterator[str]:
    key = matter.decision.figures.key
    benchmark = None if key is None else matter.groups.run.strongest.get(key)
    if key is not None and benchmark is not None:
        shares = {"of_approval": whole_percent(benchmark.of_approval), "of_group": whole_percent(benchmark.of_group)}
        column = short(benchmark.column, 4)
        yield _sentence("strongest", column=capital(column), group=matter.groups.label(key), **shares)


def _detectable(matter: Matter, question: Question) -> Iterator[str]:
    points = {row.key: matter.groups.detectable_points(row) for row in _rows(matter, question)}
    detectable = {key: size for key, size in points.items() if size is not None and size > 0}
    if detectable:
        sizes = {key: some_points(size).split()[0] for key, size in detectable.items()}
        yield _sentence("detectable", sizes=named_sizes(matter, sizes, list(detectable.values())))


def _people_needed(matter: Matter, question: Question) -> Iterator[str]:
    open_rows = [row for row in _rows(matter, question) if row.state is State.INCONCLUSIVE]
    needed_years = {row.key: row.needed for row in open_rows if row.needed is not None}
    if needed_years:
        sizes = {key: forecast(n) for key, n in needed_years.items()}
        yield _sentence("needed", sizes=named_sizes(matter, sizes, list(needed_years.values())))


def _small_groups(matter: Matter, question: Question) -> Iterator[str]:
    few = [key for key in matter.shown(question) if not matter.groups.enough(key)]
    if few:
        names = [matter.groups.label(key) for key in few[:MOST_NAMED]]
        rest = f"; {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
        hides = any(matter.groups.people(key) is None for key in few)  # withheld for others, it may have many
        yield _sentence("few_withheld" if hides else "few", n=matter.groups.run.minimum_n, groups=listed(names) + rest)


def _draws(matter: Matter, question: Question) -> Iterator[str]:
    series = (series_of_picture for picture in question.pictures for series_of_picture in picture.series)
    measures = (matter.measure(part, key) for part in series for key in matter.shown(question))
    if any(m is not None and m.of_draws and m.low is not None for m in measures):
        yield _sentence("draws")


def _graph(matter: Matter, _question: Question) -> Iterator[str]:
    edges = matter.material.settings.causal_graph.edges
    if edges:
        targets_of: dict[str, list[str]] = {}
        for source, target in edges:
            targets_of.setdefault(matter.material.label(source), []).append(matter.material.label(target))
        edge_words = "; ".join(f"{source} on {listed(targets)}" for source, targets in targets_of.items())
        yield _sentence("edges" if len(edges) <= MOST_EDGES else "edges_more", n=len(edges), edges=edge_words)
    tests = matter.groups.run.graph_tests
    yield _sentence("checked", n=tests.n, against=tests.against) if tests else _sentence("unchecked")


def _lifted(matter: Matter, question: Question) -> Iterator[str]:
    if question.lifted is None:
        return
    measures = {key: list(matter.every(question.lifted, key)) for key in matter.shown(question)}
    shares = {key: [100 * m.value for m in of_key if m.value is not None] for key, of_key in measures.items()}
    known_shares = {key: values for key, values in shares.items() if values}
    if known_shares:
        # The least and the largest; one number where both are printed the same.
        sizes = {
            key: " to ".join(dict.fromkeys(f"{end:.0f}" for end in (min(values), max(values))))
            for key, values in known_shares.items()
        }
        named = dict(list(sizes.items())[:MOST_NAMED])
        yield _sentence("lifted", sizes=named_sizes(matter, named, [min(values) for values in known_shares.values()]))


def _permuted(matter: Matter, question: Question) -> Iterator[str]:
    if question.permuted is None:
        return
    measures = {key: matter.measure(question.permuted, key) for key in matter.shown(question)}
    p_values = {key: m.value for key, m in measures.items() if m is not None and m.value is not None}
    if p_values:
        sizes = {key: p_text(p) for key, p in p_values.items()}
        yield _sentence("permuted", sizes=named_sizes(matter, sizes, list(p_values.values())))


RULES: Mapping[str, Rule] = {
    "interval": _interval,
    "widened": _widened,
    "robustness": _robustness,
    "strongest": _strongest,
    "detectable": _detectable,
    "needed": _people_needed,
    "few": _small_groups,
    "draws": _draws,
    "graph": _graph,
    "lifted": _lifted,
    "permuted": _permuted,
}


# --------------------------------------------------------------------------------------------------------------------
# A page of a question: the five parts that all share, in their order.


def page(matter: Matter, name: str, question: Question) -> Section:
    """A page within its words: of many groups it shows those that fit."""
    titles, link_words = declaration().parts, declaration().links
    answer = _answer(matter, question)
    nothing: tuple[str, ...] = ()
    if not matter.shown(question):  # why the page has neither picture nor table
        overall_row = matter.groups.run.theory(question.theory)
        reason = overall_row.reason if overall_row is not None and overall_row.reason else STATES[State.NOT_RUN].words
        nothing = (declaration().pictures["nothing"].format(reason=reason.rstrip(".")),)
    quality = Link(link_words["quality"], "pages/quality.html")
    sure = Section(titles["sure"], "sure", points=sentences(matter, question), links=(quality,))
    links = [Link(link_words["method"], "method.html#questions")]
    present = {m.method for m in matter.material.measures}
    for method in question.methods:
        if method in present:
            title = declared(method).short
            links.append(Link(link_words["cannot"].format(title=title), f"method.html#{method}-cannot"))
            links.append(Link(link_words["evidence"].format(title=title), f"evidence/{method}.html"))
    cannot = Section(titles["cannot"], "cannot", points=question.cannot, links=tuple(links))
    for room in ROOMS:
        picture = Section(titles["picture"], "picture", nothing, figures=figures(matter, question, room))
        table = by_group(matter, question, room)
        groups = Section(titles["groups"], "groups", tables=(table,) if table else (), words=nothing)
        section = Section(QUESTIONS[question.theory].words, name, parts=(answer, picture, sure, groups, cannot))
        if words(section) <= MOST_WORDS:
            break
    return section


def _answer(matter: Matter, question: Question) -> Section:
    """The answer of Decide, the numbers in full, and the states; for an open answer the numbers come first."""
    words, scale = declaration().answer, SCALES[question.scale]
    answers = tuple(answer.sentence for answer in matter.decision.questions if answer.theory is question.theory)[:1]
    leads = tuple(_leads(matter, question))
    overall_row = matter.groups.run.theory(question.theory)
    state = State.NOT_RUN if overall_row is None else overall_row.state
    limits = {
        declaration().limits[question.scale].format(n=exact(limit, scale.unit))
        for key in matter.shown(question)
        if (row := matter.primary(question.theory, key)) and not row.withheld
        if (limit := limit_of(matter.groups, row, scale)) is not None
    }
    # A line a state, with its groups in their order.
    by_state: dict[tuple[int, bool], list[str]] = {}
    for status in matter.groups.standings(question.theory):
        rank = WORST.index(status.state), status.withheld
        by_state.setdefault(rank, []).append(matter.groups.label(status.key))
    state_lines = []
    for (place, withheld), labels in sorted(by_state.items(), key=lambda item: item[0]):
        groups = listed(labels)
        if len(labels) > MOST_NAMED:
            groups = words["more"].format(names=", ".join(labels[:MOST_NAMED]), n=len(labels) - MOST_NAMED)
        text = STATES[WORST[place]].words + f" ({WITHHELD})" * withheld
        state_lines.append(words["state"].format(state=capital(text), groups=groups))
    if question.theory is Theory.SIMILAR_APPLICANTS and (dear := matter.groups.dear()):
        groups = matter.groups.named([status.key for status in dear])
        state_lines.append(words["price"].format(groups=groups, limit=price_limit(dear, matter.groups)["limit"]))
    name = "whole_limits" if len(limits) > 1 else "whole_limit" if limits else "whole"
    verdict = words[name].format(state=STATES[state].words, limit=next(iter(limits), ""))
    return Section(
        declaration().parts["answer"],
        "answer",
        (*((*leads, *answers) if state is State.INCONCLUSIVE else (*answers, *leads)), verdict),
        tuple(state_lines),
        tuple(_contradictions(matter, question)),
    )


def _leads(matter: Matter, question: Question) -> Iterator[str]:
    """The numbers of the groups that the run has, in sentences that the question declares."""
    keys = matter.shown(question)
    for lead in question.leads:
        scale, sizes, order = SCALES[lead.scale], {}, []
        for key in keys:
            mark = measure_mark(matter, lead.series, key, scale) if lead.series else judged_mark(matter, question, key)
            if not isinstance(mark.value, int | float):
                continue
            size = shown(mark, scale.unit)
            other = measure_mark(matter, lead.beside, key, scale) if lead.beside else None
            if other is not None and isinstance(other.value, int | float):
                numbers = {"size": size, "beside": value_text(other, scale.unit)}
                size = declaration().answer["beside"].format(reference=matter.references([key]), **numbers)
            sizes[key] = size
            order.append(mark.value)
        if sizes:
            measures = (
                matter.measure(lead.series, key) if lead.series else matter.primary(question.theory, key)
                for key in keys
            )
            maker = next(measure.decision_maker for measure in measures if measure is not None)
            words = {"whose": matter.material.whose(maker), "reference": matter.references(keys)}
            yield lead.words.format(sizes=named_sizes(matter, sizes, order), **words)


def _contradictions(matter: Matter, question: Question) -> Iterator[Notice]:
    """What contradicts: tests of the assumed graph; one method outside, another inside, for the same group."""
    words = declaration().answer
    tests = matter.groups.run.graph_tests if question.theory is Theory.CAUSAL_MODEL else None
    if tests is not None and tests.against:
        doubt = declaration().sure["checked"].format(n=tests.n, against=tests.against)
        yield Notice(words["doubted"], doubt)
    groups = [group for group in apart(matter.material.named("agreement")) if group.theory == question.theory]
    if groups:
        points = tuple(
            words["apart"].format(
                group=matter.groups.label(group.key),
                outside=listed([in_words(name) for name in group.outside]),
                inside=listed([in_words(name) for name in group.inside]),
            )
            for group in groups
        )
        yield Notice(words["apart_title"], words["quality"], points[:MOST_NAMED])


# --------------------------------------------------------------------------------------------------------------------
# The pages of a run's questions: those with a theory or measures in the run.


def question_pages(material: Material, decision: Decision) -> dict[str, Section]:
    """Name of the page -> its section, in the order of the questions."""
    return pages_of(Matter(material, Groups(run_of(material)), decision))


def pages_of(matter: Matter) -> dict[str, Section]:
    """The same of what was read before: pages of questions with a verdict in the run, or measures of their methods."""
    methods = {m.method for m in matter.material.measures}
    return {
        name: page(matter, name, question)
        for name, question in declaration().questions.items()
        if matter.groups.standings(question.theory) or methods.intersection(question.methods)
    }
