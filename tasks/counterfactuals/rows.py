"""Results of a generator as table rows: counterfactuals, the decisions on them, and the assumptions."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.table import Column, Table
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    COUNTERFACTUAL_DECISIONS,
    COUNTERFACTUALS,
    GRAPH_TESTS,
)
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.algorithm import diagnostics
from tasks.counterfactuals.algorithm.causal_checks import Check, GraphTest
from tasks.counterfactuals.generators import Generator, Made, generator_of, outside
from tasks.counterfactuals.stage_settings import GenerateSettings
from tasks.numerics.arrays import Bools
from tasks.numerics.encoding import Columns
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import asked_of, columns_of
from tasks.scoring.decider import Decide, decider

NOISE = "noise of "
"""Begins the name of a column of noise."""


def generated(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    settings: GenerateSettings,
) -> Produced:
    """As the stage: counterfactuals by protected attribute with an effect, and the checks of the assumptions."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    generator = generator_of((applicants, encodings, memberships), decisions, settings)
    if generator is None:
        raise ValueError("no counterfactual is possible: the settings assume no causal graph")
    decide = decider(settings.model, models, encodings, decisions)
    declared = COUNTERFACTUALS.extended(_own(generator, columns))
    samples = asked_of(generator.groups, ids, settings.queries, settings.seed)
    sampled_rows: dict[str, Bools] = {}
    for p in settings.protected:  # of a single attribute also those who are asked of an attribute that crosses it
        crossing = [
            samples[q.name].drawn for q in settings.protected if {*p.columns} <= {*q.columns} and q.name in samples
        ]
        if p.name in samples:
            sampled_rows[p.name] = np.logical_or.reduce(crossing)
    generated_groups = [
        members
        for p in settings.protected
        if generator.knows(p.name)
        for members in outside(generator, p.name, sampled_rows.get(p.name))
    ]
    source, checks = _Applicants(generator.name, columns, ids), generator.checks()
    tables = {
        declared: [_imagined(members, source, declared) for members in generated_groups],
        COUNTERFACTUAL_DECISIONS: [_decided(members, source, decide) for members in generated_groups if decide],
        CAUSAL_EFFECTS: [_effects(members, columns) for members in generated_groups],
        CAUSAL_CHECKS: [_checks(checks)],
        GRAPH_TESTS: [_graph_test(generator.graph_test(checks), settings.causal_graph)],
    }
    return Produced(
        {table.name: pa.concat_tables([table.empty(), *parts]) for table, parts in tables.items()},
        rows_in=sum(members.rows for members in generated_groups),
        declared={COUNTERFACTUALS.name: declared},
    )


class _Applicants(NamedTuple):
    """The generator, and the applicants that it works on."""

    generator: str
    columns: Columns
    ids: "np.ndarray[Any, Any]"


def _own(generator: Generator, columns: Columns) -> Iterator[Column]:
    """The audit's own columns: the features, and the noise of those that a protected attribute can reach."""
    for name, kind in zip(columns.names, columns.kinds, strict=True):
        yield Column(name, "double" if kind is Kind.CONTINUOUS else "string", "as it would have been", nullable=True)
    for name in generator.reached(*generator.groups):
        yield Column(f"{NOISE}{name}", "doubles", "the noise that was held fixed; none of a refused row", nullable=True)


def _imagined(members: Made, source: _Applicants, declared: Table) -> pa.Table:
    """One row for each member of the group, first those with a counterfactual."""
    imagined, refused, columns = members.imagined, len(members.imagined.refused), source.columns
    n = len(imagined.row) + refused
    features = {
        name: pa.array(labels, pa.string()).take(pa.array(values.astype(np.int64)))
        if labels
        else pa.array(values, from_pandas=True)
        for name, labels, values in zip(columns.names, columns.categories, imagined.values.T, strict=True)
    }
    noise: dict[str, pa.Array] = {c.name: pa.nulls(0) for c in declared.columns if c.name.startswith(NOISE)}
    for name, values in imagined.noise.items():
        ends = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
        noise[f"{NOISE}{name}"] = pa.ListArray.from_arrays(ends, values.ravel())
    other, distance = pa.nulls(0), pa.nulls(0)
    if members.matches is not None:  # of a generator that makes new applicants there are none
        other = pa.array(source.ids[members.matches.match], pa.string())
        distance = pa.array(members.matches.distance, from_pandas=True)
    return declared.build(
        **{name: pa.concat_arrays([values, pa.nulls(n - len(values), values.type)]) for name, values in noise.items()},
        **{name: pa.concat_arrays([values, pa.nulls(refused, values.type)]) for name, values in features.items()},
        row_id=source.ids[np.concatenate([imagined.row, imagined.refused])],
        generator=pa.repeat(source.generator, n),
        other_row_id=pa.concat_arrays([other, pa.nulls(n - len(other), other.type)]),
        distance=pa.concat_arrays([distance, pa.nulls(n - len(distance), distance.type)]),
        protected_attribute=pa.repeat(members.attribute, n),
        group=pa.repeat(members.group, n),
        refusal=pa.concat_arrays(
            [pa.nulls(len(imagined.row), pa.string()), pa.array(list(map(str, imagined.reason)), pa.string())]
        ),
    )


def _decided(members: Made, source: _Applicants, decide: Decide) -> pa.Table:
    imagined = members.imagined
    favourable, scores = decide(replace(source.columns, values=imagined.values), imagined.row)
    return COUNTERFACTUAL_DECISIONS.build(
        row_id=source.ids[imagined.row],
        generator=[source.generator] * len(imagined.row),
        protected_attribute=[members.attribute] * len(imagined.row),
        decision_maker=[DecisionMaker.MODEL] * len(imagined.row),
        favourable=favourable,
        score=scores,
    )


def _effects(members: Made, columns: Columns) -> pa.Table:
    imagined = members.imagined
    changed_names = tuple(imagined.noise) if members.matches is None else columns.names
    rows = (
        list(diagnostics.effects(columns.rows(imagined.row), imagined.values, changed_names))
        if len(imagined.row)
        else []
    )
    n = len(rows)
    return CAUSAL_EFFECTS.build(
        protected_attribute=[members.attribute] * n,
        group=[members.group] * n,
        **{name: [getattr(effect, name) for effect in rows] for name in diagnostics.Effect._fields},
        n=[len(imagined.row)] * n,
        clipped=[imagined.clipped.get(effect.feature, 0) for effect in rows],
    )


def _checks(checks: tuple[Check, ...]) -> pa.Table:
    return CAUSAL_CHECKS.build(
        check=[c.name for c in checks],
        node=[c.node for c in checks],
        other=[c.other or None for c in checks],
        given=[json.dumps(c.conditions) for c in checks],
        **{name: [getattr(c, name) for c in checks] for name in ("statistic", "p", "q", "n", "words")},
    )


def _graph_test(test: GraphTest | None, graph: CausalGraph) -> pa.Table:
    """One row; none of a generator that assumes no graph."""
    if test is None:
        return GRAPH_TESTS.empty()
    values = {name: [value] for name, value in test._asdict().items()}
    return GRAPH_TESTS.build(graph=["saturated" if graph.order else "edges"], **values)
