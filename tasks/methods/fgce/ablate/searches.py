"""Searches for recourse with a constraint lifted, at other epsilons, and on relabelled draws."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.audit.partition import as_sampled
from schemas.audit.spec import Protected
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from schemas.terms import Constraint, DecisionMaker
from tasks.detection.problems import decided, explained_and_candidates
from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph.algorithm import collapse
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.ablate.settings import AblateSettings
from tasks.methods.fgce.algorithm import ablation, connectivity
from tasks.methods.fgce.algorithm.ablation import Matched, Query, Searched, Variant
from tasks.methods.fgce.algorithm.connectivity import Backwards
from tasks.methods.fgce.settings import NOTHING
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Aggregate, Draws
from tasks.pipeline.method import Origin
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import codes_of

# --------------------------------------------------------------------------------------------------------------------
# Runs the relabelled draws of ``ablate``: the graph of all groups together, and the shares of sets of its rows.
#
# All groups are in one graph here, which the protected attribute does not divide: columns that it is made of are left
# out, and so are other attributes that share some of them. All other rules and strata are those of the audit.


@dataclass(frozen=True)
class Grouped:
    """A protected attribute."""

    protected: Protected
    group: NDArray[np.int32]
    """``(n,)`` number of each row's group."""
    groups: tuple[str, ...]

    @property
    def reference(self) -> int:
        """Number of the reference group; -1 where it has no rows."""
        return self.groups.index(self.protected.reference) if self.protected.reference in self.groups else -1


@dataclass(frozen=True)
class Shared:
    """What all draws have in common."""

    encoded: Floats
    """``(n, p)`` features in [0, 1]."""
    encodings: pa.Table
    epsilon: float
    """Radius of one step in encoded units, as the audit chose it."""
    settings: GraphSettings
    draws: int
    seed: int


def aggregates(
    shared: Shared, attributes: Sequence[Grouped], queries: Mapping[str, Query], freed: pa.Table, at: int
) -> Iterator[tuple[str, list[Aggregate], list[Draws]]]:
    """By decision maker, the measures of the groups of one attribute, and what relabelled groups give.

    Args:
        shared: Rows and rules.
        attributes: All protected attributes.
        queries: By decision maker, the rows to explain and the candidates.
        freed: The encodings without rules on the columns of the attribute.
        at: Which of the attributes it is.
    """
    attribute = attributes[at]
    own_columns = list(attribute.protected.columns)
    strata_groups = [other.group for other in attributes if not set(own_columns) & set(other.protected.columns)]
    strata = np.zeros((len(shared.encoded), 0), np.int32)
    if strata_groups:
        strata = np.column_stack(strata_groups).astype(np.int32)
    is_own = np.isin(freed["feature"].to_numpy(zero_copy_only=False), own_columns)
    encoded = np.where(is_own, 0.0, shared.encoded)
    rules, codes = rules_of(shared.encoded, freed)
    distinct = algorithm.collapse(encoded, codes, strata, rules)
    graph = Backwards.of(algorithm.build(distinct, rules, shared.epsilon, shared.settings).graph, distinct.node)
    for number, name in enumerate(attribute.groups):
        if number == attribute.reference:
            continue
        rows = np.flatnonzero(np.isin(attribute.group, (number, attribute.reference)))
        rng = np.random.default_rng([shared.seed, crc32(f"relabel|{attribute.protected.name}|{name}".encode())])
        # the same draws for every decision maker
        member, labels = attribute.group[rows] == number, None
        for maker, maker_queries in queries.items():
            group_queries = maker_queries.of(rows)
            n = int((group_queries.factual & member).sum())
            if not n or member.all():
                reason = connectivity.NOBODY_ELSE if n else connectivity.NO_FACTUAL
                yield maker, list(connectivity.refused(number, reason, n)), []
                continue
            if labels is None:
                design = connectivity.design(encoded[rows], strata[rows])
                labels = connectivity.labels(design, member, shared.draws, rng)
            share = connectivity.shares(graph.rows(rows), labels, group_queries)
            group_aggregates = list(connectivity.relabelled_aggregates(number, share, labels.alone, n))
            yield maker, group_aggregates, connectivity.relabelled_draws(number, share)


# --------------------------------------------------------------------------------------------------------------------
# Runs the searches of ``ablate``: with each constraint lifted, at each epsilon, on subsamples and relabelled sets.
#
# All searches and epsilons use the same subsamples, so that differences between rules are not sampling noise.


METHOD = "fgce"


@dataclass(frozen=True)
class _Attribute:
    """A protected attribute of the applications."""

    name: str
    groups: tuple[str, ...]
    group: NDArray[np.int32]
    """Number of each row's group."""
    sizes: list[Matched]
    """Subsamples of the reference group, for each smaller group."""
    sampled: str = ""
    """How many rows the graph is of, of how many; empty where it is of all."""

    def origin(self, maker: str) -> Origin:
        """The groups and the decision maker that results are of."""
        sampled = dict.fromkeys(range(len(self.groups)), self.sampled) if self.sampled else {}
        return Origin(METHOD, maker, self.name, self.groups, sampled)


@dataclass(frozen=True)
class _Rows:
    """The applications as arrays, aligned by row."""

    encoded: NDArray[np.float64]
    strata: NDArray[np.int32]
    attributes: tuple[_Attribute, ...]


def searched(
    features: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    facts: pa.Table,
    nodes: pa.Table,
    settings: AblateSettings,
) -> Produced:
    """Computes what the settings ask for: searches with rules lifted, connectivity, and searches with labels drawn."""
    row_count = features.num_rows
    first_draw = nodes.filter(pc.equal(nodes["draw"], 0))["row_id"].combine_chunks()
    features = features.filter(pc.is_in(features["row_id"], first_draw))
    ids = features["row_id"].to_pylist()
    sample_note = as_sampled(len(ids), row_count) if len(ids) < row_count else ""
    coded = codes_of(memberships, ids, [protected.name for protected in settings.protected])
    attributes = []
    for protected, (group, names) in zip(settings.protected, coded, strict=True):
        reference = int(np.searchsorted(names, protected.reference))
        rng = np.random.default_rng([settings.seed, crc32(f"ablate|{protected.name}".encode())])
        sizes = ablation.matched(group, len(names), reference, settings.draws, rng)
        attributes.append(_Attribute(protected.name, names, group, sizes, sample_note))
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    rows = _Rows(encoded, strata_of(ids, memberships), tuple(attributes))
    queries = {}
    for maker, frame in decided(decisions, settings.explain):
        maker_decisions = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        queries[maker] = Query(*explained_and_candidates(maker_decisions, maker, settings.explain))
    # the radius that the stage `connect` chose
    epsilon = float(dict(zip(facts["fact"].to_pylist(), facts["value"].to_pylist(), strict=True))["epsilon"])
    tallies: list[pa.Table] = []
    draws: list[pa.Table] = []
    thinned: list[pa.Table] = []
    aggregates = list[pa.Table]()
    for origin, group_aggregates, null_draws in _relabelled(rows, encodings, queries, epsilon, settings):
        aggregates.append(origin.aggregates(group_aggregates))
        draws.append(origin.draws(null_draws))
    if settings.ablations:
        variants = _variants(rows.encoded, encodings, epsilon)
        tallies, searched_draws = _searched(rows, variants, queries, settings.graph)
        draws += searched_draws
        connected, thinned = _connected(rows, variants[0], settings.graph)
        aggregates += connected
    return Produced(
        {
            TALLIES.name: pa.concat_tables([TALLIES.empty(), *tallies]),
            AGGREGATES.name: pa.concat_tables([AGGREGATES.empty(), *aggregates]),
            DRAWS.name: pa.concat_tables([DRAWS.empty(), *draws, *thinned]),
        }
    )


def _relabelled(
    rows: _Rows, encodings: pa.Table, queries: dict[str, Query], epsilon: float, settings: AblateSettings
) -> Iterator[tuple[Origin, list[Aggregate], list[Draws]]]:
    """Aggregates of every protected attribute and decision maker, with labels drawn within propensity strata."""
    if not settings.relabelled_draws:
        return
    draws, graph = settings.relabelled_draws, settings.graph
    shared = Shared(rows.encoded, encodings, epsilon, graph, draws, settings.seed)
    grouped = [
        Grouped(protected, attribute.group, attribute.groups)
        for protected, attribute in zip(settings.protected, rows.attributes, strict=True)
    ]
    for at, (protected, attribute) in enumerate(zip(settings.protected, rows.attributes, strict=True)):
        open_ = freed(encodings, protected.columns)
        for maker, group_aggregates, null_draws in aggregates(shared, grouped, queries, open_, at):
            yield attribute.origin(maker), group_aggregates, null_draws


def _variants(encoded: NDArray[np.float64], encodings: pa.Table, epsilon: float) -> list[Variant]:
    """The rules of the audit, and each set of rules with something lifted."""
    bound = pc.or_(pc.not_equal(encodings["constraint"], str(Constraint.FREE)), pc.is_valid(encodings["transitions"]))
    constrained = list(dict.fromkeys(encodings.filter(bound)["feature"].to_pylist()))
    every, _ = rules_of(encoded, freed(encodings, constrained))
    return ablation.variants(
        Variant(NOTHING, *rules_of(encoded, encodings), epsilon),
        {feature: rules_of(encoded, freed(encodings, [feature])) for feature in constrained},
        every,
    )


def freed(encodings: pa.Table, features: Sequence[str]) -> pa.Table:
    """Returns the encodings with no rule on ``features``."""
    hit = pc.is_in(encodings["feature"], value_set=pa.array(features, pa.string()))
    for name, free in (("constraint", str(Constraint.FREE)), ("transitions", None)):
        column = pc.if_else(hit, pa.scalar(free, pa.string()), encodings[name])
        encodings = encodings.set_column(encodings.schema.get_field_index(name), encodings.schema.field(name), column)
    return encodings


def _searched(
    rows: _Rows, variants: list[Variant], queries: dict[str, Query], graph: GraphSettings
) -> tuple[list[pa.Table], list[pa.Table]]:
    """Tallies and draws of every variant, one graph in memory at a time."""
    sizes = [size for attribute in rows.attributes for size in attribute.sizes]
    earlier_searches: list[tuple[Variant, Searched]] = []
    tallies: list[pa.Table] = []
    draws: list[pa.Table] = []
    for variant in variants:
        bound = ablation.binding(variant, rows.encoded)
        search_result = next((searched for other, searched in earlier_searches if ablation.alike(bound, other)), None)
        if search_result is None:
            search_result = ablation.search(rows.encoded, rows.strata, bound, tuple(queries.values()), sizes, graph)
            earlier_searches.append((bound, search_result))
        parameters = variant.parameters(search_result.nearest)
        for (maker, maker_queries), costs in zip(queries.items(), search_result.costs, strict=True):
            factual = maker_queries.factual
            for attribute in rows.attributes:
                shares = ablation.tallies(parameters, costs[factual], attribute.group[factual], len(attribute.groups))
                tallies.append(attribute.origin(maker).tallies(list(shares)))
        matched = [(attribute, size.group) for attribute in rows.attributes for size in attribute.sizes]
        for (attribute, group), group_draws in zip(matched, search_result.subsamples, strict=True):
            for (maker, maker_queries), maker_draws in zip(queries.items(), group_draws, strict=True):
                if (attribute.group[maker_queries.factual] == group).any():
                    rows_of_draws = list(ablation.draws(parameters, maker_draws, group))
                    draws.append(attribute.origin(maker).draws(rows_of_draws))
    return tallies, draws


def _connected(rows: _Rows, variant: Variant, graph: GraphSettings) -> tuple[list[pa.Table], list[pa.Table]]:
    """Connectivity of every group of every protected attribute: aggregates and draws."""
    distinct = collapse(rows.encoded, variant.codes, rows.strata, variant.rules)
    epsilons = [multiple * variant.epsilon for multiple in connectivity.MULTIPLES]
    joined = connectivity.nested(distinct, variant.rules, epsilons, graph)
    connections = connectivity.connections(joined)
    aggregates, draws = [], []
    for attribute in rows.attributes:
        origin = attribute.origin(DecisionMaker.LENDER)
        of_groups = connectivity.aggregates(connections, distinct, attribute.group, len(attribute.groups), epsilons)
        aggregates.append(origin.aggregates(list(of_groups)))
        draws.append(origin.draws(list(connectivity.draws(joined, attribute.sizes))))
    return aggregates, draws
