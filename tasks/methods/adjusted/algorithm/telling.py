"""Controls whose categories tell the decision: held fixed, they leave nothing to compare.

A reason of denial, a copy of the decision, or an automated result that is always followed: among applicants of one such
category all were decided alike, whatever their group, and an effect of 0 says nothing about how they came into it.

Scope: which controls. That no verdict rests on an effect beside one: ``detection``.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Control
from tasks.numerics.arrays import Bools

TELLING: Final = "tells_decision"
"""How a reason begins that names such a control."""
FEWEST_APPROVED, MOST_DENIED = 0.05, 0.95
"""Categories tell the decision if those that are commoner among the denied hold fewer than the first share of the
approved, and more than the second of the denied."""
ROWS_A_CATEGORY = 20
"""With fewer on average a column tells it by chance, as names and numbers of files do."""
MOST_VALUES = 2
"""Of a number that counts as a category: 0 and 1."""


def telling(applications: Applications) -> dict[str, str]:
    """Name of each control that tells the decision -> the name of its block."""
    return {
        control.name: block.name
        for block in applications.blocks
        for control in _categorical(block.controls)
        if _tells(control, applications.denied)
    }


def _categorical(controls: tuple[Control, ...]) -> Iterator[Control]:
    for each in controls:
        known = each.values[np.isfinite(each.values)]
        if each.kind == "category" or len(np.unique(known)) <= MOST_VALUES:
            yield each


def _tells(control: Control, denied: Bools) -> bool:
    known = np.isfinite(control.values)
    side, (names, code) = denied[known], np.unique(control.values[known], return_inverse=True)
    if not side.any() or side.all() or len(names) * ROWS_A_CATEGORY > len(code):
        return False
    shares = [np.bincount(code[of], minlength=len(names)) / of.sum() for of in (~side, side)]
    commoner = shares[1] > shares[0]
    return bool(shares[0][commoner].sum() < FEWEST_APPROVED and shares[1][commoner].sum() > MOST_DENIED)
