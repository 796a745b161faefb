"""Which names of columns say what: each list is held against names that it has to know, and those that it must not."""

import pytest

from flows.cli.draft import table

PROTECTED = {
    "race": "race",
    "applicant_race-1": "race",
    "derived_ethnicity": "ethnicity",
    "GenderID": "sex",
    "Personal-Status": "sex",
    "agelt62": "age",
    "age_cat": "age",
    "MaritalStatus": "marital status",
    "foreign_worker": "origin",
    "black": "origin",
}


@pytest.mark.parametrize(("name", "kind"), PROTECTED.items())
def test_names_of_protected_attributes_are_known(name: str, kind: str) -> None:
    assert table.protected_kind(name) == kind


@pytest.mark.parametrize("name", ["mortgage", "Month-Duration", "Existing-Account-Status", "package", "agency_code"])
def test_names_that_look_alike_are_none(name: str) -> None:
    assert table.protected_kind(name) == ""


@pytest.mark.parametrize("name", ["interest_rate", "denial_reason-1", "purchaser_type", "rate_spread", "hoepa_status"])
def test_what_exists_after_the_decision_is_known_by_its_name(name: str) -> None:
    assert table.is_after(name)


@pytest.mark.parametrize("name", ["interest_only_payment", "rate", "income", "reason_for_loan", "loan_amount"])
def test_what_is_known_before_it_is_not(name: str) -> None:
    assert not table.is_after(name)


@pytest.mark.parametrize(
    "group", ["Race Not Available", "Unknown", "Sex Not Available", "Joint", "prefer not to say", "?"]
)
def test_values_that_are_no_group_are_known(group: str) -> None:
    assert table.is_nobody(group)


@pytest.mark.parametrize("group", ["White", "Not Hispanic or Latino", "1", "2 or more minority races", "Male"])
def test_groups_are_groups(group: str) -> None:
    assert not table.is_nobody(group)


@pytest.mark.parametrize("name", ["approved", "loan_status", "two_year_recid", "action_taken", "default payment"])
def test_decisions_are_known_by_their_names(name: str) -> None:
    assert table.is_outcome(name)


def test_what_is_left_of_the_others_is_a_group_and_no_reference() -> None:
    assert table.is_rest("Other")
    assert not table.is_nobody("Other")


def test_a_marital_status_is_no_decision() -> None:
    assert not table.is_outcome("marital_status")
