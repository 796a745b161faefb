"""Synthetic measures of FGCE, as the stages before the report would leave them. No numbers here mean anything.

One group is too small to be shown, one has optima that were not solved, and one has applications and no factuals.
"""

import math

import numpy as np

WITHHELD = "withheld: a small cell, or one that would give a small cell away"
BOUND = "a bound by the greedy selection"
NOT_COVERED = f"the greedy selection of 1 covers less than 1; {BOUND}"
RULES = ("nothing", "income", "purpose", "epsilon", "every constraint", "every constraint and epsilon")
LIMITS = tuple(np.round(np.arange(0.1, 3.2, 0.5), 1).tolist())
SHARES = (0.25, 0.5, 0.75, 1.0)


class Group:
    """One group of one decision maker, to whose rows measures are added."""

    def __init__(self, rows, maker, name, number, size, reference):
        self.rows, self.maker, self.name, self.number, self.reference = rows, maker, name, number, reference
        self.n = max(4, size // 9)
        self.withheld = self.n < 5
        self.share, self.burden = 0.1 + 0.12 * number, 0.69 + 0.1 * number

    def alone(self, measure, value, *, note="", n=None, **parameters):
        """A measure that is not compared."""
        if self.withheld:
            value, n, note, why = None, None, "", {"reason": WITHHELD}
        else:
            n, why = n or self.n, {}
        self.rows.add("fgce", self.maker, self.name, measure, value, n=n, parameters=parameters, note=note, **why)

    def matched(self, measure, value, **parameters):
        """A measure that is not compared, with its size-matched reference."""
        self.alone(measure, value, **parameters)
        if self.name != self.reference and not self.withheld:
            at = {"reference": self.reference, "parameters": parameters}
            self.rows.add(
                "fgce", self.maker, self.name, f"{measure}_size_matched", 0.7 * value, n=10, spread=0.06, **at
            )

    def beside(self, measure, value, *, note="", **parameters):
        """A measure with its size-matched reference and its comparisons."""
        self.alone(measure, value, note=note, **parameters)
        if self.name == self.reference or self.withheld or value is None:
            return
        compared = {"reference": self.reference, "parameters": parameters, "note": note}
        matched = value * (0.97 if self.number == 1 else 0.7)
        add, tested = self.rows.add, {"p": 0.048, "q": 0.1}
        who = "fgce", self.maker, self.name
        add(*who, f"{measure}_size_matched", matched, n=20, spread=0.06, **compared)
        add(*who, f"{measure}_size_matched_difference", value - matched, n=self.n, **tested, **compared)
        add(*who, f"{measure}_difference", value - 0.1, n=self.n, **compared)
        add(*who, f"{measure}_ratio", value / 0.1, n=self.n, **compared)


def add(rows, maker, sizes, reference, nobody):
    """All measures of a decision maker."""
    for number, (name, size) in enumerate(sizes.items()):
        group = Group(rows, maker, name, number, size, reference)
        for part in (_headline, _coverage, _optima, _selection, _rules):
            part(group)
        if not group.withheld:
            _subgroups(group)
    if maker == "lender":
        for name, size in {**sizes, nobody: 12}.items():
            _connectivity(rows, name, size, reference)


def _headline(group):
    group.beside("infeasible_share", group.share)
    group.beside("burden", group.burden)
    group.beside("burden_at_k", group.burden * 1.2, k=10)


def _coverage(group):
    for k in range(1, 11):
        at_k = (1 - group.share) * (1 - 0.6**k)
        group.beside("coverage_at_k", at_k, k=k)
        group.beside("kauc_saturation", 2.1 + 0.1 * k, k=k)
        for denominator, top in (("all", 1.0), ("feasible", 1 / (1 - group.share))):
            group.beside("kauc", 0.8 * at_k * top, k=k, denominator=denominator)
            for d in LIMITS:
                value = at_k * top * (1 - math.exp(-d / group.burden))
                group.beside("coverage", value, d=d, denominator=denominator, k=k)
    for d in LIMITS:
        group.beside("dauc_saturation", 7.0, d=d)
        for denominator in ("all", "feasible"):
            group.beside("dauc", 0.9 - 0.2 / (d + 1), d=d, denominator=denominator)


def _optima(group):
    solved = group.number < 2
    group.beside("k0", 4.0, note="" if solved else BOUND)
    group.beside("d0", 1.51 + group.number)
    group.beside("d0_at_k0", 1.93 + group.number, note="" if solved else BOUND)
    for c in SHARES:
        group.beside("cauc", 1.0 + c, c=c, note=BOUND)
        group.beside("cauc_saturation", 5.0, c=c, note=BOUND)
        for k in range(1, 11):
            never = c == 1.0 and k == 1
            value = None if never else c * (1.2 + group.number / 7 + 1 / k)
            group.beside("least_cost", value, k=k, c=c, note=NOT_COVERED if never else BOUND)
    if group.maker == "model":
        for k in (1, 2):
            for d in LIMITS[1:3]:
                group.alone("coverage_optimum", 0.4 + 0.1 * k, k=k, d=d)
                group.alone("greedy_gap", 0.013 * k, k=k, d=d)


def _selection(group):
    for attribute, value in (("income", 0.61), ("purpose", 0.17 + 0.2 * group.number), ("sex", 0.0)):
        group.beside("acf", value, attribute=attribute)
    for k in range(1, 11):
        group.beside("cost_over_face", 1.3 + 1 / k + group.number / 9, cost="vector", k=k)


def _rules(group):
    for place, rule in enumerate(RULES):
        kept = 1.0 if rule == "purpose" else 1 - 0.15 * place
        more = {"nearest": 30} if rule == "epsilon" else {}
        group.matched("infeasible_share_without", group.share * kept, without=rule, **more)
        group.matched("burden_without", group.burden * kept, without=rule, **more)


def _subgroups(group):
    for subgroup in range(1, 6):
        inside = {"subgroup": subgroup, "n": group.n // subgroup}
        for measure, value in (("component_nodes", 400 // subgroup), ("component_candidates", 200 // subgroup)):
            group.rows.add("fgce", group.maker, group.name, measure, float(value), **inside)
        for measure, value in (("infeasible_share", group.share), ("k0", 2.0), ("d0", 1.37)):
            group.rows.add("fgce", group.maker, group.name, measure, value / subgroup, **inside)
        value = None if subgroup == 3 else group.burden / subgroup
        group.rows.add("fgce", group.maker, group.name, "burden", value, **inside)


def _connectivity(rows, name, size, reference):
    for epsilon in (0.25, 0.5, 1.0):
        at = {"n": size, "parameters": {"epsilon": epsilon}, "spread": None}
        for measure, value in (
            ("components", size // 3),
            ("strong_components", size // 2),
            ("singletons", 0),
            ("density", epsilon / 11),
        ):
            rows.add("fgce", "lender", name, measure, float(value), **at)
            if name != reference:
                ends = {"n": 10, "parameters": {"epsilon": epsilon}, "spread": 0.01 * value, "reference": reference}
                rows.add("fgce", "lender", name, f"{measure}_size_matched", 0.9 * value, **ends)
