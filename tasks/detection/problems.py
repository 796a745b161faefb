"""Problems of methods as arrays: applicants, decisions, counterfactuals."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.limits import Bootstrap
from schemas.audit.partition import Sampling, as_sampled
from schemas.audit.spec import Explain, Protected
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.generators import Generator as GeneratorsGenerator
from tasks.counterfactuals.generators import generator_of
from tasks.counterfactuals.stage_settings import Generator, GeneratorAssumptions
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns, category_codes
from tasks.numerics.problem import Applicants, Counterfactuals, FeasibilityGraph, Problem, Waiting
from tasks.numerics.statistics.sampling import Asked
from tasks.pipeline.method import ProblemTables
from tasks.pipeline.registry import METHODS
from tasks.preprocessing.columns import Grouped, asked_of, columns_of, groups_of
from tasks.scoring import decider as scoring_decider
from tasks.scoring.decider import decider

# --------------------------------------------------------------------------------------------------------------------
# Counterfactuals of a protected attribute as arrays, from any generator.
#
# Scope: reads whole applicants, which ``generate`` writes, and mediators with changes of the decision, which
# ``mediate`` writes. Regeneration: ``applicants``.


class Decided(NamedTuple):
    """Decisions on the real applicants, and who made them."""

    maker: str | None
    """None for a model that cannot be asked about others."""
    favourable: Bools
    """``(n,)``."""
    of_all: pa.Table
    """The decisions of all makers, on applicants outside a pool as well."""


def imagined(
    tables: ProblemTables,
    attribute: Protected,
    columns: Columns,
    decided: Decided,
    generator: Generator,
    some: Bools | None = None,
) -> Counterfactuals | None:
    """Counterfactuals of the generator for an attribute, without refused rows; None if there are no counterfactuals.

    Args:
        tables: Tables.
        attribute: Of which a counterfactual is in the reference group.
        columns: Of the applicants.
        decided: Decisions on the applicants as they are.
        generator: Whose counterfactuals.
        some: ``(n,)`` the rows whose counterfactuals are wanted; None: all.
    """
    if generator in ("gan", "quantile"):
        return _mediated(tables, attribute, columns, decided, some)
    table = _where(tables.counterfactuals, generator=generator, protected_attribute=attribute.name)
    table = _among(table, tables, some)
    if not table.num_rows:
        return None
    applicable, row = _in_order(table.filter(pc.is_null(table["refusal"])), tables)
    values = [_column(applicable, columns.names[i], columns, i) for i in range(len(columns.names))]
    # Decisions on counterfactuals: the model's are stored, the lender's exist for real applicants only.
    favourable: Bools | None = None
    if decided.maker == DecisionMaker.MODEL:
        decided_on = _where(tables.reconsidered, generator=generator, protected_attribute=attribute.name)
        decided_on = decided_on.filter(pc.is_in(decided_on["row_id"], applicable["row_id"].combine_chunks()))
        decision = dict(zip(decided_on["row_id"].to_pylist(), decided_on["favourable"].to_pylist(), strict=True))
        favourable = np.array([decision[i] for i in applicable["row_id"].to_pylist()], dtype=bool)
    elif decided.maker == DecisionMaker.LENDER and generator == "nearest":
        of_maker = _where(decided.of_all, decision_maker=str(decided.maker))
        place = pc.index_in(applicable["other_row_id"], value_set=of_maker["row_id"].combine_chunks())
        favourable = of_maker["favourable"].to_numpy(zero_copy_only=False)[place.to_numpy()]
    return Counterfactuals(row, np.column_stack(values).astype(np.float64), favourable)


def _mediated(
    tables: ProblemTables, attribute: Protected, columns: Columns, decided: Decided, some: Bools | None
) -> Counterfactuals | None:
    """Applicants with the counterfactual mediators of the most typical network in the reference group."""
    table = _where(tables.mediated, protected_attribute=attribute.name, to_group=attribute.reference)
    table = _among(table, tables, some)
    if not table.num_rows:
        return None
    applicable, row = _in_order(table.filter(pc.is_null(table["refusal"])), tables)
    values = columns.values[row]
    for place, name in enumerate(columns.names):
        if name in applicable.column_names and name not in attribute.columns:
            values[:, place] = _column(applicable, name, columns, place)
    if decided.maker != DecisionMaker.MODEL:
        return Counterfactuals(row, values, None)
    # whether the mediators of the selected network change the model's decision
    decisions = _where(tables.mediated_decisions, protected_attribute=attribute.name, to_group=attribute.reference)
    flips = dict(zip(decisions["row_id"].to_pylist(), decisions["flips"].to_pylist(), strict=True))
    networks = zip(applicable["row_id"].to_pylist(), applicable["network"].to_pylist(), strict=True)
    flipped = np.array([flips[row_id][network or 0] == 1 for row_id, network in networks], dtype=bool)
    return Counterfactuals(row, values, decided.favourable[row] ^ flipped)


def _where(table: pa.Table, **values: str) -> pa.Table:
    """The rows of a table with these values."""
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def _among(table: pa.Table, tables: ProblemTables, some: Bools | None) -> pa.Table:
    """The rows of a table that are about some applicants ``(n,)``."""
    return table if some is None else table.filter(pc.is_in(table["row_id"], pa.array(tables.ids[some])))


def _in_order(table: pa.Table, tables: ProblemTables) -> tuple[pa.Table, Longs]:
    """The rows of a table by ascending number of the applicant, and these numbers."""
    row = _rows(table["row_id"], tables)
    order = np.argsort(row)
    return table.take(order), row[order]


def _rows(row_ids: pa.ChunkedArray, tables: ProblemTables) -> Longs:
    number = pd.Series(np.arange(len(tables.ids)), index=tables.ids)
    row_numbers: Longs = number.loc[row_ids.to_pylist()].to_numpy(np.int64)
    return row_numbers


def _column(table: pa.Table, name: str, columns: Columns, place: int) -> Floats:
    if columns.kinds[place] is Kind.CONTINUOUS:
        values: Floats = table[name].to_numpy()
        return values
    return category_codes(table[name].to_pylist(), columns.categories[place]).astype(np.float64)


# --------------------------------------------------------------------------------------------------------------------
# Applicants in problems: their values, decisions on them, and their counterfactuals.
#
# Scope: joins tables, the causal model and the model's decisions for methods that compare real applicants with
# counterfactual ones.


def asked_again(tables: ProblemTables, assumptions: GeneratorAssumptions) -> GeneratorsGenerator | None:
    """The generator of the counterfactuals, if it can regenerate them."""
    if not tables.applicants.num_rows:
        return None
    return generator_of((tables.applicants, tables.encodings, tables.memberships), tables.decisions, assumptions)


def known(
    problems: Mapping[str, Problem],
    tables: ProblemTables,
    decisions: Decided,
    assumptions: GeneratorAssumptions,
    generator: GeneratorsGenerator | None,
    logged: tuple[str, ...] = (),
    some: Bools | None = None,
) -> dict[str, Problem]:
    """The problems with everything that is known of their applicants; crossed attributes know the single ones.

    Args:
        problems: By protected attribute.
        tables: Tables.
        decisions: Of one decision maker.
        assumptions: How counterfactuals are made.
        generator: What makes them again; None if nothing can.
        logged: Columns that regressions take the logarithm of.
        some: ``(n,)`` the rows of which counterfactuals are wanted; None: all.
    """
    columns = replace(columns_of(tables.applicants, tables.encodings), logged=logged)
    decide = None
    if decisions.maker == DecisionMaker.MODEL and assumptions.model is not None:
        decide = decider(assumptions.model, tables.models, tables.encodings, tables.decisions)
    if decisions.maker != DecisionMaker.LENDER and decide is None:
        decisions = decisions._replace(maker=None)
    out: dict[str, Problem] = {}
    protected = [p for p in assumptions.protected if p.name in problems]
    for p in sorted(protected, key=lambda p: len(p.columns)):
        # the problems of the attributes that a crossed attribute combines; none unless each of them has a problem
        single = {q.columns[0]: out[q.name] for q in reversed(protected) if len(q.columns) == 1 < len(p.columns)}
        applicants = Applicants(
            columns=columns,
            favourable=decisions.favourable,
            attribute_columns=p.columns,
            crossed=len(p.columns) > 1,
            singles=tuple(single[c] for c in p.columns) if all(c in single for c in p.columns) else (),
        )
        if assumptions.generator is not None:
            applicants = replace(
                applicants, counterfactuals=imagined(tables, p, columns, decisions, assumptions.generator, some)
            )
        if generator is not None and generator.knows(p.name):
            applicants = replace(
                applicants,
                imagine=generator.imagine(p.name, decide),
                edges=generator.edges(p.name),
                reached=generator.reached(p.name),
            )
        out[p.name] = replace(problems[p.name], applicants=applicants)
    return {p.name: out[p.name] for p in protected}


# --------------------------------------------------------------------------------------------------------------------
# Builds the problems of methods from tables: one for each decision maker and protected attribute.
#
# Scope: the rows to explain, the candidates for counterfactuals, and the arrays of both.


_NO_EDGES = np.zeros(0, np.int32), np.zeros(0)


class ProblemSettings(GeneratorAssumptions, Protocol):
    """Settings of the problems."""

    @property
    def method(self) -> str:
        """The method that gets the problems."""

    @property
    def explain(self) -> Explain:
        """The decision makers with explained decisions."""

    @property
    def logged(self) -> tuple[str, ...]:
        """Columns that regressions take the logarithm of."""

    @property
    def bootstrap(self) -> Bootstrap:
        """Draws of the intervals."""

    @property
    def seed(self) -> int:
        """Seed of the fitted models and of the sample in a large problem."""

    @property
    def sampling(self) -> Sampling | None:
        """The largest sample for a method that queries a sample; None: all applicants."""

    @property
    def imagines_everybody(self) -> bool:
        """Whether counterfactuals of all rows are needed, and not only of the sampled ones."""


@dataclass(frozen=True)
class Case:
    """A problem with the meaning of its arrays."""

    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    problem: Problem
    sampled: Mapping[int, str] = field(default_factory=dict)
    """By number of the group how many are asked, or are in the graph, of how many; not where all are."""
    weights: Floats | None = None
    """``(n,)`` how many rows each stands for; None: itself alone."""


def cases(tables: ProblemTables, settings: ProblemSettings) -> Iterator[Case]:
    """One case for each decision maker with explained decisions, and each protected attribute; of the first draw."""
    if tables.draws == 1:
        yield from _compared_with_pools(tables, settings)
        return
    all_groups = groups_of(tables.memberships, tables.ids, settings.protected)
    for first in _of_draw(tables, 0, settings):
        sample_note = as_sampled(len(first.ids), tables.features.num_rows)
        yield replace(
            first,
            sampled=dict.fromkeys(range(len(first.problem.groups)), sample_note),
            weights=row_weights(first.problem, all_groups[first.attribute]),
        )


def later_cases(tables: ProblemTables, settings: ProblemSettings) -> Iterator[tuple[int, Case]]:
    """The same on every further draw of the rows, with its number from 0; one graph is in memory at a time."""
    for draw in range(1, tables.draws):
        for case in _of_draw(tables, draw, settings):
            yield draw - 1, case


def _of_draw(tables: ProblemTables, draw: int, settings: ProblemSettings) -> Iterator[Case]:
    of = tables.of_draw(draw)
    groups = _groups(of, settings)
    yield from _cases(of, settings, groups, asked_of(groups, of.ids, _queries(settings), settings.seed))


def _compared_with_pools(tables: ProblemTables, settings: ProblemSettings) -> Iterator[Case]:
    """The cases, with the rows of a pool by protected attribute alone where there are more than the settings allow.

    With an attribute that crosses several columns are those of the single columns, on the same rows.
    """
    groups = _groups(tables, settings)
    samples = asked_of(groups, tables.ids, _queries(settings), settings.seed)
    most = settings.sampling.pool_rows if settings.sampling else None
    pools = {name: None if most is None else sample.pool(most) for name, sample in samples.items()}
    columns = {attribute.name: {*attribute.columns} for attribute in settings.protected}
    unpooled = frozenset(name for name in groups if pools.get(name) is None)
    if unpooled:
        with_singles = {other for other in groups if any(columns[other] <= columns[name] for name in unpooled)}
        cases_of_all = _cases(
            tables, settings, {name: groups[name] for name in groups if name in with_singles}, samples
        )
        yield from (case for case in cases_of_all if case.attribute in unpooled)
    for name, rows in pools.items():
        if rows is not None:
            pool = tables.of_rows(rows)
            with_singles = {other for other in groups if columns[other] <= columns[name]}
            groups_in_pool = {other: of for other, of in _groups(pool, settings).items() if other in with_singles}
            samples_in_pool = {other: sample.among(rows) for other, sample in samples.items() if other in with_singles}
            cases_in_pool = _cases(pool, settings, groups_in_pool, samples_in_pool, tables.decisions)
            yield from (case for case in cases_in_pool if case.attribute == name)


def _queries(settings: ProblemSettings) -> int | None:
    return settings.sampling.queries if settings.sampling else None


def _groups(tables: ProblemTables, settings: ProblemSettings) -> dict[str, Grouped]:
    """The groups by protected attribute, of attributes with a member of the reference group."""
    grouped = groups_of(tables.memberships, tables.ids, settings.protected)
    return {name: grouped_rows for name, grouped_rows in grouped.items() if grouped_rows.compared}


def _cases(
    tables: ProblemTables,
    settings: ProblemSettings,
    groups: Mapping[str, Grouped],
    samples: Mapping[str, Asked],
    decisions: pa.Table | None = None,
) -> Iterator[Case]:
    """The cases of some protected attributes.

    Args:
        tables: Of all rows, of a pool, or of a draw.
        settings: Of the problems.
        groups: Of these rows, by attribute.
        samples: The sample by attribute; of an attribute without one all rows are queried.
        decisions: On all rows of the audit, of a pool; None: ``tables`` has them.
    """
    ids = tables.ids
    encoded = np.column_stack([tables.features[name].to_numpy() for name in tables.features.column_names[1:]])
    node, graph = _graph(tables)
    generator = asked_again(tables, settings)
    makers, waiting = decided(tables.decisions, settings.explain), Waiting()
    for maker, frame in makers:
        waiting.is_open = maker != makers[-1][0]
        decision_frame = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        factual, candidate = explained_and_candidates(decision_frame, maker, settings.explain)
        shared = Problem(
            encoded=encoded,
            feature_of_column=tables.encodings["feature_index"].to_numpy(),
            features=tuple(dict.fromkeys(tables.encodings["feature"].to_pylist())),
            group=np.zeros(len(ids), np.int32),
            groups=(),
            reference=0,
            factual=factual,
            candidate=candidate,
            node=node,
            graph=graph,
            resamples=settings.bootstrap.draws,
            look_into=scoring_decider.look_into(tables, encoded, maker, settings.model),
            refit=scoring_decider.refit(tables, maker, settings.model, settings.seed),
            waiting=waiting,
        )
        problems = {
            name: replace(
                shared,
                **vars(grouped_rows),
                method_data=METHODS[settings.method].own(tables, maker, name),
                sample=samples.get(name),
            )
            for name, grouped_rows in groups.items()
        }
        if tables.applicants.num_rows:
            of_maker = Decided(
                maker, decision_frame["favourable"].to_numpy(), tables.decisions if decisions is None else decisions
            )
            some = None if settings.imagines_everybody else drawn_rows(problems.values())
            if some is None and decisions is not None:  # tables of counterfactuals are about rows outside the pool, too
                some = np.ones(len(ids), np.bool_)
            problems = known(problems, tables, of_maker, settings, generator, settings.logged, some)
        for name, problem in problems.items():
            weights = None if problem.sample is None else problem.sample.weights
            yield Case(maker, name, ids, problem, sample_sizes(problem), weights)


def decided(decisions: pa.Table, explain: Explain) -> list[tuple[str, pd.DataFrame]]:
    """The decisions of every decision maker who is explained, by name."""
    frames = decisions.to_pandas().groupby("decision_maker")
    return [(str(maker), frame) for maker, frame in sorted(frames) if maker in explain.decision_makers]


def explained_and_candidates(decided: pd.DataFrame, maker: str, explain: Explain) -> tuple[Bools, Bools]:
    """Which rows are explained, and which may serve as their counterfactuals.

    The lender's own decisions have no error to speak of, so all of its unfavourable decisions are explained.
    """
    favourable, open_ = decided["favourable"].to_numpy(), decided["explained"].to_numpy()
    factual = ~favourable & open_
    candidate = favourable & open_
    if maker == DecisionMaker.MODEL:
        if explain.factuals == "false_negatives":
            factual &= decided["outcome"].to_numpy()
        if explain.candidate_score is not None:
            candidate &= decided["score"].to_numpy() > explain.candidate_score
    return factual, candidate


def _graph(tables: ProblemTables) -> tuple[Ints, FeasibilityGraph]:
    """The node of every row and the graph; its edges are stored by ascending source and destination."""
    rows, edges = tables.features.num_rows, tables.edges
    if not tables.nodes.num_rows:
        return np.arange(rows, dtype=np.int32), FeasibilityGraph(np.zeros(rows + 1, np.int64), *_NO_EDGES)
    frame = tables.features.select(["row_id"]).to_pandas()
    node = frame.merge(tables.nodes.to_pandas(), on="row_id", validate="one_to_one")["node"].to_numpy()
    indptr = np.searchsorted(edges["source"].to_numpy(), np.arange(int(node.max()) + 2)).astype(np.int64)
    return node, FeasibilityGraph(indptr, edges["destination"].to_numpy(), edges["distance"].to_numpy())


def drawn_rows(several: Iterable[Problem]) -> Bools | None:
    """``(n,)`` the rows in the sample of any of some problems on the same rows; None if one problem uses all rows."""
    masks: list[Bools] = []
    for problem in several:
        if problem.sample is None:
            return None
        masks.append(problem.sample.drawn)
    return np.logical_or.reduce(masks) if masks else None


def sample_sizes(problem: Problem) -> dict[int, str]:
    """By number of the group the size of its sample and of the group; only where the sample is smaller."""
    if problem.sample is None:
        return {}
    parts = {group: problem.sample.part(group) for group in range(len(problem.groups))}
    return {group: as_sampled(*part) for group, part in parts.items() if part[0] < part[1]}


def row_weights(problem: Problem, all_groups: Grouped) -> Floats:
    """``(n,)`` how many rows of the audit each row of a draw represents: N/m of its group."""
    counts = dict(zip(all_groups.groups, all_groups.sizes.tolist(), strict=True))
    of = np.array([counts[name] for name in problem.groups], dtype=np.float64)
    sampled_counts = np.bincount(problem.group, minlength=len(problem.groups))
    represented: Floats = (of / np.maximum(sampled_counts, 1))[problem.group]
    return represented
