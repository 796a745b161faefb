"""Names the models and quantities of the CEC paper's tables, and the quantities that it does not print."""

UNCONSTRAINED, CEC_MODEL = "unconstrained", "CEC model"
BASELINES = ("Hardt", "Agarwal", "Lagrangian", "adversarial", "DIR")

QUANTITIES = ("auc", "f1", "eo_gap", "sp_gap", "cec", "regime_b_percent")
"""Columns of Table 2."""
UNPRINTED = (
    "cec_floor",
    "cec_above_floor",
    "flip_percent",
    "balanced_accuracy",
    "positive_rate",
    "collapsed_folds",
    "unscored_percent",
)
