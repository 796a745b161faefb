"""The tables of the CEC paper as figures, and what it does not print but has to stand beside them.

Here belongs the layout of tables: a row for each model. The figures are in the data file.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from tasks.proof.lines import Cell, Figure
from tasks.proof.published import BESIDE

UNCONSTRAINED, CEC_MODEL = "unconstrained", "CEC model"

NOT_PRINTED = "not printed"

QUANTITIES = ("auc", "f1", "eo_gap", "sp_gap", "cec", "regime_b_percent")
"""Of Table 2; and, in the next line, what the paper has not."""
UNPRINTED = (
    "cec_floor",
    "cec_above_floor",
    "flip_percent",
    "balanced_accuracy",
    "positive_rate",
    "collapsed_folds",
    "unscored_percent",
)


def figures(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """What the tables say of a data set; a model that is not judged has no tolerance."""
    for table in said["table"]:
        if table["dataset"] == dataset:
            for model, row in table["models"].items():
                for quantity, value in zip(table["quantities"], row, strict=True):
                    tolerance = table["tolerances"].get(quantity, 0.0) if model in table["judged"] else 0.0
                    yield Figure(table["source"], False, Cell(quantity, model), float(value), tolerance)


def beside(models: Iterable[str], printed: Iterable[Figure], told: Container[Cell]) -> Iterator[Figure]:
    """A line for all that is told of a model and that no table prints."""
    known = {figure.cell for figure in printed}
    for model in models:
        for quantity in (*QUANTITIES, *UNPRINTED):
            if Cell(quantity, model) in told and Cell(quantity, model) not in known:
                yield Figure(BESIDE, False, Cell(quantity, model), NOT_PRINTED, 0.0)
