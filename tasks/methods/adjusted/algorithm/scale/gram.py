"""Least squares from sufficient statistics: cross products by batches, and a second pass for robust errors."""

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.linear import CollinearError, LinearFit, cr1_factor, sandwich
from tasks.methods.adjusted.algorithm.scale.batches import Batches, Meat
from tasks.numerics.arrays import Floats

COLLINEAR = 1e-12
"""A column of which the others leave so small a share of its squared length is collinear."""


def fit_batches(batches: Batches, absorbed: int = 0) -> LinearFit:
    """The fit of ``fit_linear`` on all rows together, in two passes.

    The second pass takes residuals, whose cross products with the columns also correct the coefficients for what
    rounding of the cross products has cost them (one step of iterative refinement).

    Args:
        batches: Rows, with clusters for CR1.
        absorbed: Parameters that were taken out beforehand (levels of a fixed effect).

    Raises:
        CollinearError: A column is a combination of the others, or there are no more rows than columns.
    """
    n, gram, moments = _cross_products(batches)
    df = n - len(moments) - absorbed
    if df < 1:
        raise CollinearError(f"{n} rows are too few for {len(moments) + absorbed} columns")
    bread = inverse(gram)
    coefficients = bread @ moments
    meat, squares, left = Meat(len(moments)), 0.0, np.zeros(len(moments))
    for batch in batches():
        residuals = batch.y - batch.x @ coefficients
        squares += float(residuals @ residuals)
        left += batch.x.T @ residuals
        meat.add(batch.x, residuals, batch.cluster)
    refined = coefficients + bread @ left
    hc1, by = sandwich(bread, meat.of_rows, n / df), meat.by_cluster
    if by is None:
        return LinearFit(refined, bread * squares / df, hc1, None, df)
    cr1 = sandwich(bread, by.meat, cr1_factor(n, df, by.clusters))
    return LinearFit(refined, bread * squares / df, hc1, cr1, df, by.clusters)


def _cross_products(batches: Batches) -> tuple[int, Floats, Floats]:
    """Rows, X'X ``(p, p)`` and X'y ``(p,)``."""
    n, gram, moments = 0, np.zeros((0, 0)), np.zeros(0)
    for batch in batches():
        if n == 0:
            gram, moments = np.zeros((batch.x.shape[1],) * 2), np.zeros(batch.x.shape[1])
        n += len(batch.y)
        gram += batch.x.T @ batch.x
        moments += batch.x.T @ batch.y
    return n, gram, moments


def inverse(gram: Floats) -> Floats:
    """``(p, p)`` inverse of cross products, with columns brought to length 1 beforehand.

    Raises:
        CollinearError: A column is a combination of the others, or zero in every row.
    """
    length = np.sqrt(np.diag(gram))
    if not length.all():
        raise CollinearError(f"column {int(length.argmin())} is zero in every row")
    try:
        root = np.linalg.cholesky(gram / np.outer(length, length))
    except np.linalg.LinAlgError as error:
        raise CollinearError("a column is a combination of the others") from error
    if np.diag(root).min() ** 2 < COLLINEAR:
        raise CollinearError(f"column {int(np.diag(root).argmin())} is a combination of those before")
    half = np.linalg.inv(root)
    found: Floats = half.T @ half / np.outer(length, length)
    return found
