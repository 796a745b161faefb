"""What our code obtains of Cinelli and Hazlett's example: exposure to violence in Darfur, villages as fixed effects."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.linear import fit_linear
from tasks.methods.adjusted.algorithm.scale.within import within
from tasks.methods.adjusted.algorithm.sensitivity.unseen import sensitivity
from tasks.methods.adjusted.reproduction.samples import darfur
from tasks.proof.lines import Cell, Value

HARMED = "directly harmed"
COLUMNS = ("directlyharmed", "age", "farmer_dar", "herder_dar", "pastvoted", "hhsize_darfur", "female")


def cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """The estimate, its robustness values, and benchmarks by sex."""
    sample = darfur(data)
    villages = sample.frame["village"].to_numpy(dtype=np.int32)
    left = within(np.column_stack([sample.column("peacefactor"), *map(sample.column, COLUMNS)]), [villages])
    y, x, absorbed = left[:, 0], left[:, 1:], int(villages.max()) + 1
    outcome, membership = fit_linear(y, x, absorbed=absorbed), fit_linear(x[:, 0], x[:, 1:], absorbed=absorbed)
    found = sensitivity(outcome, membership, 0, {"female": [COLUMNS.index("female")]})
    told = {
        "estimate": found.estimate.value,
        "standard_error": found.estimate.se,
        "df": float(outcome.df),
        "robustness_value": found.rv,
        "robustness_value_at_5": found.rv_alpha,
    }
    yield from ((Cell(quantity, HARMED), value) for quantity, value in told.items())
    for each in found.benchmarks:
        if each.effect is not None:
            yield Cell("adjusted_estimate", HARMED, (f"female x {each.times}",)), each.effect.value
