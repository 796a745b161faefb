"""Ablate: recourse searched again with each constraint lifted, and the graph's connectivity against epsilon.

It answers which rule leaves whom without recourse (FGCE, Table VI, Figures 1 and 5), as a thought experiment about the
graph. Connectivity is a matter of the applications and not of who decides on them: it is stored once, with the lender,
whose applications they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.applications import DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.errors import SpecError
from schemas.findings import AGGREGATES, TALLIES
from schemas.graph import FEASIBILITY_FACTS
from schemas.methods import FgceSettings
from schemas.settings import AuditSpec, Explain, Protected, StageSettings
from schemas.terms import Constraint, DecisionMaker
from tasks import connect
from tasks._problems import decided, explained_and_candidates
from tasks._stage import Produced, stage
from tasks._statistics import Origin
from tasks.algorithms import ablation, connectivity
from tasks.algorithms.ablation import Asked, Variant
from tasks.algorithms.feasibility import collapse

METHOD = "fgce"


class AblateSettings(StageSettings):
    """What decides the searches: the graph, who is explained, and the protected attributes."""

    graph: FgceSettings
    explain: Explain
    protected: tuple[Protected, ...]


def settings_of(spec: AuditSpec) -> AblateSettings:
    """The stage's settings.

    Raises:
        SpecError: a feature is named like one of the searches, whose results could then not be told from its own.
    """
    for name in ablation.NAMES:
        if name in spec.features():
            message = f"{name!r} is the name of a search of its own; rename the column, or set fgce.ablations: false"
            raise SpecError(message, ("columns", name))
    return AblateSettings.of(spec, graph=connect.settings_of(spec).graph)


@dataclass(frozen=True)
class _Rows:
    """The applications as arrays, aligned by row."""

    ids: list[str]
    encoded: NDArray[np.float64]
    strata: NDArray[np.int32]
    groups: Mapping[str, tuple[NDArray[np.int32], tuple[str, ...]]]
    """By protected attribute: the number of each row's group, and the groups' names."""


@stage(
    reads=(FEATURES, ENCODINGS, MEMBERSHIPS, DECISIONS, FEASIBILITY_FACTS),
    writes=(TALLIES, AGGREGATES),
    balanced=False,
)
def ablate(
    features: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    facts: pa.Table,
    *,
    settings: AblateSettings,
) -> Produced:
    """Infeasible share and burden of every group without each constraint; its connectivity at several epsilons."""
    rows = _rows(features, memberships, settings.protected)
    asked = _asked(rows.ids, decisions, settings.explain)
    variants = _variants(rows.encoded, encodings, _epsilon(facts))
    return Produced(
        {
            TALLIES.name: pa.concat_tables([TALLIES.empty(), *_searched(rows, variants, asked, settings.graph)]),
            AGGREGATES.name: pa.concat_tables([AGGREGATES.empty(), *_connected(rows, variants[0], settings.graph)]),
        }
    )


def _rows(features: pa.Table, memberships: pa.Table, protected: Iterable[Protected]) -> _Rows:
    ids = features["row_id"].to_pylist()
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    group_of = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group").loc[ids]
    groups = {}
    for p in protected:
        names, codes = np.unique(group_of[p.name].to_numpy(dtype=str), return_inverse=True)
        groups[p.name] = codes.astype(np.int32), tuple(names.tolist())
    return _Rows(ids, encoded, connect.strata_of(ids, memberships), groups)


def _asked(ids: list[str], decisions: pa.Table, explain: Explain) -> dict[str, Asked]:
    """By decision maker, whose recourse is searched for: as ``detect`` has it."""
    asked = {}
    for maker, frame in decided(decisions, explain):
        made = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        asked[maker] = Asked(*explained_and_candidates(made, maker, explain))
    return asked


def _epsilon(facts: pa.Table) -> float:
    """The radius that ``connect`` chose."""
    return float(dict(zip(facts["fact"].to_pylist(), facts["value"].to_pylist(), strict=True))["epsilon"])


def _variants(encoded: NDArray[np.float64], encodings: pa.Table, epsilon: float) -> list[Variant]:
    """The rules of the audit, and each set of rules with something lifted."""
    constrained = _constrained(encodings)
    every, _ = connect.rules_of(encoded, _freed(encodings, constrained))
    return ablation.variants(
        Variant(ablation.NOTHING, *connect.rules_of(encoded, encodings), epsilon),
        {feature: connect.rules_of(encoded, _freed(encodings, [feature])) for feature in constrained},
        every,
    )


def _constrained(encodings: pa.Table) -> list[str]:
    """Features that a rule binds, in the order of the audit spec."""
    bound = pc.or_(pc.not_equal(encodings["constraint"], str(Constraint.FREE)), pc.is_valid(encodings["transitions"]))
    return list(dict.fromkeys(encodings.filter(bound)["feature"].to_pylist()))


def _freed(encodings: pa.Table, features: Sequence[str]) -> pa.Table:
    """The encodings with no rule on ``features``."""
    hit = pc.is_in(encodings["feature"], value_set=pa.array(features, pa.string()))
    for name, free in (("constraint", str(Constraint.FREE)), ("transitions", None)):
        column = pc.if_else(hit, pa.scalar(free, pa.string()), encodings[name])
        encodings = encodings.set_column(encodings.schema.get_field_index(name), encodings.schema.field(name), column)
    return encodings


def _searched(rows: _Rows, variants: list[Variant], asked: dict[str, Asked], graph: FgceSettings) -> list[pa.Table]:
    """Tallies of every variant, one graph in memory at a time."""
    tables = []
    for variant in variants:
        found = ablation.search(rows.encoded, rows.strata, variant, tuple(asked.values()), graph)
        for (maker, each), costs in zip(asked.items(), found.costs, strict=True):
            own = costs[each.factual]
            for attribute, (group, names) in rows.groups.items():
                tallied = ablation.tallies(found.parameters, own, group[each.factual], len(names))
                tables.append(Origin(METHOD, maker, attribute, names).tallies(list(tallied)))
    return tables


def _connected(rows: _Rows, given: Variant, graph: FgceSettings) -> list[pa.Table]:
    """Connectivity of every group of every protected attribute."""
    distinct = collapse(rows.encoded, given.codes, rows.strata, given.rules)
    epsilons = [multiple * given.epsilon for multiple in connectivity.MULTIPLES]
    found = connectivity.connections(distinct, given.rules, epsilons, graph)
    tables = []
    for attribute, (group, names) in rows.groups.items():
        said = list(connectivity.aggregates(found, distinct, group, len(names), epsilons))
        tables.append(Origin(METHOD, DecisionMaker.LENDER, attribute, names).aggregates(said))
    return tables
