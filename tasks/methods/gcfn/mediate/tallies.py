"""Computes per-group tallies of the mediator counterfactuals: densities, and changed decisions.

Both count people by bands. Densities are of the applications, whoever decides on them, and so are stored with the
lender; changed decisions are of the audited model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from schemas.terms import DecisionMaker
from tasks.counterfactuals.gan.ensembles import Case
from tasks.methods.gcfn.algorithm import densities as mediator_densities
from tasks.methods.gcfn.algorithm import detection as gcfn
from tasks.methods.gcfn.algorithm import people
from tasks.methods.gcfn.algorithm.detection import Mediated
from tasks.methods.gcfn.algorithm.people import Sorting
from tasks.methods.gcfn.mediate.counterfactuals import Reassigned, ReassignedDecisions
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Tally
from tasks.pipeline.statistics import Origin

METHOD = "gcfn"


def densities(case: Case, several: Sequence[Reassigned]) -> pa.Table:
    """Counts continuous mediators by bands in every group, and in all others as members of the reference group."""
    return _origin(case, DecisionMaker.LENDER).tallies(list(_densities(case, several)))


def who(case: Case, several: Sequence[Reassigned], decided: Sequence[ReassignedDecisions]) -> pa.Table:
    """Counts changed decisions and large changes of the score, by bands of score and mediators of every group."""
    return _origin(case, DecisionMaker.MODEL).tallies(list(_who(case, several, decided)))


def _origin(case: Case, maker: str) -> Origin:
    return Origin(METHOD, maker, case.protected.name, case.grouped.groups)


def _densities(case: Case, several: Sequence[Reassigned]) -> Iterator[Tally]:
    mediators, to_reference = case.rows.mediators, next(each for each in several if _is_reference(case, each.to))
    for place, (name, known) in enumerate(zip(mediators.names, mediators.categories, strict=True)):
        values, imagined = mediators.values[:, place], to_reference.values[..., place]
        among = () if known else mediator_densities.intervals(values)
        for category, group in enumerate(case.categories.groups.tolist()):
            own = case.rows.category == category
            told = [*mediator_densities.factual(name, values[own], among)]
            told += mediator_densities.imagined(name, imagined[:, own[to_reference.at]], among)
            yield from (replace(tally, group=group) for tally in told)


def _is_reference(case: Case, category: int) -> bool:
    return int(case.categories.groups[category]) == case.grouped.reference


def _who(case: Case, several: Sequence[Reassigned], decided: Sequence[ReassignedDecisions]) -> Iterator[Tally]:
    favourable, score = np.zeros(len(case.rows), np.bool_), np.zeros(len(case.rows))
    for moved, each in zip(several, decided, strict=True):
        favourable[moved.at], score[moved.at] = each.favourable, each.score
    found, groups = _mediated(several, decided), case.categories.groups.tolist()
    rows = [np.flatnonzero(case.rows.category == category) for category in range(len(groups))]
    nobody = np.zeros(len(found.row), np.bool_)
    parts = [gcfn.of_rows(found, nobody, favourable, own) for own in rows]
    above, by = people.large_change(parts), people.sortings(case.rows.mediators, score)
    for group, part, own in zip(groups, parts, rows, strict=True):
        yield from (replace(tally, group=group) for tally in people.tallies(part, _of(by, own), above))


def _of(by: Sequence[Sorting], rows: Longs) -> list[Sorting]:
    return [sorting.rows(rows) for sorting in by]


def _mediated(several: Sequence[Reassigned], decided: Sequence[ReassignedDecisions]) -> Mediated:
    """All that was decided again, in the shape in which the audit is given it."""

    def joined(parts: Sequence[Floats]) -> Floats:
        return np.concatenate(parts, axis=-1)

    row = np.concatenate([moved.at for moved in several])
    return Mediated(
        row=row,
        spread=joined([moved.spread for moved in several]),
        refusal=np.full(len(row), "", dtype=str),
        flips=np.concatenate([each.flips for each in decided], axis=1),
        change=joined([each.change for each in decided]),
    )
