"""Synthetic measures of models trained for consistency, as the stages before the report would leave them.

No number means anything, but that CEC and balanced accuracy fall as the lambda of consistency grows, down to collapse,
and that the shares of the regimes add up.
"""

import report_cec
from report_cec import SIZES, THETA, WITHHELD, shares
from report_tables import HOSTILE, Rows

from schemas.tables.measures import MEASURES
from tasks.reporting.material import Material, Measure

GRID = (0.5, 2.0, 10.0)
REASON = "decisions are drawn between thresholds: there is no logit"
NO_COPY = "no kept library offers it"
SD = 0.0123
COLLAPSED_CEC = 0.05
LOSS = {"unconstrained": (0.0, 0.0), "pred+EO": (1.0, 0.0), "pred+CEC": (0.0, 1.0), "full": (1.0, 1.0)}
OTHERS = {"threshold_optimizer": REASON, "adversarial": "", "disparate_impact_remover": NO_COPY}


class Model:
    """One model of one group, to which measures are added: each mean with its standard deviation."""

    def __init__(self, rows, group, name, weights, collapsed):
        self.rows, self.group, self.name, self.collapsed = rows, group, name, collapsed
        self.said = {"model": name}
        if weights is not None and name != "unconstrained":
            self.said |= {"lambda_eo": weights[0], "lambda_cec": weights[1]}

    def put(self, measure, value, note="", **parameters):
        """A measure, or a blank where the group is small."""
        pairs = measure.startswith(("cec", "flip", "regime"))
        n, reason = SIZES[self.group] if pairs else 2 * SIZES[self.group], "no threshold set"
        if self.group == WITHHELD:
            value, n, reason = None, None, "withheld: a small cell, or one that would give a small cell away"
        for over, number in (("mean", value), ("sd", None if value is None else SD)):
            said = {**self.said, **parameters, "over_folds": over}
            more = {"spread": None, "n": n, "note": note, "reason": reason, "parameters": said}
            self.rows.add("cec", "lender", self.group, f"trained_{measure}", number, **more)

    def decides(self, accuracy):
        """What it decides; a collapsed one decides alike for nearly everybody."""
        self.put("auc", accuracy + 0.1)
        self.put("f1", 0.811)
        self.put("balanced_accuracy", accuracy)
        self.put("positive_rate", 0.987 if self.collapsed else 0.765)
        self.put("eo_gap", 0.0321)
        self.put("sp_gap", 0.0456)
        self.put("collapsed", 0.4 if self.collapsed else 0.0)
        if not self.name.startswith("EO "):
            self.put("non_dominated", 0.6)

    def reasons(self, score, note=""):
        """What its reasons are; nothing where it has none."""
        floor, flips = 0.1, 0.3 * (score or 0)
        self.put("cec", score, note)
        self.put("cec_floor", None if score is None else floor, note)
        self.put("cec_above_floor", None if score is None else score - floor, note)
        self.put("flip_share", None if score is None else flips, note)
        for regime, share in shares(flips, THETA).items():
            self.put("regime_share", None if score is None else share, note, regime=regime)

    def nothing(self, note):
        """Nothing at all but the reason."""
        for measure in ("auc", "f1", "balanced_accuracy", "positive_rate", "eo_gap", "sp_gap"):
            self.put(measure, None, note)
        self.put("collapsed", None, note)
        self.put("non_dominated", None, note)
        self.reasons(None, note)


def score_of(eo, cec):
    """CEC of a net by its lambdas."""
    return 0.6 / (1 + cec) + 0.01 * eo


def accuracy_of(eo, cec):
    """Balanced accuracy of a net by its lambdas."""
    return 0.8 - 0.025 * cec - 0.013 * eo


def net(rows, group, name, eo, cec):
    """A net trained with the loss; the largest lambda of consistency collapses."""
    collapsed = cec == max(GRID)
    model = Model(rows, group, name, (eo, cec), collapsed)
    model.decides(accuracy_of(eo, cec))
    model.reasons(COLLAPSED_CEC if collapsed else score_of(eo, cec))


def measures():
    """The table of measures of trained models, by race; Pacific Islanders were too few to train on."""
    rows = Rows()
    for group in (*HOSTILE, WITHHELD):
        for name, (eo, cec) in LOSS.items():
            net(rows, group, name, eo, cec)
        for eo in GRID:
            for cec in GRID:
                net(rows, group, f"EO {eo:g}, CEC {cec:g}", eo, cec)
        for name, reason in OTHERS.items():
            model = Model(rows, group, name, None, False)
            if reason == NO_COPY:
                model.nothing(NO_COPY)
                continue
            model.decides(0.71)
            model.reasons(None if reason else 0.5432, reason)
    return MEASURES.build(**{c.name: [row[c.name] for row in rows.rows] for c in MEASURES.columns})


def material() -> Material:
    """What the chapter is given where models were trained beside the one that is audited."""
    rows = [*report_cec.measures().to_pylist(), *measures().to_pylist()]
    return Material(report_cec.settings(), tuple(Measure(**row) for row in rows), (), (), (), ())
