"""Data sets, printed names and regimes of the CEC paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from research.figures import Cell, Curve, Drawing, Value
from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.in_memory import labelled
from tasks.ingest.synthetic.algorithm import lending
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
from tasks.methods.cec.algorithm.mitigations import Population
from tasks.methods.cec.algorithm.models import Lending
from tasks.methods.cec.algorithm.pairs import REGIMES
from tasks.numerics import encoding as as_columns
from tasks.numerics.encoding import Columns

# --------------------------------------------------------------------------------------------------------------------
# Reads or draws the data sets of the CEC paper as training rows: inputs, labels, two groups, financial features.
#
# Scope: the rows, and the two encodings of categories (a number, or one-hot columns). Training and scoring:
# ``tasks.methods.cec.algorithm.models``.


def of_spec(spec: AuditSpec) -> tuple[Lending, Columns]:
    """Reads the training rows of an audit spec with a single protected attribute, and their columns.

    The input of a category is its number, as the paper seems to have it.
    """
    labelled_rows = labelled(spec)
    columns, grouped = labelled_rows.columns, labelled_rows.grouped
    chosen = [at for at, name in enumerate(columns.names) if Role.FINANCIAL in spec.columns[name].role]
    rows = Lending(
        Population(columns.values, labelled_rows.label, grouped.group != grouped.reference),
        np.arange(len(columns.names), dtype=np.int32),
        columns.names,
        columns.values[:, chosen],
        tuple(columns.names[at] for at in chosen),
    )
    return rows, columns


def one_hot(rows: Lending, handed_in: Columns) -> Lending:
    """Encodes the same rows with an input for each category, and one for each column without categories."""
    inputs, feature = as_columns.one_hot(handed_in)
    population = replace(rows.population, features=inputs)
    return replace(rows, population=population, feature_of_input=feature)


def drawn(settings: SyntheticLending, seed: int) -> Lending:
    """Draws the paper's synthetic applicants. The last input is the group; the paper does not say whether it is one."""
    rows = lending.generate(settings, np.random.default_rng(seed))
    inputs = np.column_stack([rows.features, rows.protected])
    kinds = (("financial", settings.financial), ("proxy", settings.proxies), ("noise", settings.noise))
    names = tuple(f"{kind} {number + 1}" for kind, count in kinds for number in range(count))
    return Lending(
        Population(inputs, rows.favourable, rows.protected),
        np.arange(inputs.shape[1], dtype=np.int32),
        (*names, "group"),
        rows.features[:, rows.financial],
        tuple(names[at] for at in rows.financial),
    )


# --------------------------------------------------------------------------------------------------------------------
# Names the models and quantities of the CEC paper's tables, and the quantities that it does not print.


UNCONSTRAINED, CEC_MODEL = "unconstrained", "CEC model"
BASELINES = ("DIR", "Hardt", "Agarwal", "Lagrangian", "adversarial")
COLUMNS = (UNCONSTRAINED, *BASELINES, CEC_MODEL)
"""Of Tables 2 and 3, in their order."""
ABLATION = ("pred", "pred+EO", "pred+CEC", "full")
"""Rows of Table 4."""

FOLDS = 5
"""Folds of the paper."""

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


# --------------------------------------------------------------------------------------------------------------------
# Draws the regimes of the CEC paper's models: flips against CEC (Figure 4), and shares (Figures 5 and 7).


Values = Mapping[Cell, Value]

REGIME_AXIS: Final = "regime: " + ", ".join(f"{at} {name}" for at, name in enumerate(REGIMES, 1))


def plane(values: Values, models: Sequence[str]) -> Iterator[Drawing]:
    """Yields Figure 4: a point for each model that has a CEC."""
    points = [
        Curve(model, (flips,), (cec,))
        for model in models
        if isinstance(flips := values.get(Cell("flip_percent", model)), float)
        and isinstance(cec := values.get(Cell("cec", model)), float)
    ]
    if points:
        title = "Prediction flips and CEC by model"
        yield Drawing("flips-and-cec", "Figure 4", title, "pairs with other predictions, percent", "CEC", tuple(points))


def shares(values: Values, models: Sequence[str], name: str, figure: str) -> Iterator[Drawing]:
    """Yields Figure 5 or 7: the shares of the four regimes of each model that has a CEC."""
    places = tuple(float(at) for at in range(1, len(REGIMES) + 1))
    rows = []
    for model in models:
        percentages = [values.get(Cell(f"regime_{regime.lower()}_percent", model)) for regime in REGIMES]
        if all(isinstance(percentage, float) for percentage in percentages):
            rows.append(
                Curve(model, places, tuple(float(percentage) for percentage in percentages if percentage is not None))
            )
    if rows:
        yield Drawing(name, figure, "Pairs in each regime by model", REGIME_AXIS, "percent of the pairs", tuple(rows))
