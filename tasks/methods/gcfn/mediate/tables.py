"""Writes the tables about generators: effects on mediators, checks, training history, and the trained state.

Scope: nothing about a single applicant. Tables with rows of applicants: ``mediators``.
"""

import json
import logging

import numpy as np
import pyarrow as pa

from schemas.tables.counterfactuals import GENERATOR_CHECKS, GENERATOR_HISTORY, GENERATORS, MEDIATOR_EFFECTS
from tasks.counterfactuals.algorithm import effects
from tasks.counterfactuals.algorithm.diagnostics import checks as gcfn_checks
from tasks.counterfactuals.algorithm.diagnostics.checks import Check
from tasks.counterfactuals.gan.ensembles import Case, Generated
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.networks.checkpoint import Checkpoint, to_bytes

log = logging.getLogger("evenhand")


def mediator_effects(case: Case, to: int, at: Longs, imagined: Floats) -> pa.Table:
    """Returns the mediators' change in a category, group by group.

    Args:
        case: The applicants.
        to: Number of the category.
        at: ``(m,)`` who is imagined in it, among the rows of the case.
        imagined: ``(s, m, p)`` their mediators by network.
    """
    group = case.rows.category[at]
    parts = [(int(number), np.flatnonzero(group == number)) for number in np.unique(group)]
    return pa.concat_tables([_of_group(case, to, number, at[own], imagined[:, own]) for number, own in parts])


def _of_group(case: Case, to: int, number: int, at: Longs, imagined: Floats) -> pa.Table:
    mediators, names = case.rows.mediators, case.rows.categories
    members = np.flatnonzero(case.rows.category == to)
    before, pooled = mediators.rows(at), imagined.reshape(-1, len(mediators.names))
    told = list(effects.effects(before, pooled, mediators.names))
    there = [each.imagined for each in effects.effects(before, mediators.values[members], mediators.names)]
    n = len(told)
    return MEDIATOR_EFFECTS.build(
        protected_attribute=[case.protected.name] * n,
        group=[names[number]] * n,
        to_group=[names[to]] * n,
        **{name: [getattr(each, name) for each in told] for name in effects.Effect._fields},
        there=there,
        n=[len(at)] * n,
        n_there=[len(members)] * n,
    )


def checks(case: Case, found: Generated) -> pa.Table:
    """Returns all checks; logs a warning about covariates that predict the group."""
    rows, seed = case.rows, case.settings.seed
    told = list(gcfn_checks.of_networks(found.imagined, rows, case.trained, seed))
    if found.convergence is not None:
        told += gcfn_checks.of_training(found.convergence, len(case.trained))
    leaks = list(gcfn_checks.of_covariates(rows, seed))
    for leak in leaks:
        if leak.doubtful:
            _warn(case.protected.name, leak)
    told += leaks
    n = len(told)
    return GENERATOR_CHECKS.build(
        protected_attribute=[case.protected.name] * n,
        generator=[case.settings.gan.generator] * n,
        **{name: [getattr(check, name) for check in told] for name in Check._fields},
    )


def _warn(attribute: str, leak: Check) -> None:
    log.warning(
        "%s: %s foretells the group with an AUC of %.3f, so that hardly anybody with these covariates is of another "
        "group, and mediators there are guessed; leave what gives the group away out of the covariates",
        *(attribute, leak.column, leak.value),
    )


def history(case: Case, state: Checkpoint) -> pa.Table:
    """Returns the epochs of a training, network by network."""
    found = state.history.double().numpy()
    epochs, networks, terms = found.shape
    reconstruction, log_loss, accuracy = found.transpose(1, 0, 2).reshape(-1, terms).T
    return GENERATOR_HISTORY.build(
        protected_attribute=[case.protected.name] * (epochs * networks),
        network=np.repeat(np.arange(networks), epochs),
        epoch=np.tile(np.arange(1, epochs + 1), networks),
        reconstruction=reconstruction,
        log_loss=log_loss,
        accuracy=accuracy,
    )


def generators(case: Case, state: Checkpoint) -> pa.Table:
    """Returns one row: the state of the trained generators of a case."""
    return GENERATORS.build(
        protected_attribute=[case.protected.name],
        categories=[json.dumps(case.rows.categories)],
        covariates=[json.dumps(case.rows.covariates.names)],
        mediators=[json.dumps(case.rows.mediators.names)],
        content=[to_bytes(state)],
    )
