"""Synthetic measures of situation testing, as the stages before the report would leave them. No number means anything.

Three attributes: ``race``, which the causal graph knows; ``cohort``, which it does not; and both crossed. A group is
small enough to be withheld, and one has nobody who could be tested.
"""

from itertools import pairwise

import report_cec
import report_gcfn
import report_raguel
import report_tables
import report_trained
from report_tables import HOSTILE, REFERENCE, Rows

from schemas.audit.spec import AuditSpec
from schemas.tables.counterfactuals import CAUSAL_CHECKS, CAUSAL_EFFECTS
from schemas.tables.measures import MEASURES
from tasks.pipeline.specs import validated
from tasks.reporting.material import Material, Measure, ReportSettings

WITHHELD, NOBODY = "Asian", "Pacific Islander"
COMPLAINANTS = {HOSTILE[0]: 610, HOSTILE[1]: 240, WITHHELD: 20}
GROUPS = (*COMPLAINANTS, NOBODY)
KS, K, TAUS = (15, 30, 50), 15, (0.0, 0.1)
ENDS = (-1.0, -0.5, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
EDGES = ("race -> income", "race -> purpose")
CLIPPED = {"income": 0.0234, "amount": 0.0321}
"""Share clipped by attribute, before what a group adds."""
FOUND = {"cst": 0.3, "st": 0.06, "cst_with_centres": 0.32}
"""Share significant by variant, before what a group and k add."""


def spec(**changes) -> AuditSpec:
    """An audit by situation testing alone."""
    raw = {
        "name": "situations",
        "year": 1990,
        "source": {"kind": "csv", "path": "applications.csv"},
        "decision": {"column": "action_taken", "favourable": [1], "unfavourable": [3]},
        "protected": [
            {"name": "race", "columns": ["derived_race"], "reference": REFERENCE},
            {"name": "cohort", "columns": ["cohort"], "reference": "old"},
            {"name": "race and cohort", "columns": ["derived_race", "cohort"], "reference": f"{REFERENCE} and old"},
        ],
        "columns": {
            "income": {"type": "continuous", "role": "financial", "label": "income, thousands"},
            "purpose": {"type": "nominal"},
            "amount": {"type": "continuous"},
        },
        "causal_graph": {
            "edges": [
                *(["derived_race", "income"], ["derived_race", "purpose"]),
                *(["income", "amount"], ["purpose", "amount"], ["derived_race", "amount"]),
            ],
            "mechanisms": {"income": {"bounds": [0, None]}},
        },
        "methods": {"fgce": None, "cst": {"ks": KS, "k": K, "taus": TAUS}},
    }
    return validated(AuditSpec, raw | changes)


def of_all(**changes) -> AuditSpec:
    """An audit by all methods."""
    methods = {"fgce": {}, "cst": {"ks": KS, "k": K, "taus": TAUS}, "cec": {"theta_steps": report_cec.STEPS}}
    columns = {
        "income": {"type": "continuous", "role": ["financial", "mediator"], "label": "income, thousands"},
        "purpose": {"type": "nominal", "role": "mediator"},
        "amount": {"type": "continuous"},
    }
    others = {"gcfn": report_gcfn.gcfn(), "raguel": report_raguel.raguel()}
    return spec(methods={**methods, **others}, **{"columns": columns, **changes})


def tables_of_all():
    """The tables that the report reads, with the measures of all methods."""
    first = report_tables.tables()[0]
    others = (report_cec, report_trained, report_gcfn, report_raguel)
    made = (measures(), *(each.measures() for each in others))
    further = [m for table in made for m in table.to_pylist() if m["method"] != "outcomes"]
    rows = [*first.to_pylist(), *further]
    of_all = MEASURES.build(**{c.name: [row[c.name] for row in rows] for c in MEASURES.columns})
    own = {"mediator_effects": report_gcfn.effects(), "generator_checks": report_gcfn.checks()}
    own |= {"generator_history": report_gcfn.history(), "causal_checks": checks(), "causal_effects": effects()}
    return report_tables.with_tables(measures=of_all, **own)


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings."""
    own = {"run": "situations-1990-0a1b2c3d", "source_sha256": "ab" * 32, "code": "cd" * 16}
    return ReportSettings.of(audit or spec(), **own, effective_spec="name: situations\n", version="0.1.0")


class Group:
    """One group of complainants of one attribute, to which measures are added."""

    def __init__(self, rows, maker, attribute, reference, name, number, n):
        self.rows, self.maker, self.attribute, self.reference = rows, maker, attribute, reference
        self.name, self.number, self.n = name, number, n
        self.withheld = n < 30

    def put(self, measure, value, n=None, **parameters):
        """A measure, or a blank where the group is withheld."""
        more = {"protected_attribute": self.attribute, "parameters": {k.rstrip("_"): v for k, v in parameters.items()}}
        if measure.endswith(("_null", "_null_difference")):
            more["reference"] = self.reference
        if self.withheld:
            value, n, more["reason"] = None, None, "withheld: a small cell, or one that would give a small cell away"
        self.rows.add("cst", self.maker, self.name, measure, value, spread=0.011, n=n or self.n, **more)

    def shares(self, variants, headline):
        """Everything by variant and k, and the headline without parameters."""
        for variant in variants:
            for at, k in enumerate(KS):
                found = FOUND[variant] + 0.07 * self.number + 0.021 * at
                self.put("share_significant", found, k=k, variant=variant)
                self.put("share_detected", found + 0.2, k=k, variant=variant)
                self.put("share_positive", found / 7, k=k, variant=variant)
                self.put("delta", found / 3, k=k, variant=variant)
            for tau in TAUS:
                self.put("share_detected_at", FOUND[variant] + 0.2 - tau, k=K, variant=variant, tau=tau)
        for share, found in (("share_significant", 0.0), ("share_detected", 0.2)):
            own = FOUND[headline] + 0.07 * self.number + found
            self.put(share, own)
            self.put(f"{share}_null", 0.02 + found, n=20)
            for variant in (v for v in variants if v != "cst_with_centres"):
                self.put(f"{share}_null", 0.02 + found, n=20, k=K, variant=variant)
        self.put("share_significant_null_difference", FOUND[headline] + 0.07 * self.number - 0.02)
        self.put("share_significant_p", 0.048)
        self.effects(variants)
        self.put("no_width_share", 0.0)
        for attribute, found in CLIPPED.items():
            self.put("clipped_share", found + 0.01 * self.number, attribute=attribute)
        for number, (low, high) in enumerate(pairwise(ENDS)):
            self.put("delta_share", 0.02 * (number + 1) - 0.01, **{"from": low, "to": high})

    def effects(self, variants):
        """Both effects, their difference, p, and the excess share of denials."""
        imagined = "cst" in variants
        self.put("st_effect", 0.05)
        self.put("st_effect_p", 0.035)
        for measure, value in (("cst_effect", 0.082), ("mediated_effect", 0.032)) if imagined else ():
            self.put(measure, value)
        for variant in ("cst", "st") if imagined else ("st",):
            for numerator, value in (("raw", 0.4), ("adjusted", 0.36)):
                self.put("excess_share_of_denials", value, numerator=numerator, variant=variant)


def add(rows, maker):
    """All measures of a decision maker; only the model can be asked for both decisions."""
    model = maker == "model"
    causal = ("cst", "cst_with_centres", "st") if model else ("cst", "st")
    for number, (name, n) in enumerate(COMPLAINANTS.items()):
        group = Group(rows, maker, "race", REFERENCE, name, number, n)
        group.shares(causal, "cst")
        for edge in EDGES:
            group.put("share_significant_without", 0.111, k=K, variant="cst", without=edge)
            group.put("share_detected_without", 0.222, k=K, variant="cst", without=edge)
        if model:
            group.put("share_detected", 0.234, variant="cf")
            group.put("share_positive", 0.012, variant="cf")
    Group(rows, maker, "cohort", "old", "young", 0, 900).shares(("st",), "st")
    crossed = Group(rows, maker, "race and cohort", f"{REFERENCE} and old", "Black and young", 0, 300)
    crossed.shares(causal, "cst")
    if model:
        crossed.put("share_detected", 0.21, variant="cf")
    for k in KS:
        crossed.put("share_multiple", 0.345, k=k, variant="cst")
        crossed.put("share_multiple_significant", 0.123, k=k, variant="cst")
    for attribute, groups in (("race", (REFERENCE, NOBODY)), ("cohort", ("old",))):
        for name in groups:
            rows.add("outcomes", maker, name, "approval_rate", 0.7, n=50, protected_attribute=attribute)


def measures():
    """The table of measures."""
    rows = Rows()
    for maker in ("model", "lender"):
        add(rows, maker)
    return MEASURES.build(**{c.name: [row[c.name] for row in rows.rows] for c in MEASURES.columns})


def checks():
    """One fit, one test that fails and one that does not."""
    usual = {"other": None, "given": None, "p": None, "q": None, "n": 5000}
    rows = [
        {"check": "held_out_fit", "node": "income", "given": '["race"]', "statistic": 0.107, "words": "R2 of 0.107."},
        {
            "check": "noise_location",
            "node": "amount",
            "other": "income",
            "statistic": 0.3,
            "p": 0.6,
            "q": 0.6,
            "words": "Ok.",
        },
        {
            "check": "independence",
            "node": "income",
            "other": "purpose",
            "given": '["race"]',
            "statistic": 9.9,
            "p": 1e-4,
            "q": 0.002,
            "words": "income and purpose, given race, go together.",
        },
    ]
    return CAUSAL_CHECKS.build(**{c.name: [(usual | row).get(c.name) for row in rows] for c in CAUSAL_CHECKS.columns})


def effects():
    """Deciles of income and shares of purposes, by group."""
    rows = []
    for group, n in COMPLAINANTS.items():
        own = {"protected_attribute": "race", "group": group, "n": n}
        for tenth in range(1, 10):
            moved = {"factual": 40.0 + 3 * tenth, "imagined": 45.0 + 3 * tenth}
            rows.append({**own, "feature": "income", "quantile": tenth / 10, "clipped": 3, **moved})
        for category, before, after in (("buy", 0.6, 0.7), ("refinance", 0.4, 0.3)):
            moved = {"category": category, "factual": before, "imagined": after, "clipped": 0}
            rows.append({**own, "feature": "purpose", **moved})
    return CAUSAL_EFFECTS.build(**{c.name: [row.get(c.name) for row in rows] for c in CAUSAL_EFFECTS.columns})


def material(audit: AuditSpec | None = None) -> Material:
    """What the chapter is given."""
    found = tuple(Measure(**row) for row in measures().to_pylist())
    known = tuple(checks().to_pylist()), tuple(effects().to_pylist())
    return Material(settings(audit), found, (), (), *known)
