"""Small lists for the tests of re-ranking, each as the code reads it and as plain loops do."""

import math

import numpy as np
from ranking_in_loops import World, cost_to_boundary

from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import Boundary, make_actions
from tasks.methods.raguel.algorithm.representation import make_records, representation

KINDS = ("boundary", "bounded", "common", "given")


def drawn(seed, n, groups, tolerance, kind, direction="worse_off", d=4):
    """A list on a grid of quarters with many ties, and the same for plain loops."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-8, 9, (n, d)) / 4
    group = np.minimum(rng.integers(0, groups + 1, n), groups - 1).astype(np.int32)
    values += rng.choice([0.0, 0.5]) * group[:, None]
    values[rng.random(n) < 0.2] = values[0]
    bounds = {"lower": -2.5, "upper": 3.5, "direction": rng.choice([-1, 0, 0, 0, 1], d)} if kind == "bounded" else {}
    free = rng.random(d) < 0.8
    actions = make_actions(rng.uniform(0.1, 1, d), changeable=free, step=rng.choice([0.25, 0.5, 1.0], d), **bounds)
    boundary = Boundary(rng.normal(size=d), float(rng.normal()))
    found = _targets(kind, values, boundary, actions, rng)
    kept = np.flatnonzero(found.reached)
    values, group = values[kept], group[kept]
    found = recourse.Targets(found.point[kept], found.cost[kept], found.rate[kept])
    to_boundary = kind in ("boundary", "bounded")
    records = make_records(values, found, group, actions, boundary if to_boundary else None)
    held = representation(group, groups, 0, tolerance)
    world = World(
        values=values.tolist(),
        target=found.point.tolist(),
        cost=found.cost.tolist(),
        group=group.tolist(),
        groups=groups,
        shares=held.shares.tolist(),
        bounded=held.bounded.tolist(),
        tolerance=tolerance,
        order=sorted(np.flatnonzero(free).tolist(), key=lambda j: (actions.weight[j], j)),
        step=actions.step.tolist(),
        of=_cost_of(kind, boundary, actions, found),
        direction=direction,
    )
    return records, held, world, actions


def _targets(kind, values, boundary, actions, rng):
    if kind in ("boundary", "bounded"):
        return recourse.to_boundary(values, boundary, actions)
    if kind == "common":
        return recourse.given(values, np.full(values.shape, 2.1), actions)
    points = values + rng.normal(size=values.shape)
    return recourse.given(values, points, actions, rng.uniform(0.5, 2, len(values)))


def _cost_of(kind, boundary, actions, found):
    weight = actions.weight.tolist()
    if kind in ("boundary", "bounded"):
        given = boundary.slope.tolist(), boundary.intercept, weight, actions.lower, actions.upper, actions.direction
        return lambda x, _: cost_to_boundary(x, *given)

    def distance(x, i):
        squared = sum(w * (v - t) ** 2 for w, v, t in zip(weight, x, found.point[i], strict=True))
        return found.rate[i] * math.sqrt(squared)

    return distance


def check_offers(records, reranked, actions):
    """Whole steps towards the target and never past it, nothing immutable, no more attributes at once than allowed."""
    delta, way = reranked.values - records.values, records.target - records.values
    assert (delta[:, ~actions.changeable] == 0).all()
    assert (delta * way >= 0).all()
    assert (np.abs(delta) <= np.abs(way) + 1e-9).all()
    stepped = actions.step > 0
    steps = delta[:, stepped] / actions.step[stepped]
    assert np.abs(steps - np.round(steps)).max(initial=0) < 1e-9
    assert (delta != 0).sum(axis=1).max(initial=0) <= records.rules.together
    changed = delta != 0
    assert (~changed | ((reranked.values >= actions.lower) & (reranked.values <= actions.upper))).all()
    assert (~changed | (delta * actions.direction >= 0)).all()
