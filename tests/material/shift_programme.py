"""The integer programme of actionable recourse (Ustun et al. 2019, section 3.1), by HiGHS."""

import numpy as np
from scipy.optimize import LinearConstraint, milp


def least_shift(gain: np.ndarray, shift: np.ndarray, need: float) -> float:
    """The least largest shift of one applicant: an indicator for each option and the largest shift as a variable."""
    d, k = gain.shape
    there = gain > 0
    size = d * k + 1
    cost = np.zeros(size)
    cost[-1] = 1.0
    one = np.zeros((d, size))
    level = np.zeros((d, size))
    for j in range(d):
        one[j, j * k : (j + 1) * k] = 1.0
        level[j, j * k : (j + 1) * k] = np.where(there[j], shift[j], 0.0)
        level[j, -1] = -1.0
    enough = np.append(gain.ravel(), 0.0)[None, :]
    upper = np.append(there.ravel().astype(float), 1.0)
    constraints = [LinearConstraint(one, 0, 1), LinearConstraint(level, -np.inf, 0), LinearConstraint(enough, need)]
    integral = np.append(np.ones(d * k), 0)
    found = milp(cost, constraints=constraints, integrality=integral, bounds=(0, upper), options={"mip_rel_gap": 0.0})
    assert found.success
    return float(found.fun)
