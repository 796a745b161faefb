"""Nets trained on a fold, and the consistency of their explanations on held-out rows (CEC, section 5.2).

Every held-out row is matched with the nearest training row of the other group with the same label. Attributions are
exact, where the paper sums 32 steps. Scope: joins training with matching and the score.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from tasks.counterfactuals.algorithm.nearest import matching as nearest
from tasks.counterfactuals.algorithm.nearest.matching import Matching
from tasks.methods.cec.algorithm import pairs as cec_pairs
from tasks.methods.cec.algorithm import score as cec_score
from tasks.methods.cec.algorithm.pairs import Scored
from tasks.methods.cec.algorithm.training.folds import Fold, Population
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import of_network
from tasks.numerics.explanation import ModelView
from tasks.numerics.networks.parameters import of_module
from tasks.numerics.networks.training import UNMATCHED

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

    def rows(self, chosen: Longs) -> "Lending":
        """The same of some rows, ``(r,)``."""
        people = self.population
        some = Population(people.features[chosen], people.favourable[chosen], people.protected[chosen])
        return replace(self, population=some, financial=self.financial[chosen])


@dataclass(frozen=True)
class Consistency:
    """What the paper tells of a model's pairs, and what it does not: the floor, and who could not be scored."""

    pairs: int
    """Rows with a score."""
    unscored: int
    """Rows without: nobody to be matched with, or no direction."""
    cec: float
    """Mean over the pairs, as the two that follow; NaN where there are none."""
    cec_floor: float
    cec_above_floor: float
    flips: int
    """Pairs whose predictions differ."""
    regimes: tuple[int, ...]
    """Pairs in each of ``algorithm.score.REGIMES``."""


@dataclass(frozen=True)
class Bridge:
    """Matching and scoring of some rows, as the cross-validation wants them handed in."""

    rows: Lending
    matching: Matching = AS_IN_THE_PAPER
    theta: float = THETA

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
        return summary(self.scored(net, fold, fold.test), self.theta)

    def consistency(self, net: nn.Sequential, fold: Fold) -> Consistency:
        """The same as numbers of pairs."""
        return consistency(self.scored(net, fold, fold.test), self.theta)

    def scored(self, net: nn.Sequential, fold: Fold, asked: Longs) -> tuple[Scored, ...]:
        """Rows ``(r,)`` matched with training rows of the other group and scored, one group after the other."""
        n, rows = len(fold.inputs), self.rows
        explained = ModelView(
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


def consistency(scored: tuple[Scored, ...], theta: float = THETA) -> Consistency:
    """Consistency over the pairs of several groups together."""
    cec, floor, above, flip = (
        np.concatenate(parts)
        for parts in zip(
            *((s.compared.cec, s.compared.floor, s.above_floor, s.compared.flip) for s in scored), strict=True
        )
    )
    regime = cec_score.regimes(cec, flip, theta)
    known = regime != cec_score.NO_REGIME
    return Consistency(
        pairs=int(known.sum()),
        unscored=int((~known).sum()),
        cec=_mean(cec[known]),
        cec_floor=_mean(floor[known]),
        cec_above_floor=_mean(above[known]),
        flips=int(flip[known].sum()),
        regimes=tuple(np.bincount(regime[known], minlength=len(cec_score.REGIMES)).tolist()),
    )


def summary(scored: tuple[Scored, ...], theta: float = THETA) -> dict[str, float]:
    """The same as a mapping, shares in percent of the pairs; those without a score in percent of the rows."""
    found = consistency(scored, theta)
    pairs = found.pairs or np.nan
    return {
        "cec": found.cec,
        "cec_floor": found.cec_floor,
        "cec_above_floor": found.cec_above_floor,
        "flip_percent": 100 * found.flips / pairs,
        "unscored_percent": 100 * found.unscored / max(found.pairs + found.unscored, 1),
        **{
            f"regime_{name.lower()}_percent": 100 * count / pairs
            for name, count in zip(cec_score.REGIMES, found.regimes, strict=True)
        },
    }


def _mean(values: Floats) -> float:
    """Over those that have a value; NaN if none has."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
