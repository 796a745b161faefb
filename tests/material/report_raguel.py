"""Synthetic measures of lists by recourse cost, as the stages before the report would leave them.

No number means anything, but that the parts of a block add up to one, that the ratio of costs rises with tolerance's
inverse, and that offers go to one group alone. By ``race`` there are four groups in the list, one of them small enough
to be withheld, and one of whom nobody could be listed; by ``sex`` there are two, and the ratio falls under Algorithm 1.
"""

import report_tables
from report_tables import HOSTILE, REFERENCE, Rows

from schemas.audit.spec import AuditSpec
from schemas.tables.measures import MEASURES
from tasks.pipeline.specs import validated
from tasks.reporting.material import Material, Measure, ReportSettings

WITHHELD, NOBODY = "Asian", "Pacific Islander"
SIZES = {REFERENCE: 400, HOSTILE[0]: 250, HOSTILE[1]: 120, WITHHELD: 3}
SEXES = {"men": 500, "women": 300}
BLOCKS = 4
GRID, TOLERANCES = (5, 10, 900), (0.5, 0.2)
MODEL_ORDERS, LENDER_ORDERS = ("list", "blocks", "any"), ("list", "blocks")
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
THRESHOLDED = ("demographic_parity", "equalised_odds")
COST = {REFERENCE: 1.0, HOSTILE[0]: 1.5, HOSTILE[1]: 1.25, WITHHELD: 2.0, "men": 1.0, "women": 1.25}
"""Mean cost of recourse, from which an order takes nothing but of the group that offers go to."""
WORSE_OFF = (HOSTILE[0], "women")
LESS = {"": 0.0, "list": 0.3, "blocks": 0.1, "any": 0.45, **dict.fromkeys(THRESHOLDED, 0.2)}
"""What offers take off the mean cost."""
OFFERS = {"list": 60, "blocks": 8, "any": 200}
TIED = "5 of 10 blocks hold one group only, and count as 1"
MINORITY = "rRD is defined for a minority only"
TOO_MANY = "more blocks than applicants in the list"
NO_SCORES = "the lender gives no scores"
WITHHOLDING = "withheld: a small cell, or one that would give a small cell away"
WAYS = {"income": (0.75, 12.5), "debts": (0.5, -2.0)}
"""Column -> share of offers that change it, and by how much on average."""


def spec(**changes) -> AuditSpec:
    """An audit by lists alone."""
    raw = {
        "name": "lists",
        "year": 1990,
        "source": {"kind": "csv", "path": "applications.csv"},
        "decision": {"column": "action_taken", "favourable": [1], "unfavourable": [3]},
        "protected": [
            {"name": "race", "columns": ["derived_race"], "reference": REFERENCE},
            {"name": "sex", "columns": ["sex"], "reference": "men"},
        ],
        "columns": {
            "income": {
                **{"type": "continuous", "label": "<b>income</b>, thousands", "constraint": "up"},
                "recourse": {"weight": 0.5, "step": 0.25, "bounds": [None, 480]},
            },
            "debts": {"type": "continuous"},
            "age": {"type": "continuous", "constraint": "immutable"},
        },
        "methods": {"fgce": None, "raguel": raguel()},
    }
    return validated(AuditSpec, raw | changes)


def raguel(**changes):
    """Settings of the method."""
    return {"blocks": BLOCKS, "reach": "any", "block_counts": GRID, "tolerances": TOLERANCES} | changes


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings."""
    own = {"run": "lists-1990-0a1b2c3d", "source_sha256": "ab" * 32, "code": "cd" * 16}
    return ReportSettings.of(audit or spec(), **own, effective_spec="name: lists\n", version="0.1.0")


class Group:
    """One group of one list, to which measures are added; blank where the group is small."""

    def __init__(self, rows, maker, attribute, reference, name, sizes):
        self.rows, self.maker, self.attribute, self.reference, self.name = rows, maker, attribute, reference, name
        self.sizes, self.n = sizes, sizes[name]
        self.everybody = sum(sizes.values())

    def put(self, measure, value, n=None, note="", spread=None, reference=None, **parameters):
        """A measure, or a blank."""
        n, reason = self.n if n is None else n, "no threshold set"
        if min(n, self.n) < 5:
            value, n, reason = None, None, WITHHOLDING
        more = {"p": 0.0123, "q": 0.0234} if reference and n else {}
        said = {"protected_attribute": self.attribute, "parameters": parameters, "reason": reason, "note": note}
        self.rows.add(
            "raguel", self.maker, self.name, measure, value, n=n, spread=spread, reference=reference, **said, **more
        )

    def cost(self, order):
        """The mean cost in an order."""
        return COST[self.name] - LESS[order] * (self.name in WORSE_OFF)

    def before(self):
        """What is measured before any offer."""
        self.put("recourse_cost", self.cost(""), spread=0.05)
        self.put("unreached_share", 0.2 if self.name == HOSTILE[0] else 0.0, n=self.n + 10)
        if self.maker == "model":
            self.put("recourse_not_confirmed_share", 0.0321)
        if self.name != self.reference:
            apart = COST[self.name] - COST[self.reference]
            self.put("recourse_cost_difference", apart, spread=0.06, reference=self.reference)
        self.put("list_share", self.n / self.everybody, n=self.everybody, spread=0.01)
        for bound, part in (("low", 2 / 3), ("high", 4 / 3)):
            if self.name != self.reference:
                self.put("block_band", part * self.n / self.everybody, n=self.everybody, bound=bound)

    def of(self, order):
        """What is measured of one order, the initial one without a name."""
        at = {"order": order} if order else {}
        if order:
            self.put("recourse_cost", self.cost(order), spread=0.05, **at)
        for q in QUANTILES:
            self.put("recourse_cost_quantile", self.cost(order) * (0.5 + q), quantile=q, **at)
        for block in range(1, BLOCKS + 1):
            self.put("block_share", share(self.name, self.sizes, order, block), n=200, spread=0.02, block=block, **at)
        self.put("unfair_blocks", 1.0 if order else 3.0, n=self.everybody, **at)
        self.put("ratio_of_costs", self.ratio(order), n=self.n + 400, spread=0.02, **at)
        for over, higher in (("mean_block", 0.04), ("least_block", -0.2)):
            note = TIED if order == "any" else ""
            self.put("ratio_of_costs", self.ratio(order) + higher, n=self.everybody, note=note, over=over, **at)
        self.quality(**at)

    def ratio(self, order):
        """The ratio of costs in an order; of women it falls under Algorithm 1."""
        if self.name == "women" and order == "list":
            return 0.75
        pair = (self.name, self.reference)
        them = [each for each in self.sizes if each != WITHHELD] if self.name == self.reference else pair
        costs = [COST[each] - LESS[order] * (each in WORSE_OFF) for each in them]
        return min(costs) / max(costs)

    def quality(self, **at):
        """Ranking quality of a group against all others; nothing of the reference group."""
        if self.name != self.reference:
            self.put("rkl", 0.0123, n=self.everybody, **at)
            self.put("rnd", 0.0456, n=self.everybody, **at)
            most = self.n > self.everybody / 2 or self.name == HOSTILE[1]
            self.put("rrd", None if most else 0.0789, n=self.everybody, note=MINORITY if most else "", **at)

    def offers(self, order):
        """Offers, which go to one group alone."""
        number = OFFERS[order] if self.name in WORSE_OFF else 0
        at = {"order": order}
        self.put("points_changed", float(number), **at)
        self.put("ranks_changed", float(number + 7), **at)
        self.put("total_cost", 0.5 * number, **at)
        if not number:
            return
        self.put("mean_offer_cost", 0.5, n=number, **at)
        if self.maker == "model":
            self.put("offer_not_confirmed_share", 0.0432, n=number, spread=0.01, **at)
        for column, (part, size) in WAYS.items():
            self.put("offer_share", part, n=number, spread=0.03, attribute=column, **at)
            self.put("offer_size", size, n=int(part * number), spread=0.5, attribute=column, **at)

    def cells(self):
        """The heat map; there are too few people for the largest number of blocks."""
        for blocks in GRID:
            few = blocks > self.everybody
            note = TOO_MANY if few else ""
            said = {"n": self.everybody, "note": note, "blocks": blocks}
            self.put("ratio_of_costs_at", None if few else 0.81, over="mean_block", **said)
            for tolerance in TOLERANCES:
                for over, value in (("overall", 0.85), ("mean_block", 0.9)):
                    value = None if few else value - tolerance / 10 - blocks / 1000
                    self.put("ratio_of_costs_at", value, tolerance=tolerance, over=over, **said)

    def baselines(self):
        """What others would do."""
        self.put("ranks_changed", 11.0, order="fa_ir")
        self.quality(order="fa_ir")
        for order in THRESHOLDED:
            if self.maker == "lender":
                self.put("ratio_of_costs", None, note=NO_SCORES, n=self.everybody, order=order)
                continue
            self.put("points_changed", 33.0, note="listed or not", order=order)
            self.put("recourse_cost", self.cost(order), spread=0.05, order=order)
            self.put("ratio_of_costs", self.ratio(order), n=self.n + 400, spread=0.02, order=order)
            self.quality(order=order)


def share(group, sizes, order, block):
    """Share of a block: proportional, but that the reference group has more of the first and less of the last."""
    names = list(sizes)
    lean = (0.0 if order else 0.06) * (2.5 - block)
    moved = {names[0]: lean, names[1]: -lean}
    return sizes[group] / sum(sizes.values()) + moved.get(group, 0.0)


def measures():
    """The table of measures."""
    rows = Rows()
    for maker, orders in (("model", MODEL_ORDERS), ("lender", LENDER_ORDERS)):
        for attribute, sizes in (("race", SIZES), ("sex", SEXES)):
            _list(rows, maker, attribute, sizes, orders)
        nobody = {"parameters": {}, "protected_attribute": "race"}
        rows.add("raguel", maker, NOBODY, "unreached_share", 1.0, n=12, spread=None, **nobody)
        for group in (*SIZES, NOBODY):
            rows.add("outcomes", maker, group, "approval_rate", 0.7, n=2 * SIZES.get(group, 12))
        for group, n in SEXES.items():
            rows.add("outcomes", maker, group, "approval_rate", 0.7, n=2 * n, protected_attribute="sex")
    return MEASURES.build(**{c.name: [row[c.name] for row in rows.rows] for c in MEASURES.columns})


def _list(rows, maker, attribute, sizes, orders):
    reference = next(iter(sizes))
    for name in sizes:
        group = Group(rows, maker, attribute, reference, name, sizes)
        group.before()
        for order in ("", *orders):
            group.of(order)
        for order in orders:
            group.offers(order)
            if name == reference:
                group.put("below_predecessor_share", 0.0234, n=group.everybody, order=order)
        group.cells()
        group.baselines()


def tables():
    """The tables that the report reads."""
    return (measures(), *report_tables.tables()[1:])


def material(audit: AuditSpec | None = None) -> Material:
    """What the chapter is given."""
    return Material(settings(audit), tuple(Measure(**row) for row in measures().to_pylist()), (), (), (), ())
