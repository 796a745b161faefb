"""Generate: every applicant outside the reference group, imagined as a member of it by the structural causal model.

What was assumed is written down beside it: how well each mechanism fits rows that it has not seen, what is left in its
noise, which independences of the causal graph the data contradict, and what the features of a group become.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.causal import CausalGraph
from schemas.counterfactuals import CAUSAL_CHECKS, CAUSAL_EFFECTS, COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS
from schemas.errors import SpecError
from schemas.models import Model
from schemas.settings import AuditSpec, Decision, Protected, StageSettings
from schemas.table import Column, Table
from schemas.terms import DecisionMaker, Kind
from tasks._causal import World
from tasks._columns import columns_of
from tasks._deciding import Decide, decider
from tasks._stage import Produced, stage
from tasks.algorithms import effects
from tasks.algorithms.columns import Columns
from tasks.algorithms.detector import Floats
from tasks.algorithms.scm import Imagined
from tasks.algorithms.scm_checks import Check

GENERATOR = "scm"

NOISE = "noise of "
"""Begins the name of a column of noise."""


class GenerateSettings(StageSettings):
    """What decides the counterfactuals."""

    protected: tuple[Protected, ...]
    causal_graph: CausalGraph
    decision: Decision
    model: Model
    seed: int


def settings_of(spec: AuditSpec) -> GenerateSettings:
    """The stage's settings.

    Raises:
        SpecError: no edge of the causal graph leads out of a protected attribute, so that there is nothing to imagine.
    """
    attributes = {name for p in spec.protected for name in (p.name, *p.columns)}
    if not attributes & {cause for cause, _ in spec.causal_graph.edges}:
        message = f"no edge leads out of a protected attribute; add one from {', '.join(sorted(attributes))}"
        raise SpecError(message, ("causal_graph", "edges"))
    return GenerateSettings.of(spec)


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS),
    writes=(COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS, CAUSAL_CHECKS, CAUSAL_EFFECTS),
)
def generate(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: GenerateSettings,
) -> Produced:
    """One counterfactual, or a refusal with its reason, for every applicant and protected attribute with an effect."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    world = World.of(columns, memberships, ids, settings)
    decide = decider(settings.model, models, encodings, decisions)
    declared = COUNTERFACTUALS.extended(_own(world, columns))
    made = [each for p in settings.protected if world.roots(p.name) for each in _of_attribute(world, p.name)]
    tables = {
        declared: [_imagined(each, columns, ids, declared) for each in made],
        COUNTERFACTUAL_DECISIONS: [_decided(each, columns, ids, decide) for each in made if decide],
        CAUSAL_EFFECTS: [_effects(each, columns) for each in made],
        CAUSAL_CHECKS: [_checks(world.checks())],
    }
    return Produced(
        {table.name: pa.concat_tables([table.empty(), *parts]) for table, parts in tables.items()},
        rows_in=sum(each.rows for each in made),
        declared={COUNTERFACTUALS.name: declared},
    )


@dataclass(frozen=True)
class Made:
    """The members of one group as members of the reference group."""

    attribute: str
    group: str
    rows: int
    """Members of the group."""
    imagined: Imagined


def _of_attribute(world: World, attribute: str) -> Iterator[Made]:
    """Every group but the reference group; the mechanisms are fitted once."""
    known = world.groups[attribute]
    fitted, roots = world.fit(attribute, known.group)
    for number, name in enumerate(known.groups):
        rows = np.flatnonzero(known.group == number)
        if number != known.reference:
            yield Made(attribute, name, len(rows), world.imagined(attribute, fitted, roots, rows))


def _own(world: World, columns: Columns) -> Iterator[Column]:
    """The audit's own columns: the features, and the noise of those that a protected attribute can reach."""
    for name, kind in zip(columns.names, columns.kinds, strict=True):
        yield Column(name, "double" if kind is Kind.CONTINUOUS else "string", "as it would have been", nullable=True)
    for name in world.reached(*world.groups):
        yield Column(f"{NOISE}{name}", "doubles", "the noise that was held fixed; none of a refused row", nullable=True)


def _imagined(made: Made, columns: Columns, ids: "np.ndarray[Any, Any]", declared: Table) -> pa.Table:
    """One row for each member of the group, first those that could be imagined."""
    found, refused = made.imagined, len(made.imagined.refused)
    n = len(found.row) + refused
    nothing: list[Any] = [None] * refused
    features = {
        name: [*_as_handed_in(found.values[:, i], columns.categories[i]), *nothing]
        for i, name in enumerate(columns.names)
    }
    known = {name: [*found.noise[name], *nothing] for name in found.noise}
    noise = {column.name: known.get(column.name.removeprefix(NOISE), [None] * n) for column in declared.columns}
    return declared.build(
        **{name: values for name, values in noise.items() if name.startswith(NOISE)},
        **features,
        row_id=ids[np.concatenate([found.row, found.refused])],
        generator=[GENERATOR] * n,
        protected_attribute=[made.attribute] * n,
        group=[made.group] * n,
        refusal=[*[None] * len(found.row), *map(str, found.reason)],
    )


def _as_handed_in(values: Floats, categories: tuple[str, ...]) -> list[Any]:
    return [categories[int(code)] for code in values] if categories else values.tolist()


def _decided(made: Made, columns: Columns, ids: "np.ndarray[Any, Any]", decide: Decide) -> pa.Table:
    found = made.imagined
    favourable, scores = decide(replace(columns, values=found.values), found.row)
    return COUNTERFACTUAL_DECISIONS.build(
        row_id=ids[found.row],
        generator=[GENERATOR] * len(found.row),
        protected_attribute=[made.attribute] * len(found.row),
        decision_maker=[DecisionMaker.MODEL] * len(found.row),
        favourable=favourable,
        score=scores,
    )


def _effects(made: Made, columns: Columns) -> pa.Table:
    found = made.imagined
    told = list(effects.effects(columns.rows(found.row), found.values, tuple(found.noise))) if len(found.row) else []
    n = len(told)
    return CAUSAL_EFFECTS.build(
        protected_attribute=[made.attribute] * n,
        group=[made.group] * n,
        **{name: [getattr(each, name) for each in told] for name in effects.Effect._fields},
        n=[len(found.row)] * n,
        clipped=[found.clipped.get(each.feature, 0) for each in told],
    )


def _checks(checks: tuple[Check, ...]) -> pa.Table:
    return CAUSAL_CHECKS.build(
        check=[c.name for c in checks],
        node=[c.node for c in checks],
        other=[c.other or None for c in checks],
        given=[json.dumps(c.given) for c in checks],
        **{name: [getattr(c, name) for c in checks] for name in ("statistic", "p", "q", "n", "words")},
    )
