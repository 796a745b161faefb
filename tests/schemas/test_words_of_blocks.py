"""Words of column names: places, and through whom an application went."""

import pytest

from schemas.audit.column import block_of
from schemas.blocks import is_place, is_through, words_of
from schemas.terms import Role


@pytest.mark.parametrize(
    "name", ["zip", "ZipCode", "property_zip_code", "plz", "postcode", "censusTract", "MSA", "state_code", "Street 2"]
)
def test_a_place_is_a_place_however_it_is_written(name):
    assert is_place(name)
    assert block_of(name, (Role.FEATURE,)) == "place"


@pytest.mark.parametrize("name", ["income", "marital_status", "statement", "plate", "latest", "cityscape", "loan"])
def test_a_word_inside_another_is_no_place(name):
    assert not is_place(name)


def test_branches_and_officers_are_through_whom():
    assert [is_through(name) for name in ("branch_id", "loanOfficer", "LEI", "brokerage")] == [True, True, True, False]


def test_words_are_cut_at_marks_numbers_and_capitals():
    assert words_of("tract_to-MSAIncome2020") == ("tract", "to", "msa", "income", "2020")
