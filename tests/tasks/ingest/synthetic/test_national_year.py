"""A synthetic national year: sizes of lenders, states, and a file that is read as a delivered one is."""

import duckdb
import numpy as np
import pytest

from schemas.errors import SpecError
from tasks.ingest.hmda.conversion import convert
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.synthetic.algorithm.twin import STATES, Nation, sizes
from tasks.ingest.synthetic.twin_files import write_nation

ROWS = 16_080_210
"""Of the first snapshot of 2022."""


def test_lenders_of_2022_are_as_many_and_as_unequal_as_published() -> None:
    found = sizes(ROWS)
    assert found.sum() == ROWS
    assert abs(len(found) - 4_460) <= 2
    assert 0.39 < found[:25].sum() / ROWS < 0.44
    assert 1_600 < (found >= 500).sum() < 1_700
    assert (np.diff(found) <= 0).all()
    assert found[-1] >= 1


@pytest.mark.parametrize("rows", [4, 999, 20_000, 2_000_001])
def test_sizes_add_up_and_every_lender_has_a_row(rows: int) -> None:
    found = sizes(rows)
    assert (found.sum(), found.min() >= 1, len(found) >= 2) == (rows, True, True)


def test_fewer_rows_than_two_lenders_need_are_refused(tmp_path) -> None:
    with pytest.raises(SpecError, match="3 rows are too few for 2 lenders"):
        write_nation(tmp_path / "year.txt", 3, 2022, 1)
    with pytest.raises(SpecError, match="layout of 2018 and later, and not of 2017"):
        write_nation(tmp_path / "year.txt", 100, 2017, 1)


def test_states_have_their_shares_and_small_lenders_a_home() -> None:
    rng = np.random.default_rng(1)
    nation = Nation.of(400_000, rng)
    lender, state = nation.draw(200_000, rng)
    small = lender == len(sizes(400_000)) // 2
    assert (state[small] == nation.home[lender[small][0]]).mean() > 0.9
    large = np.bincount(state[lender == 0], minlength=len(STATES)) / (lender == 0).sum()
    rows = np.array([each[2] for each in STATES])
    assert np.abs(large - rows / rows.sum()).max() < 0.01
    assert np.allclose(np.bincount(lender)[:3] / 200_000, sizes(400_000)[:3] / 400_000, atol=0.005)


def test_the_file_is_read_as_a_delivered_one_and_is_the_same_every_time(tmp_path) -> None:
    file, again = (write_nation(tmp_path / name, 3_000, 2022, 5) for name in ("one.txt", "two.txt"))
    assert file.read_bytes() == again.read_bytes()
    assert convert(recognise(file, tmp_path / "scratch"), tmp_path / "out").rows == 3_000
    rows = duckdb.read_parquet(
        [str(each) for each in (tmp_path / "out").rglob("*.parquet") if "applications" in str(each)]
    )
    told = rows.aggregate(
        "count(DISTINCT lender_id), count(DISTINCT state_code), avg((state_code = 'CA')::INT), count(unknown_codes), "
        "count_if(left(county_fips5, 2) <> left(tract_fips11, 2))"
    ).fetchall()[0]
    assert (told[0], told[1] > 20, told[3], told[4]) == (2, True, 0, 0)
