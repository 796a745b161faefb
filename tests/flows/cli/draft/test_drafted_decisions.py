"""Which column holds the decision and which side its values are on; nothing is made up."""

import pytest

from flows.cli.draft.decision import Values, candidates, leading, read

WORDS = {"Approved": 60, "Denied": 30, "Withdrawn": 10}


def sides(name: str, *values: str) -> dict[str, str]:
    return {value: meaning.side for value, meaning in read(name, dict.fromkeys(values, 10)).meanings.items()}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("approved", ("1", "0"), {"1": "favourable", "0": "unfavourable"}),
        ("bad_flag", ("1", "0"), {"1": "unfavourable", "0": "favourable"}),
        ("default payment next month", ("0", "1"), {"0": "favourable", "1": "unfavourable"}),
        ("two_year_recid", ("0", "1"), {"0": "favourable", "1": "unfavourable"}),
        ("Crédito autorizado", ("Sí", "No"), {"Sí": "favourable", "No": "unfavourable"}),
        ("result", ("1", "0"), {}),
        ("Decision", ("yes", "no"), {"yes": "favourable", "no": "unfavourable"}),
        ("income", (">50K", "<=50K"), {">50K": "favourable", "<=50K": "unfavourable"}),
        ("decn", ("A", "D", "W"), {"A": "favourable", "D": "unfavourable", "W": "neither"}),
        ("grade", ("A", "B"), {}),
        (
            "action_taken",
            ("1", "2", "3", "4", "7"),
            {"1": "favourable", "2": "favourable", "3": "unfavourable", "4": "neither", "7": "neither"},
        ),
        ("action_code", ("1", "2", "3"), {}),
        ("accepted?", ("Accepted", "Turned down", "Refused", "Don't know"),
         {"Accepted": "favourable", "Turned down": "unfavourable", "Refused": "neither", "Don't know": "neither"}),
        ("decision", ("Accepted", "Refused"), {"Accepted": "favourable", "Refused": "unfavourable"}),
    ],
)  # fmt: skip
def test_sides_of_values(name: str, values: tuple[str, ...], expected: dict[str, str]) -> None:
    assert sides(name, *values) == expected


def ranked(**columns: dict[str, int]) -> list:
    values = [Values(name, rows, 0.0) for name, rows in columns.items()]
    return candidates(values, (), values[-1].name)


def test_the_decision_is_before_the_repayment() -> None:
    repaid = {"Fully Paid": 50, "Charged Off": 10}
    order = ranked(loan_status=repaid, underwriting_decision=WORDS, grade={"A": 50, "B": 50})
    assert order[0].column == "underwriting_decision"
    assert leading(order) is order[0]


def test_nothing_is_drafted_where_two_columns_are_near() -> None:
    order = ranked(first_decision=WORDS, second_decision=dict(WORDS))
    assert leading(order) is None
    assert [candidate.column for candidate in order[:2]] == ["second_decision", "first_decision"]


def test_a_column_of_many_missing_cells_loses() -> None:
    order = candidates([Values("status", WORDS, 0.9), Values("outcome", dict(WORDS), 0.0)], (), "x")
    assert order[0].column == "outcome"


@pytest.mark.parametrize("name", ["race", "county", "customer id", "application date"])
def test_what_names_people_places_ids_and_days_is_no_candidate(name: str) -> None:
    assert ranked(**{name: WORDS}) == []
