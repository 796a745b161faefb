"""Names the models and quantities of the CEC paper's tables, and the quantities that it does not print."""

UNCONSTRAINED, CEC_MODEL = "unconstrained", "CEC model"
BASELINES = ("DIR", "Hardt", "Agarwal", "Lagrangian", "adversarial")
COLUMNS = (UNCONSTRAINED, *BASELINES, CEC_MODEL)
"""Of Tables 2 and 3, in their order."""
ABLATION = ("pred", "pred+EO", "pred+CEC", "full")
"""Rows of Table 4."""

QUANTITIES = ("auc", "f1", "eo_gap", "sp_gap", "cec", "regime_b_percent")
"""Rows of Table 2."""
UNPRINTED = (
    "cec_floor",
    "cec_above_floor",
    "flip_percent",
    "balanced_accuracy",
    "positive_rate",
    "collapsed_folds",
    "unscored_percent",
    "non_dominated_f1_eo_percent",
    "non_dominated_uncollapsed_percent",
)
