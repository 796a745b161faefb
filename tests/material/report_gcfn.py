"""Synthetic measures and tables of counterfactual mediators, as the stages before the report would leave them.

No number means anything, but that parts add up and that CF and accuracy fall as lambda grows. By ``race`` there are two
mediators, by ``purpose`` one, since a protected attribute's own column is none; of one group nobody could be imagined,
one is small enough to be withheld, and by ``purpose`` a covariate gives the group away.
"""

import dataclasses

import report_tables
from report_chapters import SPACE
from report_tables import HOSTILE, REFERENCE, Rows

from schemas.audit.spec import AuditSpec
from schemas.tables.counterfactuals import GENERATOR_CHECKS, GENERATOR_HISTORY, MEDIATOR_EFFECTS
from schemas.tables.measures import MEASURES
from tasks.methods.gcfn.report import section
from tasks.pipeline.specs import validated
from tasks.reporting.material import Material, Measure, ReportSettings

WITHHELD, NOBODY = "Asian", "Pacific Islander"
SIZES = {REFERENCE: 4200, HOSTILE[0]: 610, HOSTILE[1]: 240, WITHHELD: 20}
GROUPS = (*SIZES, NOBODY)
NETWORKS, EPOCHS, WIDE, QUANTILE = 3, 130, 0.22, 0.9
LAMBDAS, GAMMAS, BINS = (0.0, 0.5, 2.0), (0.1, 1.0), 5
ENDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
FLIPS = {REFERENCE: 0.02, HOSTILE[0]: 0.16, HOSTILE[1]: 0.24, WITHHELD: 0.3}
PURPOSES = {"buy": 0.6, "improve": 0.39, "<b>other</b>": 0.01}
"""Shares of the categories; of the last there are 6 of 610 people."""
BANDS = {
    "score": ({"to": 0.4}, {"from": 0.4, "to": 0.6}, {"from": 0.6}),
    "income": ({"to": -20}, {"from": -20, "to": 12_000}, {"from": 12_000}),
    "purpose": ({"category": "improve"}, {"category": "buy"}, {"category": "(others)"}),
}
"""What people are sorted by, and the bands of each in some order of no meaning."""
IN_BANDS = (0.2, 0.5, 0.3)
"""Share of the people in each band."""
ABOVE = 0.27
WIDTHS = 10
"""Intervals of a density, the two open ones not counted."""
WHY = "the group, or the reference group, has fewer rows than generators learn from"
WITHHOLDING = "withheld: a small cell, or one that would give a small cell away"


def spec(**changes) -> AuditSpec:
    """An audit by mediators alone."""
    raw = {
        "name": "mediators",
        "year": 1990,
        "source": {"kind": "csv", "path": "applications.csv"},
        "decision": {"column": "action_taken", "favourable": [1], "unfavourable": [3]},
        "protected": [
            {"name": "race", "columns": ["derived_race"], "reference": REFERENCE},
            {"name": "purpose", "columns": ["purpose"], "reference": "buy"},
        ],
        "columns": {
            "income": {"type": "continuous", "role": "mediator", "label": "income, thousands"},
            "purpose": {"type": "nominal", "role": "mediator", "label": "<b>purpose</b>"},
            "age": {"type": "continuous", "role": "covariate"},
            "term": {"type": "continuous"},
        },
        "methods": {"fgce": None, "gcfn": gcfn()},
    }
    return validated(AuditSpec, raw | changes)


def gcfn(**changes):
    """Settings of the method."""
    prediction = {"lambdas": LAMBDAS, "gammas": GAMMAS, "bins": BINS}
    return {"networks": NETWORKS, "wide": WIDE, "quantile": QUANTILE, "prediction": prediction} | changes


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings."""
    own = {"run": "mediators-1990-0a1b2c3d", "source_sha256": "ab" * 32, "code": "cd" * 16}
    return ReportSettings.of(audit or spec(), **own, effective_spec="name: mediators\n", version="0.1.0")


class Group:
    """One group of one attribute, to which measures are added; blank where the group is small."""

    def __init__(self, rows, maker, attribute, group, n):
        self.rows, self.maker, self.attribute, self.group, self.n = rows, maker, attribute, group, n

    def put(self, measure, value, spread=0.011, reference=None, n=None, note="", events=None, **parameters):
        """A measure, or a blank."""
        said = {k.rstrip("_"): v for k, v in parameters.items()}
        more = {"protected_attribute": self.attribute, "parameters": said, "events": events}
        n = self.n if n is None else n
        if self.n < 30:
            value, n, more["reason"] = None, None, WITHHOLDING
            more["events"] = None
        if reference and n is not None:
            more |= {"p": 0.0123, "q": 0.0234}
        self.rows.add(
            "gcfn", self.maker, self.group, measure, value, spread=spread, reference=reference, n=n, note=note, **more
        )

    def audited(self, flips, reference, sorted_by=tuple(BANDS)):
        """What is measured of the audited model."""
        self.put("decision_flip_share", flips)
        self.put("decision_flip_share", 0.9 * flips, over="networks")
        self.put("flip_direction_share", 0.75 * flips, direction="to_favourable")
        self.put("flip_direction_share", 0.25 * flips, direction="to_unfavourable")
        if reference != self.group:
            self.put("decision_flip_share_difference", flips - FLIPS[REFERENCE], reference=reference)
            self.put("share_changed", 0.45 * flips, spread=None)
            self.put("relative_change", flips / 5)
        self.put("score_change", -flips / 3)
        self.put("score_change_absolute", flips / 2)
        self.put("score_change_quantile", 2 * flips, quantile=QUANTILE)
        self.put("score_change_squared", flips**2)
        self.put("not_identified_share", flips / 4)
        self.put("mediator_spread", 0.1234)
        for at, low in enumerate(ENDS):
            high = {"to": ENDS[at + 1]} if at + 1 < len(ENDS) else {}
            self.put("mediator_spread_share", 1 / len(ENDS), **{"from_": low}, **high)
        self.put("unmediated_share", 0.0)
        self.sorted("flip_share_by_band", flips, sorted_by)
        self.sorted("large_change_share_by_band", 0.05, sorted_by, above=ABOVE)

    def sorted(self, measure, share, sorted_by=tuple(BANDS), **of):
        """Shares by band, the second of each three the largest; of whom there are few nothing is told."""
        for by in sorted_by if self.n >= 30 else ():
            said = {"by": "score"} if by == "score" else {"by": "mediator", "mediator": by}
            for band, part, times in zip(BANDS[by], IN_BANDS, (0.5, 1.4, 0.6), strict=True):
                n = round(part * self.n)
                value = times * share
                ends = {f"{name}_" if name == "from" else name: end for name, end in band.items()}
                self.put(measure, value, n=n, events=round(n * value), **said, **ends, **of)

    def spread_out(self, shift, imagined):
        """Densities of income, withheld in one interval of those imagined."""
        ends = [5.0 * number for number in range(WIDTHS + 1)]
        for at in range(-1, WIDTHS + 1):
            low = {"from_": ends[at]} if at >= 0 else {}
            high = {"to": ends[at + 1]} if at < WIDTHS else {}
            share = 1 / (2 + abs(at - shift))
            self.put("mediator_share", share, mediator="income", **low, **high)
            if imagined:
                self.put("imagined_mediator_share", share / 2, mediator="income", **low, **high)

    def predicted(self):
        """What is measured of the predictors, on a fifth of the rows."""
        held_out = {"n": self.n // 5}
        for measure in ("accuracy", "ppv", "fpr", "fnr"):
            self.put(f"fair_{measure}", 0.7777, model="given", **held_out)
        models = [("unconstrained", 0.0), *(("GCFN", w) for w in LAMBDAS[1:]), ("CFUA", 0.0), ("CFAN", 0.0)]
        for name, weight in models:
            said = {"model": name, "lambda": weight}
            for measure, value in (("accuracy", accuracy(name, weight)), ("ppv", 0.61), ("fpr", 0.31), ("fnr", 0.21)):
                self.put(f"fair_{measure}", value, **said, **held_out)
            self.put("fair_unfairness", unfairness(name, weight), **said, **held_out)
            self.put("fair_score_change", unfairness(name, weight) ** 0.5, **said, **held_out)
            for gamma in GAMMAS:
                worth = accuracy(name, weight) - gamma * unfairness(name, weight)
                self.put("fair_utility", worth, gamma=gamma, **said, **held_out)
            for number in range(BINS):
                ends = {"from_": number / BINS, "to": (number + 1) / BINS}
                self.put("fair_score_share", (number + 1) / 15 if weight else 1 / BINS, **ends, **said, **held_out)
            self.put("treated_differently_share", 0.02 + weight / 10, **said, **held_out)
        self.put("noise_abducted_share", 1.0, spread=None, mediator="income", **held_out)
        self.put("noise_abducted_share", 0.0, spread=None, mediator="purpose", **held_out)
        self.sorted("treated_differently_by_band", 0.1, model="GCFN", **{"lambda": LAMBDAS[-1]})


def accuracy(name, weight):
    """Accuracy of a predictor by its lambda."""
    return {"CFUA": 0.6, "CFAN": 0.7}.get(name, 0.8 - 0.01 * weight)


def unfairness(name, weight):
    """CF of a predictor by its lambda."""
    return {"CFUA": 0.0, "CFAN": 0.01}.get(name, 0.04 / (1 + weight))


def measures():
    """The table of measures."""
    rows = Rows()
    for group, n in SIZES.items():
        Group(rows, "model", "race", group, n).audited(FLIPS[group], REFERENCE)
        Group(rows, "lender", "race", group, n).predicted()
        Group(rows, "lender", "race", group, n).spread_out(4, group != REFERENCE)
    Group(rows, "model", "race", NOBODY, 40).put("unmediated_share", 1.0)
    refused = Group(rows, "lender", "race", NOBODY, 40)
    refused.put("fair_unfairness", None, model="unconstrained", note=WHY, **{"lambda": 0.0})
    for group in ("buy", "improve"):
        Group(rows, "model", "purpose", group, 900).audited(0.1, "buy", ("score", "income"))
        Group(rows, "lender", "purpose", group, 900).spread_out(2, group != "buy")
    for maker in ("model", "lender"):
        for group in GROUPS:
            rows.add("outcomes", maker, group, "approval_rate", 0.7, n=SIZES.get(group, 40))
        for group in ("buy", "improve"):
            rows.add("outcomes", maker, group, "approval_rate", 0.7, n=900, protected_attribute="purpose")
    return MEASURES.build(**{c.name: [row[c.name] for row in rows.rows] for c in MEASURES.columns})


def effects():
    """Deciles of income and shares of purposes, of each group as the reference group's and the other way round."""
    rows = []
    for group, n in SIZES.items():
        if group != REFERENCE:
            rows += _pair("race", group, REFERENCE, n, SIZES[REFERENCE]) + _pair("race", REFERENCE, group, 4200, n)
    rows += [row for row in _pair("purpose", "improve", "buy", 900, 900) if row["feature"] == "income"]
    return _built(MEDIATOR_EFFECTS, rows)


def _pair(attribute, group, to, n, n_there):
    own = {"protected_attribute": attribute, "group": group, "to_group": to, "n": n, "n_there": n_there}
    tenths = [tenth / 10 for tenth in range(1, 10)]
    numbers = [{"quantile": q, "factual": 40 + 30 * q, "imagined": 45 + 30 * q, "there": 46 + 30 * q} for q in tenths]
    shares = list(PURPOSES.values())
    categories = [
        {"category": name, "factual": share, "imagined": other, "there": share}
        for name, share, other in zip(PURPOSES, shares, (0.5, 0.3, 0.2), strict=True)
    ]
    return [{**own, "feature": "income", **row} for row in numbers] + [
        {**own, "feature": "purpose", **row} for row in categories
    ]


def checks(leak=0.991):
    """Networks of which the last did not come to rest and keeps little; by purpose a covariate leaks."""
    rows = []
    for attribute in ("race", "purpose"):
        for network in range(NETWORKS):
            last = network == NETWORKS - 1
            own = {"protected_attribute": attribute, "network": network, "n": 5070}
            ended = {"reconstruction": 0.012, "advantage": -0.003, "accuracy": 0.512, "converged": float(not last)}
            person = {"kept": 0.312 if last else 0.954, "beyond_mean": 0.987, "apart_from_quantiles": 0.123}
            rows += [{**own, "check": c, "value": v, "doubtful": last and c == "converged"} for c, v in ended.items()]
            rows += [
                {**own, "check": c, "column": "income", "value": v, "doubtful": last and c == "kept"}
                for c, v in person.items()
            ]
        leaking = leak if attribute == "purpose" else 0.613
        for column in ("age", "all covariates"):
            found = {"column": column, "value": leaking, "doubtful": leaking > 0.98, "n": 5070, "check": "leak"}
            rows.append({"protected_attribute": attribute, **found})
    return _built(GENERATOR_CHECKS, [{"generator": "gan", **row} for row in rows])


def history():
    """Terms that fall with the epochs, and by network."""
    rows = [
        {
            **{"protected_attribute": attribute, "network": network, "epoch": epoch},
            **{
                "reconstruction": 1 / epoch + network / 100,
                "log_loss": 0.7 + network / 100,
                "accuracy": 0.5 + epoch * (network + 1) / 1e4,
            },
        }
        for attribute in ("race", "purpose")
        for network in range(NETWORKS)
        for epoch in range(1, EPOCHS + 1)
    ]
    return _built(GENERATOR_HISTORY, rows)


def _built(table, rows):
    return table.build(**{c.name: [row.get(c.name) for row in rows] for c in table.columns})


def tables():
    """The tables that the report reads."""
    own = {"mediator_effects": effects(), "generator_checks": checks(), "generator_history": history()}
    return report_tables.with_tables(measures=measures(), **own)


def material(audit: AuditSpec | None = None) -> Material:
    """What the chapter is given."""
    found = tuple(Measure(**row) for row in measures().to_pylist())
    known = {"mediator_effects": effects(), "generator_checks": checks(), "generator_history": history()}
    made = {name: tuple(table.to_pylist()) for name, table in known.items()}
    return Material(settings(audit), found, (), (), (), (), **made)


def with_settings(**changes):
    """The material under other settings of the method."""
    return material(spec(methods={"fgce": None, "gcfn": gcfn(**changes)}))


def changed(material, measure, group=HOSTILE[0], attribute="race", said=None, **fields):
    """The material with a measure of a group changed; at parameters ``said``, or at all of them."""

    def edit(m):
        hit = (m.measure, m.group, m.protected_attribute) == (measure, group, attribute)
        return dataclasses.replace(m, **fields) if hit and said in (None, m.said) else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def text_of(row):
    """The cells of a row, with plain spaces."""
    return [cell.whole.replace(SPACE, " ") for cell in row]


def rows_of(t, group):
    """The rows of a group in a table, without its name."""
    return [text_of(row)[1:] for row in t.rows if row[0].text.removesuffix(" (reference)") == group]


def said_of(points, group):
    """The sentence on a group."""
    return next(point for point in points if point.startswith(group)).replace(SPACE, " ")


def all_limits(material):
    """The limits of the method as one text."""
    return " ".join(section.limits(material)).replace(SPACE, " ")
