"""Controls that tell the decision, and those that only help to."""

import numpy as np
import pytest

from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.detection import telling

N = 400
DENIED = np.arange(N) < 100


def found(values: np.ndarray, kind: str = "category") -> dict[str, str]:
    control = Control("reason", kind, values.astype(np.float64), ("a", "b", "c") if kind == "category" else ())
    other = Control("income", "number", np.linspace(0, 1, N))
    blocks = (Block("finances", (other,)), Block("terms", (control,)))
    return telling(Applications(DENIED, np.zeros(N, np.int32), ("w",), 0, blocks))


def flipped(values: np.ndarray, rows: int) -> np.ndarray:
    """The same with some rows of either decision in the category of the other."""
    return np.where(np.isin(np.arange(N), [*range(rows), *range(100, 100 + rows)]), 0, values)


@pytest.mark.parametrize("kind", ["category", "number"])
def test_a_copy_of_the_decision_is_one_though_a_few_rows_differ(kind: str) -> None:
    assert found(1.0 * DENIED, kind) == {"reason": "terms"}
    assert found(flipped(1.0 * DENIED, 4), kind) == {"reason": "terms"}
    assert found(flipped(1.0 * DENIED, 6), kind) == {}


def test_reasons_of_denial_are_one() -> None:
    assert found(np.where(DENIED, 1 + np.arange(N) % 2, 0)) == {"reason": "terms"}


def test_a_category_in_which_all_are_denied_is_none_where_others_are_denied_too() -> None:
    assert found(1.0 * (np.arange(N) < 60)) == {}


def test_missing_values_and_numbers_of_files_tell_nothing() -> None:
    assert found(np.where(DENIED, 1.0, np.nan)) == {}
    assert found(np.arange(N)) == {}
