"""Logistic regression by Newton's method, with the signs of separation.

Scope: one fit of arrays in memory. Separated fits are penalised where they are needed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from tasks.numerics.arrays import Floats

STEPS = 25
"""Newton steps without convergence are a sign of separation."""
LARGEST = 15.0
"""So is a coefficient of this size (columns are standardised or 0 and 1)."""
EXTREME = 1e-8
"""So is a fitted probability this near to 0 or 1."""
SMALL = 1e-8
"""Newton stops when no coefficient moves by more."""
HALVINGS = 30


@dataclass(frozen=True)
class LogitFit:
    """A maximum likelihood fit of ``p`` columns, or a penalised one."""

    coefficients: Floats
    """``(p,)``."""
    fitted: Floats
    """``(n,)`` probabilities of y = 1."""
    inverse: Floats
    """``(p, p)`` inverse of the information X'WX (with the penalty, where there is one)."""
    separated: str
    """The sign of separation; empty where the fit can be used."""

    def influence(self, x: Floats, y: Floats) -> Floats:
        """``(n, p)`` influence of each row on the coefficients: H^-1 x_i (y_i - p_i)."""
        found: Floats = (x * (y - self.fitted)[:, None]) @ self.inverse
        return found


def fit_logit(x: Floats, y: Floats, start: Floats | None = None, ridge: float = 0.0) -> LogitFit:
    """Fit P(y = 1) = 1 / (1 + exp(-x b)) by Newton's method with step halving.

    Args:
        x: ``(n, p)`` design of full rank, intercept first; columns standardised or 0 and 1.
        y: ``(n,)`` 0 or 1.
        start: ``(p,)`` first coefficients; zeros if left out.
        ridge: Penalty ``ridge / 2`` on the sum of squared coefficients but the intercept's. A penalised fit is finite
            whatever the data, and is never called separated.
    """
    b = np.zeros(x.shape[1]) if start is None else start.copy()
    penalty = np.full(len(b), ridge)
    penalty[0] = 0.0
    likelihood = log_likelihood(x @ b, y) - 0.5 * float(penalty @ b**2)
    converged = False
    for _ in range(STEPS if ridge == 0 else 4 * STEPS):
        p = expit(x @ b)
        step = solve(information(x, p, penalty), x.T @ (y - p) - penalty * b)
        if np.abs(step).max() <= SMALL:
            converged = True
            break
        b, likelihood = _ascend(x, y, b, step, penalty, likelihood)
        if ridge == 0 and np.abs(b).max() > 2 * LARGEST:
            break
    p = expit(x @ b)
    return LogitFit(b, p, inverse(information(x, p, penalty)), "" if ridge else _sign(b, p, converged))


def log_likelihood(index: Floats, y: Floats) -> float:
    """Bernoulli log likelihood of the linear predictor ``(n,)``."""
    return float(log_expit(np.where(y > 0, index, -index)).sum())


def information(x: Floats, p: Floats, penalty: Floats | float = 0.0) -> Floats:
    """``(p, p)`` X'WX with W = p (1 - p), and the penalty on its diagonal."""
    found: Floats = (x * (p * (1 - p))[:, None]).T @ x
    found.flat[:: len(found) + 1] += penalty
    return found


def solve(matrix: Floats, right: Floats) -> Floats:
    """Solution of a symmetric system; by least squares where the matrix is singular, as it is far into separation."""
    try:
        return np.linalg.solve(matrix, right).astype(np.float64)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right, rcond=None)[0].astype(np.float64)


def _ascend(x: Floats, y: Floats, b: Floats, step: Floats, penalty: Floats, likelihood: float) -> tuple[Floats, float]:
    """The Newton step, halved until the likelihood does not fall."""
    for _ in range(HALVINGS):
        new = b + step
        reached = log_likelihood(x @ new, y) - 0.5 * float(penalty @ new**2)
        if reached >= likelihood - 1e-9 * abs(likelihood):
            return new, reached
        step = step / 2
    return b, likelihood


def _sign(b: Floats, p: Floats, converged: bool) -> str:
    """What shows that coefficients have no finite maximum."""
    if np.abs(b).max() > LARGEST:
        return f"a coefficient beyond {LARGEST:g}"
    if p.min() < EXTREME or p.max() > 1 - EXTREME:
        return "a fitted probability of 0 or 1"
    return "" if converged else f"no convergence in {STEPS} steps"


def inverse(matrix: Floats) -> Floats:
    """Inverse of a symmetric matrix; the pseudoinverse where it is singular, as it is far into separation."""
    return np.linalg.pinv(matrix, hermitian=True).astype(np.float64)
