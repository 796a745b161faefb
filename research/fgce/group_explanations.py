"""Group explanations that FGCE is compared with: AReS and GLOBE-CE."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# The kind "group explanation": in: applicants that a model refuses; out: the change proposed to each of them.
#
# Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.


IMMUTABLE: Final = 2
"""Direction of a column that may not change; 1 is only up, -1 only down, 0 free."""

NO_CHANGE: Final = "no explanation changes the decision"


@dataclass(frozen=True)
class Refused:
    """``f`` applicants to explain, among ``n`` rows with ``p`` encoded columns in [0, 1]."""

    values: Floats
    """``(f, p)`` the applicants that the model refuses."""
    rows: Floats
    """``(n, p)`` rows that values and frequencies are taken from."""
    feature: Ints
    """``(p,)`` number of the feature of each column; the columns of a one-hot set share one."""
    logit: Callable[[Floats], Floats]
    """The model's logit ``(r,)`` of rows ``(r, p)``; at 0 and above it accepts."""
    direction: Ints | None = None
    """``(p,)`` how a column may change, for systems that use the rules; None for systems that do not."""

    @property
    def sets(self) -> tuple[Longs, ...]:
        """Columns of each one-hot set: of each feature with several columns."""
        numbers, counts = np.unique(self.feature, return_counts=True)
        return tuple(np.flatnonzero(self.feature == number) for number in numbers[counts > 1])

    def accepted(self, points: Floats) -> Bools:
        """``(r,)`` whether the model accepts each of ``(r, p)``."""
        decided: Bools = self.logit(points) >= 0
        return decided


@dataclass(frozen=True)
class Proposals:
    """What is proposed to ``f`` applicants."""

    point: Floats
    """``(f, p)``; the applicant's own values where there is no proposal."""
    explanation: Ints
    """``(f,)`` number of the explanation, a rule or a direction, that the proposal is from; -1 for none."""
    cost: Floats
    """``(f,)`` L2 distance to the proposal, in encoded units; NaN where there is none that the model accepts."""
    refusal: NDArray[np.str_]
    """``(f,)`` empty, or why there is no proposal that the model accepts."""
    explanations: int
    """Number of explanations that the group is given."""
    details: tuple[str, ...] = field(default=())
    """The explanations in words of columns, as far as the system has any."""

    @property
    def valid(self) -> Bools:
        """``(f,)`` whether the model accepts the proposal."""
        return np.isfinite(self.cost)


class GroupExplanation(Protocol):
    """A system that explains a group."""

    def __call__(self, refused: Refused, rng: np.random.Generator) -> Proposals:
        """The proposals; the same applicants and the same state of the generator, the same proposals."""
        ...


def proposals(
    refused: Refused, point: Floats, explanation: Ints, explanations: int, details: tuple[str, ...] = ()
) -> Proposals:
    """Proposals; those that the model does not accept have a refusal.

    Args:
        refused: The applicants.
        point: ``(f, p)``.
        explanation: ``(f,)``, -1 for none.
        explanations: Number of explanations.
        details: The explanations in words.
    """
    proposed = explanation >= 0
    points = np.where(proposed[:, None], point, refused.values)
    valid = proposed & refused.accepted(points)
    length = np.sqrt(((points - refused.values) ** 2).sum(axis=1))
    return Proposals(
        points,
        explanation.astype(np.int32),
        np.where(valid, length, np.nan),
        np.where(valid, "", NO_CHANGE),
        explanations,
        details,
    )


# --------------------------------------------------------------------------------------------------------------------
# Frequent itemsets of binned columns: the conditions from which AReS makes its rules.
#
# An item is a feature with one of its values: a category, or an equal-width bin of a number. Scope: the search by
# length (Agrawal and Srikant 1994, Apriori).


BINS: Final = 10
"""Equal-width bins of a column with more values than that."""

Itemset = tuple[tuple[int, int], ...]
"""Pairs of feature and value, features ascending."""


@dataclass(frozen=True)
class Binned:
    """The values of rows by feature, and what each value is in encoded columns."""

    columns: tuple[Ints, ...]
    """For each feature its encoded columns."""
    values: tuple[Floats, ...]
    """For each feature ``(values, columns)``: the encoded columns of each value."""
    edges: tuple[Floats, ...]
    """For each feature where its bins end; empty for categories and for few values."""

    def of(self, rows: Floats) -> Ints:
        """``(r, features)`` number of each row's value."""
        places = []
        for columns, values, edges in zip(self.columns, self.values, self.edges, strict=True):
            feature_values = rows[:, columns]
            if len(columns) > 1:
                places.append(feature_values.argmax(axis=1))
            elif len(edges):
                places.append(np.searchsorted(edges, feature_values[:, 0], side="left"))
            else:
                places.append(np.abs(feature_values - values[:, 0]).argmin(axis=1))
        return np.column_stack([place.astype(np.int32) for place in places]).astype(np.int32)


def binned(rows: Floats, feature: Ints) -> Binned:
    """Bins of ``(n, p)`` rows; ``feature`` is ``(p,)``. The value of a bin is the mean of the rows in it."""
    columns, values, edges = [], [], []
    for number in np.unique(feature):
        feature_columns = np.flatnonzero(feature == number).astype(np.int32)
        columns.append(feature_columns)
        column, ends = rows[:, feature_columns[0]], np.zeros(0)
        distinct = np.unique(column)
        if len(feature_columns) > 1:
            bin_values = np.eye(len(feature_columns))
        elif len(distinct) <= BINS:
            bin_values = distinct[:, None]
        else:
            ends = np.linspace(distinct[0], distinct[-1], BINS + 1)[1:-1]
            place = np.searchsorted(ends, column, side="left")
            middle = (np.concatenate([distinct[:1], ends]) + np.concatenate([ends, distinct[-1:]])) / 2
            means = [column[place == at].mean() if (place == at).any() else middle[at] for at in range(BINS)]
            bin_values = np.array(means)[:, None]
        values.append(bin_values)
        edges.append(ends)
    return Binned(tuple(columns), tuple(values), tuple(edges))


def frequent(codes: Ints, support: float, length: int) -> Mapping[Itemset, Bools]:
    """Itemsets that hold for a share of rows.

    Args:
        codes: ``(n, features)`` number of each value.
        support: Least share of rows.
        length: Most items.

    Returns:
        By itemset the rows ``(n,)`` for which it holds; none of no rows.
    """
    least = max(support * len(codes), 1)
    every: dict[Itemset, Bools] = {
        ((at, int(value)),): codes[:, at] == value for at in range(codes.shape[1]) for value in np.unique(codes[:, at])
    }
    single = {items: mask for items, mask in every.items() if mask.sum() >= least}
    itemsets, longest = dict(single), single
    for _ in range(length - 1):
        longer = {}
        for items, mask in longest.items():
            for (item,), item_mask in single.items():
                if item[0] > items[-1][0] and (mask & item_mask).sum() >= least:
                    longer[(*items, item)] = mask & item_mask
        longest = longer
        itemsets |= longest
    return itemsets


def features_of(items: Itemset) -> tuple[int, ...]:
    """The features of an itemset."""
    return tuple(feature for feature, _ in items)


def by_features(itemsets: Sequence[Itemset]) -> dict[tuple[int, ...], list[Itemset]]:
    """Itemsets by their features."""
    grouped: dict[tuple[int, ...], list[Itemset]] = {}
    for items in itemsets:
        grouped.setdefault(features_of(items), []).append(items)
    return grouped


# --------------------------------------------------------------------------------------------------------------------
# AReS: a small set of if-then rules of changes for a group.
#
# After Rawal and Lakkaraju, "Beyond Individualized Recourse: Interpretable and Interactive Summaries of Actionable
# Recourses" (2020), section 3: conditions are frequent itemsets, a rule takes an applicant for whom the first itemset
# holds to the second one of the same features, and rules are chosen by a submodular objective under a limit on their
# number, by local search. The objective adds up applicants whom some rule is about, less those of a rule whose decision
# it does not change, less the rules' costs and changed features (their equations of section 3.2, without subgroup
# descriptors). Written from the paper alone.
#
# Scope: rules and their choice. Itemsets: ``itemsets``.


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
        cut = binned(refused.rows, refused.feature)
        # itemsets of the same features: one frequent among the refused, one among those accepted
        accepted, pairs = refused.rows[refused.accepted(refused.rows)], list[tuple[Itemset, Itemset]]()
        if len(refused.values) and len(accepted):
            first = frequent(cut.of(refused.values), self.support, self.length)
            then = by_features(list(frequent(cut.of(accepted), self.support, self.length)))
            for items in first:
                pairs += [(items, other) for other in then.get(features_of(items), ()) if other != items]
        rules = _make_rules(refused, cut, pairs)
        if not len(rules.price):
            return proposals(refused, refused.values, np.full(len(refused.values), -1, np.int32), 0)
        starts: list[list[int]] = [[]]
        count = min(self.rules, len(rules.price))
        starts += [rng.choice(len(rules.price), count, replace=False).tolist() for _ in range(self.starts - 1)]
        searches = [_searched(rules, start, self.rules) for start in starts]
        picked = max(searches, key=lambda chosen: _worth(rules, chosen))
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


def _make_rules(refused: Refused, cut: Binned, pairs: Sequence[tuple[Itemset, Itemset]]) -> _Rules:
    """Rules that change at least one decision."""
    codes = cut.of(refused.values)
    rules, applies, flips, costs, price = [], [], [], [], []
    for first, then in pairs:
        is_covered = np.all([codes[:, at] == value for at, value in first], axis=0)
        rows = np.flatnonzero(is_covered)
        point = _changed(refused.values[rows], cut, first, then)
        flipped = refused.accepted(point)
        if not flipped.any():
            continue
        length = np.sqrt(((point - refused.values[rows]) ** 2).sum(axis=1))
        rules.append((first, then))
        applies.append(is_covered)
        flips.append(np.isin(np.arange(len(codes)), rows[flipped]))
        # `(f,)` costs of the applicants to which a rule applies, `inf` of the others.
        out = np.full(len(codes), np.inf)
        out[rows] = length
        costs.append(out)
        changed = sum(before != other for before, other in zip(first, then, strict=True))
        price.append(float((~flipped).sum()) + PER_COST * float(length.mean()) + PER_CHANGE * changed)
    shape = (len(rules), len(codes))
    return _Rules(
        np.array(applies, np.bool_).reshape(shape),
        np.array(flips, np.bool_).reshape(shape),
        np.array(costs).reshape(shape),
        np.array(price),
        tuple(rules),
    )


def _changed(values: Floats, cut: Binned, first: Itemset, then: Itemset) -> Floats:
    """Rows after a rule: the features with different values take the columns of the new value."""
    point = values.copy()
    for before, other in zip(first, then, strict=True):
        if before != other:
            point[:, cut.columns[other[0]]] = cut.values[other[0]][other[1]]
    return point


def _worth(rules: _Rules, chosen: Sequence[int]) -> float:
    """The objective: applicants covered by some rule, minus the price of the rules."""
    if not len(chosen):
        return 0.0
    return float(rules.applies[list(chosen)].any(axis=0).sum() - rules.price[list(chosen)].sum())


def _searched(rules: _Rules, start: Sequence[int], most: int) -> list[int]:
    """Local search: drop, add or exchange a rule as long as the objective grows (Lee et al. 2009)."""
    chosen = list(start)
    while True:
        smaller = [[rule for rule in chosen if rule != out] for out in chosen]
        better, gain = max(
            ((base, _worth(rules, base)) for base in smaller), key=lambda candidate: candidate[1], default=([], 0.0)
        )
        for base in smaller if len(chosen) >= most else [chosen, *smaller]:
            covered = rules.applies[base].any(axis=0)
            worth = covered.sum() - rules.price[base].sum() + (rules.applies[:, ~covered].sum(axis=1) - rules.price)
            add = int(worth.argmax())
            if worth[add] > gain and add not in base:
                better, gain = [*base, add], float(worth[add])
        if gain <= _worth(rules, chosen) + 1e-9:
            return chosen
        chosen = better


# --------------------------------------------------------------------------------------------------------------------
# GLOBE-CE: one direction for a whole group, and for each applicant how far to go along it.
#
# After Ley, Mishra and Magazzeni, "GLOBE-CE: A Translation-Based Approach for Global Counterfactual Explanations"
# (2023), sections 3.1 to 3.3: sparse directions are drawn at random, the one that serves most applicants at the least
# mean cost is kept, and each applicant gets the smallest scalar that changes the decision. A one-hot set takes the
# category with the largest value after the move. The authors' code has no licence and was not read.
#
# Numeric columns stay within [0, 1]. The system knows no rules of a step; with ``uses_rules`` it draws only directions
# that the signs of the rules permit, so that not knowing the rules and not meeting them can be distinguished.
#
# Scope: directions and scalars. Whether a step leads to what is proposed: FGCE's ``ablation.proposals``.


FARTHEST: Final = 2.0
"""Largest scalar: a direction's largest entry is 1, and a category changes beyond 1."""


@dataclass(frozen=True)
class GlobeCe:
    """GLOBE-CE with its sizes."""

    translations: int = 1000
    """Directions that are drawn."""
    features: int = 4
    """Most features that a direction changes (the paper's sparsity)."""
    coarse: int = 20
    """Scalars by which directions are compared."""
    fine: int = 60
    """Scalars tried along the chosen one, before the interval is halved."""
    uses_rules: bool = False
    """Whether directions keep to ``Refused.direction``."""
    dense: bool = False
    """Whether each direction changes every feature."""

    def __call__(self, refused: Refused, rng: np.random.Generator) -> Proposals:
        """Draws directions and scales the best; section 3.2, algorithm 1.

        Raises:
            ValueError: The system is told the rules, and there are none.
        """
        sign = np.zeros(len(refused.feature), np.int32)
        if self.uses_rules:
            if refused.direction is None:
                raise ValueError(
                    "GLOBE-CE is to keep to the rules and was given none: set the direction of each column"
                )
            sign = refused.direction
        best, rank = None, (-1, np.inf)
        scalars = _scalars(self.coarse)
        for _ in range(self.translations):
            direction = _draw_direction(refused.feature, sign, None if self.dense else self.features, rng)
            if direction is None:
                break
            points, accepted = _along(refused, direction, scalars)
            is_served = accepted.any(axis=0)
            first = points[accepted.argmax(axis=0), np.arange(len(refused.values))]
            length = np.sqrt(((first - refused.values) ** 2).sum(axis=1))
            reached, cost = int(is_served.sum()), float(length[is_served].mean()) if is_served.any() else np.inf
            # most applicants first, then the least mean cost
            if (reached, -cost) > (rank[0], -rank[1]):
                best, rank = direction, (reached, cost)
        if best is None or not rank[0]:
            none = np.full(len(refused.values), -1, np.int32)
            return proposals(refused, refused.values, none, 0)
        scalar = _smallest(refused, best, _scalars(self.fine))
        served = np.isfinite(scalar)
        point = moved(refused, refused.values, np.where(served, scalar, 0.0)[:, None] * best)
        words = ", ".join(f"{column}: {best[column]:+.3f}" for column in np.flatnonzero(best).tolist())
        return proposals(refused, point, np.where(served, 0, -1).astype(np.int32), 1, (words,))


def _scalars(count: int) -> Floats:
    """Scalars above 0, closer together where they are small: a short way is cheap."""
    return FARTHEST * (np.arange(1, count + 1) / count) ** 2


def _draw_direction(feature: Ints, sign: Ints, most: int | None, rng: np.random.Generator) -> Floats | None:
    """A direction ``(p,)`` of at most ``most`` features, or of all, its largest entry 1; None if none may change."""
    features = np.unique(feature[sign != IMMUTABLE])
    if not len(features):
        return None
    direction = np.zeros(len(feature))
    count = len(features) if most is None else rng.integers(1, min(most, len(features)) + 1)
    for number in rng.choice(features, count, replace=False):
        columns = np.flatnonzero(feature == number)
        if len(columns) > 1:
            direction[rng.choice(columns)] = 1.0
        else:
            entry = rng.uniform(-1, 1)
            direction[columns] = np.abs(entry) * sign[columns] if sign[columns[0]] else entry
    scaled: Floats = direction / np.abs(direction).max()
    return scaled


def moved(refused: Refused, values: Floats, step: Floats) -> Floats:
    """Rows ``(r, p)`` after steps ``(r, p)``: numbers cut to [0, 1], one-hot sets at their largest value."""
    point = np.clip(values + step, 0.0, 1.0)
    for columns in refused.sets:
        raw = (values + step)[:, columns]
        unchanged = raw.max(axis=1, keepdims=True) == raw
        # a tie leaves the category as it was
        place = np.where(unchanged & (values[:, columns] > 0), 2, unchanged).argmax(axis=1)
        point[:, columns] = np.eye(len(columns))[place]
    return point


def _along(refused: Refused, direction: Floats, scalars: Floats) -> tuple[Floats, Bools]:
    """Points ``(s, f, p)`` of everybody along a direction, and whether the model accepts each ``(s, f)``."""
    people = len(refused.values)
    steps = np.repeat(scalars, people)[:, None] * direction
    point = moved(refused, np.tile(refused.values, (len(scalars), 1)), steps)
    shape = len(scalars), people
    return point.reshape(*shape, -1), refused.accepted(point).reshape(shape)


def _smallest(refused: Refused, direction: Floats, scalars: Floats) -> Floats:
    """``(f,)`` smallest scalar of the grid that serves, halved thirty times towards the one before; inf for none."""
    _, accepted = _along(refused, direction, scalars)
    served = accepted.any(axis=0)
    place = accepted.argmax(axis=0)
    high = scalars[place]
    low = np.where(place > 0, scalars[place - 1], 0.0)
    for _ in range(30):
        middle = (low + high) / 2
        enough = refused.accepted(moved(refused, refused.values, middle[:, None] * direction))
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.where(served, high, np.inf)


# --------------------------------------------------------------------------------------------------------------------
# The group explanations by name, as reproductions write them.


EXPLANATIONS: Final[Mapping[str, GroupExplanation]] = {
    "ares": Ares(),
    "globe_ce": GlobeCe(),
    "globe_ce_told": GlobeCe(uses_rules=True),
    "globe_ce_dense": GlobeCe(dense=True),
}
"""``globe_ce_told`` keeps to the signs of the rules, which the paper's system does not know; of
``globe_ce_dense`` each direction changes every feature."""
