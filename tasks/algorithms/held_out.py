"""Nets trained on a fold, and how consistent their reasons are on the rows held out (CEC, section 5.2).

Every held-out row is matched with the nearest training row of the other group that has its label, whichever group it
is of; attributions are exact, where the paper sums 32 steps. Here belongs what joins training to matching and to the
score.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from tasks.algorithms import cec_pairs, cec_score, nearest
from tasks.algorithms.attributions import of_network
from tasks.algorithms.cec_pairs import Scored
from tasks.algorithms.detector import Bools, Floats, Ints, Longs
from tasks.algorithms.explained import Explained
from tasks.algorithms.nearest import Matching
from tasks.algorithms.networks import of_module
from tasks.algorithms.training.folds import Fold, Population
from tasks.algorithms.training.loop import UNMATCHED

THETA = 0.3
"""CEC up to which reasons count as the same; the paper states none, and its tables fit this one."""

GROUPS = (0, 1)

AS_IN_THE_PAPER = Matching(winsorise=None)


@dataclass(frozen=True)
class Lending:
    """``n`` rows to train on and to explain, with ``d`` inputs."""

    population: Population
    feature_of_input: Ints
    """``(d,)`` index into ``features``."""
    features: tuple[str, ...]
    financial: Floats
    """``(n, f)`` what applicants are comparable by, in the user's units."""
    financial_names: tuple[str, ...]


@dataclass(frozen=True)
class Bridge:
    """Matching and scoring of some rows, as the cross-validation wants them handed in."""

    rows: Lending
    matching: Matching = AS_IN_THE_PAPER

    def match(self, fold: Fold) -> Longs:
        """For each training row the place of its match among the training rows, ``UNMATCHED`` without."""
        pool, group, rows = self._pool(fold), self._group, self.rows
        at = nearest.standardise(rows.financial, rows.financial_names, pool, self.matching.winsorise)
        index = nearest.index(at, rows.population.favourable, group, pool, self.matching)
        place = np.full(len(fold.train), UNMATCHED, np.int64)
        for to in GROUPS:
            asked = np.flatnonzero(group[fold.train] != to)
            found = nearest.match(index, fold.train[asked], to)
            place[asked[found.matched]] = np.searchsorted(fold.train, found.match[found.matched])
        return place

    def score(self, net: nn.Sequential, fold: Fold) -> Mapping[str, float]:
        """Means over the held-out pairs of both groups; shares in percent."""
        return summary(self.scored(net, fold, fold.test))

    def scored(self, net: nn.Sequential, fold: Fold, asked: Longs) -> tuple[Scored, ...]:
        """Rows ``(r,)`` matched with training rows of the other group and scored, one group after the other."""
        n, rows = len(fold.inputs), self.rows
        explained = Explained(
            x=fold.inputs,
            feature_of_column=rows.feature_of_input,
            features=rows.features,
            label=rows.population.favourable,
            financial=rows.financial,
            financial_names=rows.financial_names,
            explainer=np.zeros(n, np.int32),
            models=(of_network(of_module(net)),),
            pools=(self._pool(fold),),
        )
        seen = cec_pairs.views(explained, self._group, self.matching)
        return tuple(cec_pairs.score(explained, seen, asked[self._group[asked] != to], to) for to in GROUPS)

    @property
    def _group(self) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        return self.rows.population.protected.astype(np.int32)

    def _pool(self, fold: Fold) -> Bools:
        pool = np.zeros(len(fold.inputs), np.bool_)
        pool[fold.train] = True
        return pool


def summary(scored: tuple[Scored, ...]) -> dict[str, float]:
    """What the paper tells of a model's pairs, and what it does not: the floor, and who could not be matched."""
    cec, floor, flip = (
        np.concatenate([getattr(each.compared, name) for each in scored]) for name in ("cec", "floor", "flip")
    )
    regime = cec_score.regimes(cec, flip, THETA)
    known = regime != cec_score.NO_REGIME
    shares = {
        f"regime_{name.lower()}_percent": 100 * float((regime[known] == number).mean())
        for number, name in enumerate(cec_score.REGIMES)
    }
    return {
        "cec": float(cec[known].mean()),
        "cec_floor": float(floor[known].mean()),
        "cec_above_floor": float((cec - floor)[known].mean()),
        "flip_percent": 100 * float(flip[known].mean()),
        "unscored_percent": 100 * float((~known).mean()),
        **shares,
    }
