"""Trains one generator on each resample of the rows, and measures the changed decisions of every group.

Rows are drawn with replacement within category, so that every category keeps its size. Each refit has weights, and an
order of the rows, of its own. A training that fails leaves a refit without a value.

Scope: resamples of a case, and their table. Training: ``tasks.counterfactuals.algorithm.gan.training``.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from schemas.errors import DataQualityError
from schemas.tables.counterfactuals import GENERATOR_REFITS
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.counterfactuals.gan import Case, cases, gan_settings
from tasks.methods.gcfn.algorithm.people import net_change
from tasks.methods.gcfn.mediate.mediators import Reassigned, ReassignedDecisions
from tasks.methods.gcfn.refit_generators.settings import RefitSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.pipeline.progress import progress
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import columns_of
from tasks.scoring.decider import Decide, decider


def refitted(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: RefitSettings,
) -> Produced:
    """Does the work of the stage ``refit_generators``."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    decide = decider(settings.model, models, encodings, decisions)
    parts = [
        _table(case, _values(case, decide, settings.refits))
        for case in cases(columns, memberships, ids, settings)
        if decide is not None and len(case.categories.groups)
    ]
    return Produced({GENERATOR_REFITS.name: pa.concat_tables([GENERATOR_REFITS.empty(), *parts])})


def _table(case: Case, values: Floats) -> pa.Table:
    """One row for each refit and group outside the reference group, of values ``(refits, k)``."""
    refits, categories = values.shape
    names, number = np.array(case.rows.categories, dtype=object), np.arange(categories)
    other = case.categories.groups != case.grouped.reference
    return GENERATOR_REFITS.build(
        protected_attribute=[case.protected.name] * (refits * int(other.sum())),
        group=np.tile(names[number[other]], refits),
        refit=np.repeat(np.arange(refits), int(other.sum())),
        share_changed=values[:, other].ravel(),
    )


def _values(case: Case, decide: Decide, refits: int) -> Floats:
    """The net share of changed decisions by refit and category, ``(refits, k)``; NaN where training failed."""
    values = np.full((refits, len(case.rows.categories)), np.nan)
    with progress(refits, f"refits of a generator for {case.protected.name}") as report:
        for number in range(refits):
            # another stream of random numbers than for the rows that generators learn from
            rng = np.random.default_rng([case.settings.seed, case.number, 1, number])
            with suppress(DataQualityError):  # diverged, or a mediator that is constant among resampled rows
                learnt, resample = resampled(case, rng)
                # a separate number gives each refit its weights and its order of the rows
                settings = replace(gan_settings(case.settings), networks=1, first=case.settings.gan.networks + number)
                imaginer = train(case.rows.rows(learnt), settings).imaginer
                reference = int(np.flatnonzero(case.categories.groups == case.grouped.reference)[0])
                at = resample[case.rows.category[resample] != reference]
                imagined = imaginer.imagine(case.rows.rows(at))[:, reference]
                nothing = np.zeros(len(at))
                reassigned = Reassigned(reference, at, imagined, nothing, nothing.astype(np.int64))
                decided = ReassignedDecisions.of(case, reassigned, decide)
                change = net_change(decided.flips[0].astype(np.float64), decided.favourable)
                category = case.rows.category[at]
                groups = [change[category == group] for group in range(len(case.rows.categories))]
                values[number] = np.array([float(group.mean()) if len(group) else np.nan for group in groups])
            report(f"refit {number + 1} of {refits}")
    return values


def resampled(case: Case, rng: np.random.Generator) -> tuple[Longs, Longs]:
    """Rows of a case drawn with replacement within category: those to learn from, and all of them.

    Rows that generators do not learn from (``rows``) are drawn among themselves, and so stay apart.
    """
    learns = np.zeros(len(case.rows), np.int64)
    learns[case.trained] = 1
    stratum = 2 * case.rows.category + learns
    parts: dict[bool, list[Longs]] = {True: [], False: []}
    for number in np.unique(stratum).tolist():
        members = np.flatnonzero(stratum == number)
        parts[number % 2 == 1].append(members[rng.integers(0, len(members), len(members))])
    learnt = np.sort(np.concatenate(parts[True]))
    return learnt, np.sort(np.concatenate([learnt, *parts[False]]))
