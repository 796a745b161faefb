"""Withheld groups that are shown as one: on the page, in the publication, and as a sum that later runs know of."""

import pytest
from test_exported import Tables, crowd_of, published

from schemas.tables.verdicts import PUBLICATION, PUBLICATION_KINDS, PUBLICATION_ROWS, PUBLISHED_MERGED
from tasks.metrics.publish.measures import Fates
from tasks.metrics.publish.people import Earlier

GROUPS = {"white": (300, 90, 0), "other": (12, 6, 0), "Asian": (3, 1, 0)}


@pytest.fixture(scope="module")
def found() -> tuple[Tables, Fates]:
    return published(crowd_of(**GROUPS), "public")


def test_the_sum_is_published_where_each_is_withheld(found: tuple[Tables, Fates]) -> None:
    rows = [r for r in found[0][PUBLISHED_MERGED.name].to_pylist() if r["protected_attribute"] == "race"]
    assert {r["groups"] for r in rows} == {"Asian or other"}
    assert {(r["base"], r["decision_maker"], r["n"], r["denied"]) for r in rows} >= {("source", "lender", 15, 7)}
    numbers = found[0][PUBLICATION.name].to_pylist()
    assert {r["number"] for r in numbers if r["group"] in ("Asian", "other")} == {None}
    known = {(r["group"], r["base"], r["decision_maker"], r["event"]): r["number"] for r in numbers if r["groups"]}
    for r in rows:
        assert known["Asian or other", r["base"], r["decision_maker"], ""] == r["n"]


def test_a_later_run_knows_the_sum(found: tuple[Tables, Fates]) -> None:
    tables, _ = found
    kind_of = tables[PUBLICATION_ROWS.name].to_pandas().set_index("row_id")["kind"]
    run = Earlier("r1", tables[PUBLICATION.name].to_pylist(), tables[PUBLICATION_KINDS.name].to_pylist(), kind_of)
    sums = [each for each in run.published() if each.other_counts]
    assert (15.0, 15.0) in {(each.low, each.high) for each in sums}
    merged = {(each.count.population.group, each.other_counts[0].population.group) for each in sums}
    assert merged >= {("Asian", "other")}
    again, fates = published(crowd_of(**GROUPS), "public", before={"r1": tables})
    assert again[PUBLISHED_MERGED.name] == tables[PUBLISHED_MERGED.name]
    assert fates.outcome.beside == 0


def test_under_internal_no_groups_are_one() -> None:
    assert published(crowd_of(**GROUPS), "internal")[0][PUBLISHED_MERGED.name].num_rows == 0
