"""Synthetic measures of explanations compared, as the stages before the report would leave them. No number means
anything, but that the shares of the regimes add up.

By ``race`` a group is small enough to be withheld, and of one nobody could be compared; ``race and cohort`` crosses two
columns.
"""

import report_tables
from report_tables import HOSTILE, REFERENCE, Rows

from schemas.audit.spec import AuditSpec
from schemas.tables.measures import MEASURES
from tasks.pipeline.specs import validated
from tasks.reporting.material import Material, Measure, ReportSettings

WITHHELD, NOBODY = "Asian", "Pacific Islander"
SIZES = {HOSTILE[0]: 610, HOSTILE[1]: 240, WITHHELD: 20}
GROUPS = (*SIZES, NOBODY)
CROSSED = f"{REFERENCE} and old"
THETA, STEPS = 0.3, 20
FLIPS = {HOSTILE[0]: 0.21, HOSTILE[1]: 0.37, WITHHELD: 0.1}
FEATURES = ("income", "amount", "purpose", "<b>zip</b>")
FINANCIAL = ("income", "amount")
QUANTILES = (0.5, 0.9, 0.99)


def spec(**changes) -> AuditSpec:
    """An audit of explanations alone."""
    raw = {
        "name": "reasons",
        "year": 1990,
        "source": {"kind": "csv", "path": "applications.csv"},
        "decision": {"column": "action_taken", "favourable": [1], "unfavourable": [3]},
        "protected": [
            {"name": "race", "columns": ["derived_race"], "reference": REFERENCE},
            {"name": "race and cohort", "columns": ["derived_race", "cohort"], "reference": CROSSED},
        ],
        "columns": {
            "income": {"type": "continuous", "role": "financial", "label": "income, thousands"},
            "amount": {"type": "continuous", "role": "financial"},
            "purpose": {"type": "nominal"},
            "<b>zip</b>": {"type": "nominal", "label": "<b>zip</b>"},
        },
        "methods": {"fgce": None, "cec": {"theta": THETA, "theta_steps": STEPS}},
    }
    return validated(AuditSpec, raw | changes)


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings."""
    own = {"run": "reasons-1990-0a1b2c3d", "source_sha256": "ab" * 32, "code": "cd" * 16}
    return ReportSettings.of(audit or spec(), **own, effective_spec="name: reasons\n", version="0.1.0")


def shares(flip, theta):
    """Regimes A to D of a group whose scores are evenly spread over 0 to 1: they add up."""
    return {"A": (1 - flip) * theta, "B": (1 - flip) * (1 - theta), "C": flip * theta, "D": flip * (1 - theta)}


class Pairs:
    """One group matched with another, to which measures are added; all blank where the group is small."""

    def __init__(self, rows, attribute, group, n, flip, matched_with=None):
        self.rows, self.attribute, self.group, self.n, self.flip = rows, attribute, group, n, flip
        self.named = {} if matched_with is None else {"matched_with": matched_with}

    def put(self, measure, value, spread=0.011, events=None, n=None, **parameters):
        """A measure, or a blank."""
        more = {"protected_attribute": self.attribute, "parameters": {**self.named, **parameters}, "events": events}
        n = self.n if n is None else n
        if self.n < 30:
            value, n, more["events"] = None, None, None
            more["reason"] = "withheld: a small cell, or one that would give a small cell away"
        self.rows.add("cec", "model", self.group, measure, value, spread=spread, n=n, **more)

    def scores(self):
        """What is measured of every pair of groups."""
        floor = 0.1 + self.flip / 10
        self.put("cec", floor + 0.3)
        self.put("cec_floor", floor)
        self.put("cec_above_floor", 0.3)
        self.put("flip_share", self.flip, events=round(self.flip * self.n))
        for regime, share in shares(self.flip, THETA).items():
            self.put("regime_share", share, events=round(share * self.n), regime=regime)
        self.put("match_distance", 0.456)
        for measure in ("unmatched_share", "no_direction_share", "incomplete_share"):
            self.put(measure, 0.0, events=0)
        self.put("completeness_error", 2.5e-16, spread=1e-17)

    def more(self):
        """What is measured of the headline's pairs alone."""
        self.put("cec_within_group", 0.3 + self.flip / 10)
        self.put("cec_above_within_group", 0.1)
        self.put("cec_above_own_group", 0.1, spread=None)
        self.put("cec_above_own_group_null", -0.05)
        for step in range(STEPS + 1):
            for regime, share in shares(self.flip, step / STEPS).items():
                self.put("regime_share_at", share, events=round(share * self.n), regime=regime, theta=step / STEPS)
        for number, feature in enumerate(FEATURES):
            self.put("attribution_divergence", 0.1234 + number / 10, feature=feature)
            self.put("attribution_share", 0.1 * (number + 1), feature=feature)
        for quantile in QUANTILES:
            self.put("match_distance_quantile", 0.3 + quantile, spread=None, quantile=quantile)
        self.put("match_reuse", 2.345, spread=None)
        self.put("match_reuse_largest", 67.0, spread=None, events=67)


def measures():
    """The table of measures."""
    rows = Rows()
    for group, n in SIZES.items():
        own = Pairs(rows, "race", group, n, FLIPS[group])
        own.scores()
        own.more()
        Pairs(rows, "race", REFERENCE, 4200 if n >= 30 else n, 0.05 + FLIPS[group], group).scores()
    crossed = Pairs(rows, "race and cohort", "Black and young", 300, 0.4)
    crossed.scores()
    crossed.more()
    for maker in ("model", "lender"):
        for attribute, groups in (("race", (REFERENCE, NOBODY)), ("race and cohort", (CROSSED,))):
            for group in groups:
                n = 15 if group == NOBODY else 4200
                rows.add("outcomes", maker, group, "approval_rate", 0.7, n=n, protected_attribute=attribute)
    return MEASURES.build(**{c.name: [row[c.name] for row in rows.rows] for c in MEASURES.columns})


def tables():
    """The tables that the report reads."""
    return (measures(), *report_tables.tables()[1:])


def material(audit: AuditSpec | None = None) -> Material:
    """What the chapter is given."""
    return Material(settings(audit), tuple(Measure(**row) for row in measures().to_pylist()), (), (), (), ())
