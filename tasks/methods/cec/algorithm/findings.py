"""Findings of CEC: the score and verdict of each row, its match, and the features whose attributions differ.

Scope: rows of findings and evidence. Means over them: ``tallies``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.methods.cec.algorithm import score
from tasks.methods.cec.algorithm.pairs import Scored
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Evidence, Findings

VERDICTS = ("same_reasons", "different_reasons", "flipped_same_reasons", "flipped_different_reasons")
"""Of the regimes A to D; B, ``different_reasons``, is what the paper calls hidden bias."""

NOT_TESTED = "not_tested"
"""Verdict on a row without a score."""

MATCH, PARTED = "match", "parts_in"
"""Roles in the evidence: the match, its value a distance; and, with the feature after a colon, where reasons part."""

FEATURES = 3
"""Features told of each pair."""


def findings(of_groups: Sequence[Scored], settings: CecSettings) -> Findings:
    """One entry per row of any group, ascending: its score and regime, or why it has none."""
    row = np.concatenate([np.zeros(0, np.int64), *(scored.matches.row for scored in of_groups)])
    cec = np.concatenate([np.zeros(0), *(scored.compared.cec for scored in of_groups)])
    flip = np.concatenate([np.zeros(0), *(scored.compared.flip for scored in of_groups)])
    refusal = np.concatenate([np.zeros(0, dtype=str), *(scored.reason for scored in of_groups)])
    regime = score.regimes(cec, flip, settings.theta)
    order = np.argsort(row)
    return Findings(
        row=row[order],
        subgroup=np.zeros(len(row), np.int32),
        verdict=np.array((*VERDICTS, NOT_TESTED))[regime][order],  # no regime is -1, and so the last
        statistic=cec[order],
        refusal=refusal[order],
    )


def evidence(of_groups: Sequence[Scored], names: tuple[str, ...]) -> Evidence:
    """The match of every matched row, then the features in which a scored pair parts most, if it parts at all."""
    empty = np.zeros(0, np.int64), np.zeros(0, dtype=str), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0)
    parts = [empty]
    for scored in of_groups:
        parts += [_matches(scored), _features(scored, names)]
    row, role, rank, other, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((rank, role != MATCH, row))
    return Evidence(row[order], role[order], rank[order], other[order], value[order])


def _matches(scored: Scored) -> tuple[Longs, NDArray[np.str_], NDArray[np.int32], Longs, Floats]:
    m, at = scored.matches, np.flatnonzero(scored.matches.matched)
    return m.row[at], np.full(len(at), MATCH), np.ones(len(at), np.int32), m.match[at], m.distance[at]


def _features(
    scored: Scored, names: tuple[str, ...]
) -> tuple[Longs, NDArray[np.str_], NDArray[np.int32], Longs, Floats]:
    m, parted = scored.matches, np.nan_to_num(scored.compared.parted)
    largest = score.largest(parted, FEATURES)
    value = np.take_along_axis(parted, largest, axis=1)
    at, rank = np.nonzero(value > 0)
    role = np.array([f"{PARTED}: {name}" for name in names])[largest[at, rank]]
    return m.row[at], role, rank.astype(np.int32) + 1, m.match[at], value[at, rank]
