"""Copies of rows, beyond what chance makes of rounded figures."""

import numpy as np
import pyarrow as pa

from tasks.preprocessing.algorithm import copies
from tasks.preprocessing.columns import cells_of, without_copies


def columns(n: int, levels: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, levels, n) for _ in range(4)]


def test_every_row_given_again_is_a_copy_of_the_first() -> None:
    found = copies([np.tile(column, 5) for column in columns(300, 50)])
    assert found.beyond_chance
    assert found.later.tolist() == [False] * 300 + [True] * 1200
    assert (found.sets, found.pairs) == (300, 3000)


def test_rounded_figures_are_equal_by_chance_and_no_copies() -> None:
    found = copies(columns(3000, 6))
    assert found.pairs > 1000
    assert 0.8 < found.pairs / found.expected < 1.25
    assert not found.beyond_chance


def test_a_few_equal_rows_are_no_finding() -> None:
    found = copies([np.append(column, column[:8]) for column in columns(500, 10_000)])
    assert found.pairs == 8
    assert not found.beyond_chance


def test_a_table_of_one_row_or_none_has_no_copies() -> None:
    assert copies([]).pairs == copies([np.zeros(1, np.int64)]).pairs == 0


def test_missing_cells_are_equal_to_each_other_and_identifiers_do_not_count() -> None:
    applications = pa.table(
        {"row_id": ["1", "2", "3"], "source_row": [1, 2, 3], "income": [None, None, 2.0], "purpose": ["a", "a", None]}
    )
    cells = cells_of(applications, [np.array([0, 0, 1])])
    assert len(cells) == 3
    assert copies(cells).later.tolist() == [False, True, False]


def test_applications_are_read_without_those_refused_as_copies() -> None:
    applications = pa.table({"row_id": ["1", "2", "3"]})
    copied_rows = pa.table({"row_id": ["2"]})
    assert without_copies(applications, copied_rows)["row_id"].to_pylist() == ["1", "3"]
    assert without_copies(applications, copied_rows.slice(1)) is applications
