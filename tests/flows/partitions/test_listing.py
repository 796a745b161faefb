"""Which partitions a year has: no row is lost, and each that is not audited says why."""

import numpy as np
import pytest
from conftest import spec_of
from loans_of_lenders import NOBODY, ROWS, lenders_spec, loans_of_lenders

from flows.cli.options import BUNDLED, load_spec
from flows.partitions import partition_list
from flows.partitions.partition_list import listed_value, listing, slug, without_value
from schemas.audit.partition import ALL, By
from schemas.errors import SpecError
from tasks.ingest.stage import ingest, ingest_settings
from tasks.lake.store import Lake

YEAR = 2024


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return lenders_spec(tmp_path_factory.mktemp("lenders"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def found(spec, lake):
    return {each.value: each for each in listing(spec, YEAR, lake)}


def test_no_row_is_lost(spec, lake, found):
    nobody = without_value(spec, YEAR, lake)
    assert {value: each.rows for value, each in found.items() if value != ALL} == ROWS
    assert nobody.rows == NOBODY
    assert found[ALL].rows == sum(ROWS.values()) + NOBODY == len(loans_of_lenders())
    assert found[ALL].usable == sum(each.usable for each in found.values() if each.value != ALL) + nobody.usable


def test_the_whole_comes_first_and_then_the_largest(found):
    usable = [each.usable for each in found.values()]
    assert next(iter(found)) == ALL
    assert usable[1:] == sorted(usable[1:], reverse=True)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("Small", "60 usable rows, fewer than by.minimum (100)"),
        ("Approver", "all 120 usable decisions are favourable"),
        ("Of b", "no usable row belongs to the reference group (race: white)"),
        (
            "Few b",
            "no group beside the reference has bootstrap.minimum_n (30) people; the largest, Black, has 10",
        ),
    ],
)
def test_one_that_is_too_few_says_why(found, value, why):
    assert found[value].too_few == why
    assert {each for each, of in found.items() if of.too_few} == {"Small", "Approver", "Of b", "Few b"}


def test_usable_rows_are_those_that_are_kept_and_decided(tmp_path, lake):
    table = loans_of_lenders()
    table.loc[:9, "approved"] = "withdrawn"
    table.loc[10:14, "approved"] = " yes "  # cells are trimmed, as the stage ingest trims them
    own = lenders_spec(tmp_path, table, source__keep="{amount: {minimum: 100}, purpose: [buy]}")
    taken = table[(table["amount"] >= 100) & (table["purpose"] == "buy") & (table["approved"] != "withdrawn")]
    of_bank = listed_value(own, YEAR, lake, "Bank A")
    assert of_bank.usable == int((taken["lender"] == "Bank A").sum())
    assert listing(own, YEAR, lake)[0].usable == len(taken)


def test_the_counts_are_those_of_the_stage_ingest(tmp_path, lake):
    table = loans_of_lenders()
    table["purpose"] = np.where(table["purpose"] == "buy", "1.0", "2")
    own = lenders_spec(
        tmp_path,
        table,
        source__derive="{aim: {column: purpose, values: {home: ['1']}}}",
        source__keep="{income: present}",
        missing="impute",
        columns="{amount: {type: continuous}, aim: {type: nominal}}",
        causal_graph="{}",
    )
    settings = ingest_settings(own.model_copy(update={"by": None}))
    produced = ingest.function(settings=settings)
    [every, *_] = listing(own, YEAR, lake)
    assert every.usable == produced.tables["applications"].num_rows < every.rows


def test_by_values_and_by_largest_restrict(spec, lake, found):
    def restricted(**by):
        own = spec.model_copy(update={"by": By(column="lender", minimum=100, **by)})
        return [each.value for each in listing(own, YEAR, lake)]

    assert restricted(values=("Small", "Bank-A")) == [ALL, "Bank-A", "Small"]
    assert restricted(largest=2) == [ALL, "Bank A", "Bank-A"]
    assert len(restricted()) == len(found)


def test_the_source_is_read_for_it_once(spec, lake, found, monkeypatch):
    monkeypatch.setattr(partition_list, "_counted", None)
    assert listing(spec, YEAR, lake) == tuple(found.values())


def test_a_file_of_counts_that_cannot_be_read_is_made_again(tmp_path):
    own, other = lenders_spec(tmp_path), Lake(tmp_path / "other")
    before = listing(own, YEAR, other)
    for path in other.storage.glob("parts/*.json"):
        other.write_file(path, b'{"Bank A": 5')
    assert listing(own, YEAR, other) == before


def test_one_lender_makes_two_partitions(tmp_path, lake):
    table = loans_of_lenders()
    own = lenders_spec(tmp_path, table[table["lender"] == "Bank A"])
    one = listing(own, YEAR, lake)
    assert [(each.value, each.rows, each.too_few) for each in one] == [(ALL, 300, ""), ("Bank A", 300, "")]


def test_an_unknown_column_is_told_with_the_nearest(tmp_path, lake):
    own = lenders_spec(tmp_path, by="by: {column: lendr}\n")
    with pytest.raises(SpecError, match="no column 'lendr'; did you mean 'lender'"):
        listing(own, YEAR, lake)


def test_a_column_of_too_many_values_is_refused(tmp_path, lake, monkeypatch):
    monkeypatch.setattr(partition_list, "MOST_VALUES", 100)
    own = lenders_spec(tmp_path, by="by: {column: amount}\n", causal_graph="{}")
    with pytest.raises(SpecError, match=r"column 'amount' has more than 100 values"):
        listing(own, YEAR, lake)


def test_a_value_that_is_not_there_is_told_with_the_nearest(spec, lake):
    with pytest.raises(SpecError, match="--by-value Bank B: no row of 2024 has it in 'lender'; did you mean 'Bank A'"):
        listed_value(spec, YEAR, lake, "Bank B")
    own = spec.model_copy(update={"by": By(column="lender", values=("Smal",))})
    with pytest.raises(SpecError, match="'Smal' in 'lender'; did you mean 'Small'"):
        listing(own, YEAR, lake)


def test_a_value_of_the_name_of_every_row_is_refused(tmp_path, lake):
    own = lenders_spec(tmp_path, loans_of_lenders().replace({"lender": {"Small": ALL}}))
    with pytest.raises(SpecError, match="a row has 'all' in 'lender', which is the name of every row"):
        listing(own, YEAR, lake)


def test_a_source_without_a_file_has_no_partitions():
    with pytest.raises(SpecError, match="'boston1990' has neither vintage nor path"):
        load_spec(BUNDLED, {"by": "{column: married}"})


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("{column: race}", "'race' is the protected attribute race"),
        ("{column: approved}", "'approved' is the decision or its outcome"),
        ("{column: lender, minimum: 99}", "100"),
    ],
)
def test_what_makes_no_partitions_is_refused_with_the_spec(tmp_path, by, why):
    with pytest.raises(SpecError, match=why):
        lenders_spec(tmp_path, by=f"by: {by}\n")


def test_a_spec_without_by_has_no_partitions(tmp_path, lake):
    lenders_spec(tmp_path)
    with pytest.raises(SpecError, match="the spec has no `by`"):
        listing(spec_of(tmp_path), YEAR, lake)


@pytest.mark.parametrize(
    ("value", "said"),
    [("Bank A", "Bank_A"), ("Bank-A", "Bank_A"), ("Größe & Co.", "Gr_e_Co"), ("§", "x"), ("7H6G", "7H6G")],
)
def test_a_slug_is_of_letters_digits_and_lines_below(value, said):
    assert slug(value) == said
