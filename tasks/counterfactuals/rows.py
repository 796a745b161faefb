"""Results of a generator as table rows: counterfactuals, the decisions on them, and the assumptions."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.table import Column, Table
from schemas.tables.counterfactuals import CAUSAL_CHECKS, CAUSAL_EFFECTS, COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.algorithm import diagnostics
from tasks.counterfactuals.algorithm.causal_checks import Check
from tasks.counterfactuals.generators import Generator, Made, generator_of, outside
from tasks.counterfactuals.stage_settings import GenerateSettings
from tasks.numerics.encoding import Columns
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import columns_of
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
    """One counterfactual, or a refusal with its reason, for every applicant and protected attribute with an effect."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    generator = generator_of((applicants, encodings, memberships), decisions, settings)
    if generator is None:
        raise ValueError("nobody can be imagined: the settings assume no causal graph")
    decide = decider(settings.model, models, encodings, decisions)
    declared = COUNTERFACTUALS.extended(_own(generator, columns))
    made = [each for p in settings.protected if generator.knows(p.name) for each in outside(generator, p.name)]
    source = _Applicants(generator.name, columns, ids)
    tables = {
        declared: [_imagined(each, source, declared) for each in made],
        COUNTERFACTUAL_DECISIONS: [_decided(each, source, decide) for each in made if decide],
        CAUSAL_EFFECTS: [_effects(each, columns) for each in made],
        CAUSAL_CHECKS: [_checks(generator.checks())],
    }
    return Produced(
        {table.name: pa.concat_tables([table.empty(), *parts]) for table, parts in tables.items()},
        rows_in=sum(each.rows for each in made),
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


def _imagined(made: Made, source: _Applicants, declared: Table) -> pa.Table:
    """One row for each member of the group, first those that could be imagined."""
    found, refused, columns = made.imagined, len(made.imagined.refused), source.columns
    n = len(found.row) + refused
    nothing: list[Any] = [None] * refused
    features = {
        name: [*([known[int(code)] for code in values] if known else values), *nothing]
        for name, known, values in zip(columns.names, columns.categories, found.values.T.tolist(), strict=True)
    }
    known = {name: [*found.noise[name], *nothing] for name in found.noise}
    noise = {column.name: known.get(column.name.removeprefix(NOISE), [None] * n) for column in declared.columns}
    other, distance = _matched(made, source.ids)
    return declared.build(
        **{name: values for name, values in noise.items() if name.startswith(NOISE)},
        **features,
        row_id=source.ids[np.concatenate([found.row, found.refused])],
        generator=[source.generator] * n,
        other_row_id=[*other, *nothing],
        distance=[*distance, *nothing],
        protected_attribute=[made.attribute] * n,
        group=[made.group] * n,
        refusal=[*[None] * len(found.row), *map(str, found.reason)],
    )


def _matched(made: Made, ids: "np.ndarray[Any, Any]") -> tuple[list[Any], list[Any]]:
    """The real applicants, and how far they are; of a generator that makes new ones there are none."""
    if made.matches is None:
        nothing: list[Any] = [None] * len(made.imagined.row)
        return nothing, nothing
    return ids[made.matches.match].tolist(), made.matches.distance.tolist()


def _decided(made: Made, source: _Applicants, decide: Decide) -> pa.Table:
    found = made.imagined
    favourable, scores = decide(replace(source.columns, values=found.values), found.row)
    return COUNTERFACTUAL_DECISIONS.build(
        row_id=source.ids[found.row],
        generator=[source.generator] * len(found.row),
        protected_attribute=[made.attribute] * len(found.row),
        decision_maker=[DecisionMaker.MODEL] * len(found.row),
        favourable=favourable,
        score=scores,
    )


def _effects(made: Made, columns: Columns) -> pa.Table:
    found = made.imagined
    moved = tuple(found.noise) if made.matches is None else columns.names
    rows = list(diagnostics.effects(columns.rows(found.row), found.values, moved)) if len(found.row) else []
    n = len(rows)
    return CAUSAL_EFFECTS.build(
        protected_attribute=[made.attribute] * n,
        group=[made.group] * n,
        **{name: [getattr(each, name) for each in rows] for name in diagnostics.Effect._fields},
        n=[len(found.row)] * n,
        clipped=[found.clipped.get(each.feature, 0) for each in rows],
    )


def _checks(checks: tuple[Check, ...]) -> pa.Table:
    return CAUSAL_CHECKS.build(
        check=[c.name for c in checks],
        node=[c.node for c in checks],
        other=[c.other or None for c in checks],
        given=[json.dumps(c.given) for c in checks],
        **{name: [getattr(c, name) for c in checks] for name in ("statistic", "p", "q", "n", "words")},
    )
