"""Kernels of matrices with indicators of levels, which are kept as one code a row and category, and of parts."""

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def add_levels(total: Array, codes: Array, table: Array) -> None:
    """Add the rows of ``table (levels + 1, k)`` that each row has to ``total (n, k)``."""
    for i in range(codes.shape[0]):
        for c in range(codes.shape[1]):
            level = codes[i, c]
            for j in range(total.shape[1]):
                total[i, j] += table[level, j]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def sum_levels(total: Array, codes: Array, values: Array) -> None:
    """Add the values ``(n, k)`` of the rows of each level to ``total (levels + 1, k)``."""
    for i in range(codes.shape[0]):
        for c in range(codes.shape[1]):
            level = codes[i, c]
            for j in range(values.shape[1]):
                total[level, j] += values[i, j]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def sum_by_label(total: Array, numbers: Array, used: int, codes: Array, values: Array, label: Array) -> None:
    """Add numbers, then indicators, times values ``(n,)`` to the row of ``total`` of each row's label."""
    for i in range(codes.shape[0]):
        to = total[label[i]]
        for j in range(used):
            to[j] += values[i] * numbers[i, j]
        for c in range(codes.shape[1]):
            to[used + codes[i, c]] += values[i]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def add_cells(total: Array, row: Array, column: Array, values: Array) -> None:
    """Add values ``(n,)`` to the cells of ``total``."""
    for i in range(len(values)):
        total[row[i], column[i]] += values[i]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def square_levels(across: Array, pairs: Array, numbers: Array, codes: Array, weight: Array) -> None:
    """Add weighted sums of numbers by level to ``across (levels + 1, k)``, and of two levels to ``pairs``, one side."""
    width = across.shape[1]
    for i in range(codes.shape[0]):
        w = weight[i]
        for c in range(codes.shape[1]):
            level = codes[i, c]
            for j in range(width):
                across[level, j] += w * numbers[i, j]
            for d in range(c + 1):
                pairs[level, codes[i, d]] += w


@numba.njit(cache=True, fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator]
def add_scores(total: Array, numbers: Array, used: int, codes: Array, table: Array, y: Array, weight: Array) -> None:
    """Add numbers, then indicators, times the residual of a logit with the coefficients ``table`` to ``total``."""
    for i in range(codes.shape[0]):
        index = 0.0
        for j in range(used):
            index += numbers[i, j] * table[j]
        for c in range(codes.shape[1]):
            index += table[used + codes[i, c]]
        residual = y[i] - 1 / (1 + math.exp(-index))
        if len(weight):
            residual *= weight[i]
        for j in range(used):
            total[j] += residual * numbers[i, j]
        for c in range(codes.shape[1]):
            total[used + codes[i, c]] += residual


@numba.njit(cache=True, fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator]
def add_parts(
    squares: Array,
    through: Array,
    x: Array,
    of_rule: Array,
    residual: Array,
    whose: Array,
    codes: Array,
    part_of: Array,
    of_parts: Array,
    odds: Array,
    influence: Array,
) -> None:
    """Add some rows to the cross products of influences of parts and of whole groups.

    Args:
        squares: ``(parts + groups,)`` squared, of a part's rows and of wholes; a pair is added to one of its two cells.
        through: ``(parts + groups, k)`` sums of the same influences times residual times column.
        x: ``(n, k)``.
        of_rule: ``(n,)`` the residual of reference rows; 0 of others.
        residual: ``(n,)``.
        whose: ``(n,)`` number of the group, how many there are for the reference group, -1 of none.
        codes: ``(n, splits)`` level of each row, -1 of none.
        part_of: ``(groups, splits, levels)`` number of the part, -1 of none.
        of_parts: ``(parts, 4)`` mean and count of members, what is taken out, and the weight of that.
        odds: ``(n, groups)`` of membership.
        influence: ``(n, groups)`` of each row on the whole.
    """
    groups, parts = odds.shape[1], len(of_parts)
    numbers = np.empty(groups * (codes.shape[1] + 1), np.int64)
    values = np.empty(len(numbers))
    for i in range(len(x)):
        count = 0
        for g in range(groups):
            if whose[i] != g and whose[i] != groups:
                continue
            for s in range(codes.shape[1]):
                part = part_of[g, s, codes[i, s]] if codes[i, s] >= 0 else -1
                if part < 0:
                    continue
                numbers[count] = part
                if whose[i] == g:
                    values[count] = (residual[i] - of_parts[part, 0]) / of_parts[part, 1]
                else:
                    values[count] = -odds[i, g] * (residual[i] - of_parts[part, 2]) / of_parts[part, 3]
                count += 1
        for g in range(groups):
            if influence[i, g] != 0:
                numbers[count], values[count] = parts + g, influence[i, g]
                count += 1
        for a in range(count):
            of_first, value = squares[numbers[a]], values[a]
            for b in range(a + 1):
                of_first[numbers[b]] += value * values[b]
            if of_rule[i] != 0:
                weight, to = values[a] * of_rule[i], through[numbers[a]]
                for j in range(x.shape[1]):
                    to[j] += weight * x[i, j]
