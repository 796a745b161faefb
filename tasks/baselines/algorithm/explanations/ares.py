"""AReS: a small set of if-then rules that says to a group what to change.

After Rawal and Lakkaraju, "Beyond Individualized Recourse: Interpretable and Interactive Summaries of Actionable
Recourses" (2020), section 3: conditions are frequent itemsets, a rule takes an applicant for whom the first itemset
holds to the second one of the same features, and rules are chosen by a submodular objective under a limit on their
number, by local search. The objective adds up applicants whom some rule is about, less those of a rule whose decision
it does not change, less the rules' costs and changed features (their equations of section 3.2, without subgroup
descriptors). Written from the paper alone.

Scope: rules and their choice. Itemsets: ``itemsets``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.baselines.algorithm.explanations import itemsets
from tasks.baselines.algorithm.explanations.itemsets import Binned, Itemset
from tasks.baselines.algorithm.explanations.kind import Proposals, Refused, proposals
from tasks.numerics.arrays import Bools, Floats, Longs

PER_COST: Final = 1.0
PER_CHANGE: Final = 0.1
"""What the mean L2 cost of a rule, and each feature that it changes, count against one applicant."""


@dataclass(frozen=True)
class _Rules:
    """Candidate rules, ``m`` of them, on ``f`` applicants."""

    applies: Bools
    """``(m, f)``."""
    flips: Bools
    """``(m, f)`` whether the rule changes the decision."""
    cost: Floats
    """``(m, f)`` L2 distance, ``inf`` where the rule does not apply."""
    price: Floats
    """``(m,)`` what the rule takes off the objective, alone of all others."""
    pairs: tuple[tuple[Itemset, Itemset], ...]


@dataclass(frozen=True)
class Ares:
    """AReS with its sizes."""

    rules: int = 10
    """Most rules."""
    support: float = 0.05
    """Least share of rows for which an itemset holds."""
    length: int = 3
    """Most features of a rule."""
    starts: int = 5
    """Local searches, each but the first from rules drawn at random; the best is kept."""

    def __call__(self, refused: Refused, rng: np.random.Generator) -> Proposals:
        """Makes rules, chooses some, and proposes to each applicant the cheapest that changes the decision."""
        cut = itemsets.binned(refused.rows, refused.feature)
        rules = _made(refused, cut, list(self._pairs(refused, cut)))
        chosen = self._chosen(rules, rng)
        return _proposed(refused, cut, rules, chosen)

    def _pairs(self, refused: Refused, cut: Binned) -> Iterator[tuple[Itemset, Itemset]]:
        """Two itemsets of the same features: one frequent among the refused, one among those accepted."""
        rows = refused.rows[refused.accepted(refused.rows)]
        if not len(refused.values) or not len(rows):
            return
        first = itemsets.frequent(cut.of(refused.values), self.support, self.length)
        then = itemsets.by_features(list(itemsets.frequent(cut.of(rows), self.support, self.length)))
        for items in first:
            yield from ((items, other) for other in then.get(itemsets.features_of(items), ()) if other != items)

    def _chosen(self, rules: _Rules, rng: np.random.Generator) -> list[int]:
        """The best set of rules of several local searches."""
        if not len(rules.price):
            return []
        begun: list[list[int]] = [[]]
        count = min(self.rules, len(rules.price))
        begun += [rng.choice(len(rules.price), count, replace=False).tolist() for _ in range(self.starts - 1)]
        ended = [_searched(rules, start, self.rules) for start in begun]
        return max(ended, key=lambda chosen: _worth(rules, chosen))


def _made(refused: Refused, cut: Binned, pairs: Sequence[tuple[Itemset, Itemset]]) -> _Rules:
    """Rules that change the decision of somebody."""
    codes = cut.of(refused.values)
    kept, applies, flips, costs, price = [], [], [], [], []
    for first, then in pairs:
        held = np.all([codes[:, at] == value for at, value in first], axis=0)
        rows = np.flatnonzero(held)
        point = _changed(refused.values[rows], cut, first, then)
        flipped = refused.accepted(point)
        if not flipped.any():
            continue
        length = np.sqrt(((point - refused.values[rows]) ** 2).sum(axis=1))
        kept.append((first, then))
        applies.append(held)
        flips.append(np.isin(np.arange(len(codes)), rows[flipped]))
        costs.append(_of_rows(length, rows, len(codes)))
        changed = sum(one != other for one, other in zip(first, then, strict=True))
        price.append(float((~flipped).sum()) + PER_COST * float(length.mean()) + PER_CHANGE * changed)
    shape = (len(kept), len(codes))
    return _Rules(
        np.array(applies, np.bool_).reshape(shape),
        np.array(flips, np.bool_).reshape(shape),
        np.array(costs).reshape(shape),
        np.array(price),
        tuple(kept),
    )


def _of_rows(length: Floats, rows: Longs, size: int) -> Floats:
    """``(f,)`` costs of those to whom a rule applies, ``inf`` of the others."""
    out = np.full(size, np.inf)
    out[rows] = length
    return out


def _changed(values: Floats, cut: Binned, first: Itemset, then: Itemset) -> Floats:
    """Rows after a rule: the features whose value differs take the other value's columns."""
    point = values.copy()
    for one, other in zip(first, then, strict=True):
        if one != other:
            point[:, cut.columns[other[0]]] = cut.values[other[0]][other[1]]
    return point


def _worth(rules: _Rules, chosen: Sequence[int]) -> float:
    """The objective: applicants whom some rule is about, less what the rules take off."""
    if not len(chosen):
        return 0.0
    return float(rules.applies[list(chosen)].any(axis=0).sum() - rules.price[list(chosen)].sum())


def _searched(rules: _Rules, start: Sequence[int], most: int) -> list[int]:
    """Local search: drop, add or exchange a rule as long as the objective grows (Lee et al. 2009)."""
    chosen = list(start)
    while True:
        worth = _worth(rules, chosen)
        better, gain = _best_step(rules, chosen, most)
        if gain <= worth + 1e-9:
            return chosen
        chosen = better


def _best_step(rules: _Rules, chosen: list[int], most: int) -> tuple[list[int], float]:
    """The best neighbour of a set of rules, and its objective."""
    options = [[each for each in chosen if each != out] for out in chosen]
    bases = options if len(chosen) >= most else [chosen, *options]
    best, top = max(((base, _worth(rules, base)) for base in options), key=lambda one: one[1], default=([], 0.0))
    for base in bases:
        covered = rules.applies[base].any(axis=0)
        worth = covered.sum() - rules.price[base].sum() + (rules.applies[:, ~covered].sum(axis=1) - rules.price)
        add = int(worth.argmax())
        if worth[add] > top and add not in base:
            best, top = [*base, add], float(worth[add])
    return best, top


def _proposed(refused: Refused, cut: Binned, rules: _Rules, chosen: Sequence[int]) -> Proposals:
    """Each applicant's cheapest rule that changes the decision; where none does, the cheapest that applies."""
    picked = list(chosen)
    if not picked:
        return proposals(refused, refused.values, np.full(len(refused.values), -1, np.int32), 0)
    cost = rules.cost[picked] + np.where(rules.flips[picked], 0.0, len(refused.feature))
    best = cost.argmin(axis=0)
    number = np.where(np.isfinite(cost.min(axis=0)), best, -1).astype(np.int32)
    point = refused.values.copy()
    for at, rule in enumerate(picked):
        rows = np.flatnonzero(number == at)
        point[rows] = _changed(refused.values[rows], cut, *rules.pairs[rule])
    words = tuple(f"if {rules.pairs[rule][0]} then {rules.pairs[rule][1]}" for rule in picked)
    return proposals(refused, point, number, len(picked), words)
