"""Trains the mitigations of every group but the reference group: tables in, means over folds out."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.audit.spec import Protected
from schemas.errors import SpecError
from schemas.tables.findings import COMPARED_MITIGATIONS
from schemas.terms import Role
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.metrics.compare import algorithm
from tasks.metrics.compare.algorithm import FIGURES, FOLDS, Columns, Mean, People
from tasks.metrics.compare.settings import CompareSettings
from tasks.pipeline.registry import METHODS, mitigations
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import Grouped, columns_of, groups_of, inputs_of
from tasks.scoring.decider import financial


class Source(NamedTuple):
    """What the inputs are."""

    columns: tuple[str, ...]
    """``(d,)`` the column of the source that each is of."""
    roles: Mapping[str, str]
    """Of every column, separated by commas."""
    financial_names: tuple[str, ...]

    def beside(self, attribute: Protected) -> Columns:
        """The columns for a protected attribute over some columns of the source."""
        covariate = [Role.COVARIATE in self.roles[name].split(",") for name in self.columns]
        is_protected = [name in attribute.columns for name in self.columns]
        return Columns(np.array(covariate), np.array(is_protected), self.financial_names)


def compared(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    *,
    settings: CompareSettings,
) -> Produced:
    """Does the work of the stage ``compare``."""
    columns = columns_of(applicants, encodings)
    inputs = inputs_of(columns, encodings, "one_hot")
    outcome = applications.select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    label = outcome.loc[applicants["row_id"].to_numpy()].to_numpy(dtype=bool)
    try:
        means, names = financial(columns, encodings)
    except SpecError:  # no column is: mitigations that match applicants then say so
        means, names = np.empty((len(label), 0)), ()
    roles = dict(zip(encodings["feature"].to_pylist(), encodings["roles"].to_pylist(), strict=True))
    people = People(inputs.x, label, np.zeros(len(label), dtype=bool), means)
    everyone, source = people, Source(tuple(columns.names[at] for at in inputs.column), roles, names)
    rows = []
    grouped = groups_of(memberships, applicants["row_id"].to_numpy(), settings.protected)
    for attribute in (p for p in settings.protected if grouped[p.name].compared):
        for group, group_means in _by_group(everyone, source.beside(attribute), grouped[attribute.name], settings):
            rows += [
                {
                    **{"protected_attribute": attribute.name, "group": group, "mitigation": name},
                    **{"figure": mean.figure, "position": FIGURES.index(mean.figure), "reason": mean.reason},
                    "value": mean.value if np.isfinite(mean.value) else None,
                    "deviation": mean.deviation if np.isfinite(mean.value) else None,
                }
                for name, means_of_name in group_means
                for mean in means_of_name
            ]
    table = COMPARED_MITIGATIONS.build(**{c.name: [row[c.name] for row in rows] for c in COMPARED_MITIGATIONS.columns})
    return Produced({COMPARED_MITIGATIONS.name: table})


def _by_group(
    everyone: People, columns: Columns, grouped: Grouped, settings: CompareSettings
) -> Iterator[tuple[str, list[tuple[str, list[Mean]]]]]:
    """Every group but the reference group, with the means of every mitigation."""
    method_of = mitigations()
    systems: dict[str, Callable[[MitigationFold], Decided]] = {
        name: partial(METHODS[method_of[name]].module("mitigations").mitigate, name, seed=settings.seed)
        for name in settings.names
    }
    for group, name in enumerate(grouped.groups):
        if group == grouped.reference:
            continue
        chosen = np.flatnonzero((grouped.group == group) | (grouped.group == grouped.reference))
        some = everyone.rows(chosen)
        people = algorithm.drawn(
            People(some.inputs, some.label, grouped.group[chosen] == group, some.financial), settings.seed
        )
        reason = algorithm.refusal(people)
        if reason:
            yield name, [(system, algorithm.means([reason] * FOLDS)) for system in systems]
        else:
            yield name, list(algorithm.compared(people, columns, systems, settings.seed))
