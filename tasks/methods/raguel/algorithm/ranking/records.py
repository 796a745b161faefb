"""Records of a ranking: positions, targets, costs, and the rules of their modification.

Scope: the list before it is re-ranked. The caller leaves out rows without a cost.
"""

from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.recourse.actions import Actions, make_actions
from tasks.counterfactuals.algorithm.recourse.targets import Boundary, Targets
from tasks.methods.raguel.algorithm.recourse import moves
from tasks.methods.raguel.algorithm.recourse.moves import Listed, Rules
from tasks.numerics.arrays import Floats, Ints, Longs


@dataclass(frozen=True)
class Records:
    """``n`` records with ``d`` attributes. Among equal costs the record that comes first here is ranked first."""

    values: Floats
    """``(n, d)``."""
    target: Floats
    """``(n, d)`` counterfactual points."""
    cost: Floats
    """``(n,)`` recourse costs."""
    rate: Floats
    """``(n,)`` cost per unit of distance, see ``Targets``."""
    group: Ints
    """``(n,)``."""
    rules: Rules

    def rows(self, chosen: Longs) -> "Records":
        """The same of some records, ``(r,)``."""
        return Records(
            self.values.take(chosen, axis=0),
            self.target.take(chosen, axis=0),
            self.cost.take(chosen),
            self.rate.take(chosen),
            self.group.take(chosen),
            self.rules,
        )

    def listed(self, order: Longs) -> Listed:
        """Records by rank, ``(n,)``, as the kernels read them; these are copies and may be written over."""
        ranked = self.rows(order)
        return moves.listed(ranked.cost, ranked.group, ranked.values, ranked.target, ranked.rate)

    def ranked(self) -> Longs:
        """``(n,)`` records by rank: ascending cost, then as they come.

        Sorted without regard to ties, which are put in order afterwards: several times as fast as a stable sort.
        """
        order = np.argsort(self.cost)
        cost = self.cost[order]
        same = cost[1:] == cost[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        order[tied] = order[tied][np.lexsort((order[tied], cost[tied]))]
        return order


def make_records(
    values: Floats, targets: Targets, group: Ints, actions: Actions, boundary: Boundary | None = None, together: int = 3
) -> Records:
    """Records with their targets, and the rules by which they are modified.

    Args:
        values: ``(n, d)``.
        targets: Of the same records; all reached.
        group: ``(n,)``.
        actions: Weights and steps; bounds and directions are kept because no attribute passes its target.
        boundary: Where given, a modified record costs the cheapest way from where it is to the boundary, as
            ``to_boundary`` has it. Otherwise, as for targets in steps or from elsewhere, what is left to its target.
        together: Most attributes that one offer changes (the paper shows the order for up to three).

    Raises:
        ValueError: If a record has no cost, lengths differ or fewer than one attribute may be changed together.
    """
    if not (len(values) == len(targets.cost) == len(group)) or not targets.reached.all() or together < 1:
        raise ValueError(
            f"{len(values)} records, {len(targets.cost)} targets of which {int(targets.reached.sum())} are reached, "
            f"{len(group)} groups, {together} attributes together; leave refused records out first"
        )
    return Records(
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(targets.point, np.float64),
        np.ascontiguousarray(targets.cost, np.float64),
        np.ascontiguousarray(targets.rate, np.float64),
        np.ascontiguousarray(group, np.int32),
        _rules(actions, boundary, together),
    )


def of_costs(cost: Floats, group: Ints) -> Records:
    """Records of which only the costs are known: each has its cost as its one attribute, to be lowered at will to 0."""
    values = np.ascontiguousarray(cost, np.float64)[:, None]
    targets = Targets(np.zeros_like(values), values[:, 0], np.ones(len(values)))
    return make_records(values, targets, group, make_actions([1.0]))


def _rules(actions: Actions, boundary: Boundary | None, together: int) -> Rules:
    nowhere = np.zeros(len(actions.weight))
    line = boundary or Boundary(nowhere, 0.0)
    order = np.argsort(actions.weight, kind="stable")
    return Rules(
        order[actions.changeable[order]].astype(np.int64),
        actions.step,
        actions.weight,
        line.under(actions),
        boundary is not None,
        boundary is None or actions.unbounded,
        float(np.sqrt(line.pull(actions) @ line.slope)),
        together,
    )
