"""Trains the mitigations of every group but the reference group: tables in, means and paired differences out."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.audit.spec import Protected
from schemas.errors import SpecError
from schemas.tables.findings import COMPARED_MITIGATIONS, COMPARED_MODELS, MODEL_REGISTER
from schemas.terms import Role
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.metrics.compare import algorithm
from tasks.metrics.compare.algorithm import FIGURES, FOLDS, QUANTITIES, Columns, People, Trained
from tasks.metrics.compare.settings import UNCONSTRAINED, CompareSettings
from tasks.numerics.statistics.intervals import benjamini_hochberg
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
    rows, pairs, register = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    grouped = groups_of(memberships, applicants["row_id"].to_numpy(), settings.protected)
    for attribute in (p for p in settings.protected if grouped[p.name].compared):
        for group, people, trained in _by_group(everyone, source.beside(attribute), grouped[attribute.name], settings):
            whose = {"protected_attribute": attribute.name, "group": group}
            compared_pairs = list(paired(people, trained, settings))
            pairs += [{**whose, **pair} for pair in compared_pairs]
            register += [{**whose, **row} for row in registered(people, trained, compared_pairs, settings)]
            rows += [
                {
                    **{"protected_attribute": attribute.name, "group": group, "mitigation": name},
                    **{"figure": mean.figure, "position": FIGURES.index(mean.figure), "reason": mean.reason},
                    "value": mean.value if np.isfinite(mean.value) else None,
                    "deviation": mean.deviation if np.isfinite(mean.value) else None,
                }
                for name, means_of_name in ((model.name, model.means) for model in trained)
                for mean in means_of_name
            ]
    table = COMPARED_MITIGATIONS.build(**{c.name: [row[c.name] for row in rows] for c in COMPARED_MITIGATIONS.columns})
    models = COMPARED_MODELS.build(**{c.name: [pair[c.name] for pair in pairs] for c in COMPARED_MODELS.columns})
    tried = MODEL_REGISTER.build(**{c.name: [row[c.name] for row in register] for c in MODEL_REGISTER.columns})
    return Produced({COMPARED_MITIGATIONS.name: table, COMPARED_MODELS.name: models, MODEL_REGISTER.name: tried})


def paired(people: People, trained: Sequence[Trained], settings: CompareSettings) -> Iterator[dict[str, Any]]:
    """Each mitigation against the net without any, in a row a quantity; the net itself has none."""
    compared_models = [model for model in trained if model.rows is not None]
    order = sorted(model.name for model in compared_models)  # whatever the order in the spec, the draws are the same
    by_name = {model.name: model.rows for model in compared_models if model.rows is not None}
    if UNCONSTRAINED not in by_name:
        return
    sample = algorithm.resampled(people, [by_name[name] for name in order], np.random.default_rng(settings.seed))
    base = order.index(UNCONSTRAINED)
    for model in trained:
        if model.name == UNCONSTRAINED:
            continue
        blank = {"compared_with": UNCONSTRAINED, "repeats": algorithm.REPEATS, "mitigation": model.name}
        limit = settings.comparable
        blank |= {"folds": FOLDS, "comparable_by": limit.by, "margin": limit.margin, "drawn": None, "is_smaller": False}
        if model.rows is None:
            reason = next((mean.reason for mean in model.means if mean.reason), "a fold could not be trained")
            states: dict[str, Any] = {"frontier": "not_compared", "performance": "not_compared", "reason": reason}
            values = dict.fromkeys(("difference", "low", "high", "p", "q"))
            yield from ({**blank, **states, **values, "quantity": q, "position": i} for i, q in enumerate(QUANTITIES))
            continue
        at = order.index(model.name)
        differences = [algorithm.difference(sample, quantity, base, at) for quantity in QUANTITIES]
        q = benjamini_hochberg(np.array([difference.p for difference in differences]))
        performance = algorithm.comparable(sample, base, at, limit.by, limit.margin)
        states = {
            "frontier": algorithm.dominance(sample, at),
            "performance": performance,
            "drawn": model.rows.drawn,
        }
        states["is_smaller"] = algorithm.gap_change(sample, base, at).high < 0
        for position, difference in enumerate(differences):
            numbers = {"difference": difference.value, "low": difference.low, "high": difference.high}
            numbers |= {"p": difference.p, "q": float(q[position])}
            yield {
                **{**blank, **states, "quantity": difference.quantity, "position": position},
                **{name: number if np.isfinite(number) else None for name, number in numbers.items()},
                "reason": "" if np.isfinite(difference.value) else _WITHOUT[difference.quantity],
            }


_WITHOUT = dict.fromkeys(QUANTITIES, algorithm.UNDEFINED) | {
    **{"auc": algorithm.NO_SCORES, "flips": algorithm.UNMATCHED},
    "cec": algorithm.UNEXPLAINED,
}
"""Quantity -> why it has no difference."""
_REASONS = {
    "dominated": "another model is better on accuracy and on the gap in approvals",
    "worse": "{by} is worse than the margin of {margin:g} allows",
    "cannot_tell": "it is not shown that {by} is worse by less than {margin:g}",
    "gap": "the gap in approvals is not smaller by its whole interval",
    "candidate": "{by} is worse by less than {margin:g}, and the gap in approvals is smaller",
}


def registered(
    people: People, trained: Sequence[Trained], pairs: Sequence[Mapping[str, Any]], settings: CompareSettings
) -> Iterator[dict[str, Any]]:
    """Every model that was tried, with what made it, and why it is a candidate or is none."""
    by_name = {pair["mitigation"]: pair for pair in pairs}
    method_of, limit = mitigations(), settings.comparable
    for model in trained:
        pair = by_name.get(model.name)
        if model.rows is None:
            reason = next((mean.reason for mean in model.means if mean.reason), "a fold could not be trained")
            place = "not_trained"
        elif pair is None:
            place, reason = "base", "the net without any mitigation, with which the others are compared"
            if model.name != UNCONSTRAINED:
                place, reason = "not_candidate", "the net without any mitigation could not be trained"
        else:
            why = "candidate" if pair["is_smaller"] else "gap"
            why = why if pair["performance"] == "comparable" else pair["performance"]
            why = "dominated" if pair["frontier"] == "dominated" else why
            place = "candidate" if why == "candidate" else "not_candidate"
            reason = _REASONS[why].format(by=limit.by, margin=limit.margin)
        hyperparameters = METHODS[method_of[model.name]].module("mitigations").hyperparameters(model.name)
        yield {
            **{"mitigation": model.name, "standing": place, "reason": reason, "rows": len(people.label)},
            **{"first_seed": settings.seed, "model_seed": settings.seed},
            **{"folds": FOLDS, "repeats": algorithm.REPEATS},
            "hyperparameters": json.dumps(hyperparameters, sort_keys=True, default=str),
        }


def _by_group(
    everyone: People, columns: Columns, grouped: Grouped, settings: CompareSettings
) -> Iterator[tuple[str, People, list[Trained]]]:
    """Every group but the reference group, with its rows and every mitigation."""
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
            yield name, people, [Trained(system, algorithm.means([reason] * FOLDS), None) for system in systems]
        else:
            yield name, people, list(algorithm.compared(people, columns, systems, settings.seed))
