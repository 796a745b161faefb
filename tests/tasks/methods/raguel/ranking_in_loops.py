"""RAGUEL in plain Python: costs, fairness and both algorithms read off the paper and its spec, for tests to compare.

Nothing is compiled, pruned or remembered here, and nothing is imported from the code under test.
"""

import itertools
import math
from dataclasses import dataclass, field


def cost_to_boundary(x, slope, intercept, weight, lower, upper, direction):
    """The cheapest way under bounds, by bisection on the multiplier (section 3.5.1); inf if there is none."""
    score = intercept
    for a, value in zip(slope, x, strict=True):
        score += a * value
    if score == 0:
        return 0.0

    def room(j):
        up = (slope[j] > 0) != (score > 0)
        if weight[j] == 0 or slope[j] == 0 or direction[j] == (-1 if up else 1):
            return 0.0
        return max(0.0, upper[j] - x[j] if up else x[j] - lower[j])

    rooms = [room(j) for j in range(len(x))]

    def moves(multiplier):
        return [min(multiplier * abs(a) / w, r) if r else 0.0 for a, w, r in zip(slope, weight, rooms, strict=True)]

    def gained(multiplier):
        return sum(abs(a) * d for a, d in zip(slope, moves(multiplier), strict=True))

    if gained(1e12) < abs(score) * (1 - 1e-9):
        return math.inf
    low, high = 0.0, 1.0
    while gained(high) < abs(score) and high < 1e12:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gained(middle) < abs(score) else (low, middle)
    return math.sqrt(sum(w * d * d for w, d in zip(weight, moves(high), strict=True)))


def fairly_represented(counts, shares, bounded, tolerance):
    """Definition 3.1, with the whole numbers next to p m where the interval holds none; singletons are fair."""
    return violation(counts, shares, bounded, tolerance) == 0


def violation(counts, shares, bounded, tolerance):
    """Records by which the groups are out of their bounds."""
    m, total = sum(counts), 0
    if m < 2:
        return 0
    for count, p, counts_at_all in zip(counts, shares, bounded, strict=True):
        if counts_at_all:
            fair = [k for k in range(m + 1) if (p - tolerance * p) * m - 1e-9 <= k <= (p + tolerance * p) * m + 1e-9]
            fair = fair or [math.floor(p * m), math.ceil(p * m)]
            total += min(abs(count - k) for k in fair)
    return total


def ratio(costs, groups):
    """Equations 1 and 4."""
    means = [mean([c for c, g in zip(costs, groups, strict=True) if g == each]) for each in set(groups)]
    return min(means) / max(means) if means and max(means) > 0 else 1.0


def mean(values):
    return sum(values) / len(values)


@dataclass
class World:
    """A list, its bounds and its rules."""

    values: list
    target: list
    cost: list
    group: list
    groups: int
    shares: list
    bounded: list
    tolerance: float
    order: list
    """Attributes by weight."""
    step: list
    of: object
    """Cost of (values, record)."""
    together: int = 3
    worst: int = 0
    direction: str = "worse_off"
    after: list = field(default_factory=list)

    def __post_init__(self):
        means = [[c for c, g in zip(self.cost, self.group, strict=True) if g == each] for each in range(self.groups)]
        means = [mean(costs) if costs else -math.inf for costs in means]
        self.worst = means.index(max(means))
        self.after = [list(x) for x in self.values]

    def ranked(self):
        return sorted(range(len(self.cost)), key=lambda i: (self.cost[i], i))

    def may_move(self, group):
        return self.direction == "both" or group == self.worst

    def out(self, members):
        counts = [sum(self.group[i] == g for i in members) for g in range(self.groups)]
        return violation(counts, self.shares, self.bounded, self.tolerance)

    def modify(self, i, floor, limit):
        """Singles, pairs, threes in order of weight; all but the last as far as allowed, the last the fewest steps."""
        x, aim = self.values[i], self.target[i]
        most = [math.floor(abs(t - v) / s + 1e-9) for t, v, s in zip(aim, x, self.step, strict=True)]
        movable = [j for j in self.order if most[j] > 0]
        for size in range(1, self.together + 1):
            for chosen in itertools.combinations(movable, size):
                for steps in range(1, most[chosen[-1]] + 1):
                    changed = list(x)
                    for j in chosen[:-1]:
                        changed[j] = x[j] + math.copysign(most[j] * self.step[j], aim[j] - x[j])
                    j = chosen[-1]
                    changed[j] = x[j] + math.copysign(steps * self.step[j], aim[j] - x[j])
                    cost = self.of(changed, i)
                    if cost <= limit:
                        if cost >= floor:
                            return changed, cost
                        break
        return None


def algorithm_1(world, rule="improve", failure="skip", delta=0.1, probes=200):
    """Re-ranking record by record; the order, the costs after, the ranks left unfair, and the rank of the exit."""
    left, done, failed, cost = world.ranked(), [], [], list(world.cost)
    while left:
        x = left[0]
        unfair = world.out([*done, x])
        chosen = x
        if unfair > 0:
            chosen = _fetched(world, left, done, cost, unfair, rule, delta, probes)
            if chosen is None:
                if failure == "exit":
                    return [*done, *left], cost, [*failed, len(done) + 1], len(done) + 1
                chosen = x
            if world.out([*done, chosen]) > 0:
                failed.append(len(done) + 1)
        left.remove(chosen)
        done.append(chosen)
    return done, cost, failed, None


def _fetched(world, left, done, cost, unfair, rule, delta, probes):
    x = left[0]
    out = {g: world.out([*done, i]) for i in left for g in [world.group[i]] if world.may_move(g)}
    if not out or min(out.values()) >= unfair:
        return None
    best = min(out.values())
    candidates = [y for y in left if out.get(world.group[y]) == best][:probes]
    for y in candidates:
        found = world.modify(y, 0.0, cost[x] * (1 - 1e-9)) if cost[x] > 0 else None
        if found is None:
            continue
        groups = [world.group[i] for i in [*done, y]]
        then = ratio([*(cost[i] for i in done), found[1]], groups)
        unmodified = ratio([*(cost[i] for i in done), cost[y]], groups)
        if then >= 1 - delta - 1e-12 or (rule == "improve" and then >= unmodified - 1e-12):
            world.after[y], cost[y] = found
            return y
    return None


def algorithm_2(world, size, least_ratio=0.0):
    """Re-ranking block by block; blocks as lists of records, the costs after, and the blocks that were left unfair.

    ``swaps`` in the result holds, for each, the ratio of the block just before and just after.
    """
    ranked = world.ranked()
    blocks = [ranked[i : i + size] for i in range(0, len(ranked), size)]
    edges = [world.cost[block[-1]] for block in blocks]
    cost, crossed, left, swaps = list(world.cost), set(), [], []
    for b in range(len(blocks) - 1):
        here, following = blocks[b], blocks[b + 1]
        while world.out(here) > 0:
            swapped = _swapped(world, here, following, edges[b], cost, crossed, least_ratio)
            if swapped is None:
                left.append(b)
                break
            swaps.append(swapped)
            for block in (here, following):
                block.sort(key=lambda i: (cost[i], i))
    return blocks, cost, left, swaps


def _swapped(world, here, following, edge, cost, crossed, least_ratio):
    over, under = _sides(world, here)
    leaving = [i for i in here if world.group[i] in over and i not in crossed]
    if not leaving:
        return None
    z = leaving[-1]
    before = ratio([cost[i] for i in here], [world.group[i] for i in here])
    for y in [i for i in following if i not in crossed and world.group[i] in under and world.may_move(world.group[i])]:
        then = [i for i in here if i != z]
        if world.out([*then, y]) >= world.out(here):
            continue
        low, high = _equation_3(world, here, z, world.group[y], cost, before, least_ratio)
        high = min(high, edge * (1 + 1e-9))
        found = (world.values[y], cost[y]) if low <= cost[y] <= high else world.modify(y, low, high)
        if found is None:
            continue
        world.after[y], cost[y] = list(found[0]), found[1]
        here.remove(z)
        here.append(y)
        following.remove(y)
        following.append(z)
        crossed |= {y, z}
        after = ratio([cost[i] for i in here], [world.group[i] for i in here])
        return before, after, _degenerate(world, then, z, world.group[y], cost)
    return None


def _sides(world, members):
    m = len(members)
    counts = [sum(world.group[i] == g for i in members) for g in range(world.groups)]
    over, under = set(), set()
    for g in range(world.groups):
        if world.bounded[g]:
            fair = [
                k for k in range(m + 1) if abs(k - world.shares[g] * m) <= world.tolerance * world.shares[g] * m + 1e-9
            ]
            fair = fair or [math.floor(world.shares[g] * m), math.ceil(world.shares[g] * m)]
            over |= {g} if counts[g] > max(fair) else set()
            under |= {g} if counts[g] < min(fair) else set()
    others = set(range(world.groups))
    over = over or {g for g in others - under if counts[g] > world.shares[g] * m}
    under = under or {g for g in others - over if counts[g] < world.shares[g] * m}
    return over, under


def _equation_3(world, here, z, group, cost, before, least_ratio):
    own = [cost[i] for i in here if world.group[i] == group]
    rest = {}
    for i in here:
        if i != z and world.group[i] != group:
            rest.setdefault(world.group[i], []).append(cost[i])
    means = [mean(costs) for costs in rest.values()]
    wanted = (
        least_ratio if _degenerate(world, [i for i in here if i != z], z, group, cost) else max(before, least_ratio)
    )
    if wanted == 0 or not means:
        return 0.0, math.inf
    if min(means) < wanted * max(means) * (1 - 1e-9):
        return math.inf, -math.inf
    n = len(own) + 1
    return max(0.0, n * wanted * max(means) * (1 - 1e-9) - sum(own)), n * min(means) / wanted * (1 + 1e-9) - sum(own)


def _degenerate(world, then, z, group, cost):
    """Whether a swap is accepted for representation alone: n1 = 0, C1 = 0 or C2 = 0 before it."""
    own = [cost[i] for i in then if world.group[i] == group]
    others = [cost[i] for i in [*then, z] if world.group[i] != group]
    return not own or sum(own) == 0 or sum(others) == 0


def any_depth(world, size, least_ratio=0.0, probes=200):
    """Blocks filled one after the other, the worst-off group from any depth; blocks, costs, blocks left unfair."""
    remaining, cost, blocks, left = world.ranked(), list(world.cost), [], []
    while remaining:
        here, remaining = remaining[:size], remaining[size:]
        first, edge, back, last = list(here), cost[here[-1]], [], not remaining
        wanted = _wanted(world, blocks, here)
        while not last and (world.out(here) > 0 or (back and _of_worst(world, here) < wanted)):
            swapped = _from_any_depth(world, here, first, remaining, edge, cost, least_ratio, probes)
            if swapped is None:
                if world.out(here) > 0:
                    left.append(len(blocks))
                break
            y, z = swapped
            here = [i for i in here if i != z] + [y]
            first = first[: first.index(z)]
            remaining.remove(y)
            back.append(z)
        blocks.append(sorted(here, key=lambda i: (cost[i], i)))
        remaining = sorted(back, key=world.ranked().index) + remaining
    return blocks, cost, left


def _of_worst(world, here):
    return sum(world.group[i] == world.worst for i in here)


def _wanted(world, blocks, here):
    """What gives the worst-off group its share so far, as near as the bounds of this block allow."""
    before = [i for block in blocks for i in block]
    p, m = world.shares[world.worst], len(here)
    wanted = round(p * (len(before) + m)) - _of_worst(world, before)
    if not world.bounded[world.worst]:
        return wanted
    fair = [k for k in range(m + 1) if abs(k - p * m) <= world.tolerance * p * m + 1e-9]
    fair = fair or [math.floor(p * m), math.ceil(p * m)]
    return min(fair, key=lambda k: abs(k - wanted))


def _from_any_depth(world, here, first, remaining, edge, cost, least_ratio, probes):
    over, under = _sides(world, here)
    leaving = [i for i in first if world.group[i] in over and world.group[i] != world.worst]
    if not leaving or (world.worst not in under and world.out(here) > 0):
        return None
    z, before = leaving[-1], ratio([cost[i] for i in here], [world.group[i] for i in here])
    for y in [i for i in remaining if world.group[i] == world.worst][:probes]:
        if world.out([*(i for i in here if i != z), y]) >= max(world.out(here), 1):
            return None
        low, high = _equation_3(world, here, z, world.worst, cost, before, least_ratio)
        high = min(high, edge * (1 + 1e-9))
        found = (world.values[y], cost[y]) if low <= cost[y] <= high else world.modify(y, low, high)
        if found is not None:
            world.after[y], cost[y] = list(found[0]), found[1]
            return y, z
    return None
