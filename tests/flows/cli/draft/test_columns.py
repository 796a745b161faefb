"""Why a column is no feature: each reason on a column that has it, and not on one that looks alike."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import unprepared_tables as tables

from flows.cli.draft.columns import Entry, Split, tells
from flows.cli.draft.drafting import Choices, Draft, drafted
from flows.cli.draft.questions import answered, questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.table import columns_of
from tasks.preprocessing.algorithm import association

N = tables.ROWS
CHOICES = Choices({"decision.column": "answer", "protected": ("gender",)})
RNG = random.Random(5)


def draft_of(place: Path, **columns: object) -> Draft:
    return drafted(read_file(File(tables.lender(place, **columns))), CHOICES)


def entry_of(place: Path, **columns: object) -> Entry:
    """The entry of the first of these columns."""
    return next(entry for entry in draft_of(place, **columns).entries if entry.name == next(iter(columns)))


NUMBERS = [round(RNG.uniform(1, 900), 2) for _ in range(N)]
REASONS = {
    "a number of the row": ({"position": range(N)}, "id"),
    "a key by its name": ({"loan_id": [7 * i % 10007 for i in range(N)]}, "id"),
    "an id that repeats": ({"branch_id": [i % 9 for i in range(N)]}, "id"),
    "another text in each row": ({"token": [f"x{7919 * i % 100003}q" for i in range(N)]}, "id"),
    "days": ({"opened": ["2024-01-31"] * 100 + ["2023-12-01 10:15"] * (N - 100)}, "date"),
    "days the other way round": ({"opened": [f"{i % 28 + 1}.3.2024" for i in range(N)]}, "date"),
    "a year": ({"activity_year": ["2021"] * 100 + ["2022"] * (N - 100)}, "year"),
    "a place in numbers": ({"zip_code": [94000 + i % 60 for i in range(N)]}, "place"),
    "free text": ({"remark": [f"said {i % 90} things about the loan of {i}" for i in range(N)]}, "text"),
    "one value": ({"channel": ["web"] * N}, "constant"),
    "nothing": ({"further": [""] * N}, "constant"),
    "mostly nothing": ({"second": (["5", "", "", "6", "", ""] * N)[:N]}, "missing"),
    "another protected name": ({"applicant_age_above_62": ["yes", "no"] * (N // 2)}, "protected"),
    "races by their words": ({"grp": [("White", "Black", "Asian")[i % 3] for i in range(N)]}, "protected"),
    "a name of the lake": ({"row_id": [i % 7 for i in range(N)]}, "reserved"),
    "weights": ({"wgt": [round(RNG.uniform(0.3, 4), 4) for _ in range(N)]}, "weight"),
    "weights of a survey": ({"WGTB95": [round(RNG.uniform(0.3, 4), 4) for _ in range(N)]}, "weight"),
    "weights of whole numbers": ({"sample_weight": [1 + i % 2 for i in range(N)]}, "weight"),
    "records": ({"details": [f'{{"a": 1, "b": {i % 7}}}' for i in range(N)]}, "nested"),
    "several currencies": ({"cost": [f"${i % 90},000" if i % 2 else f"€{i % 90}.000" for i in range(N)]}, "units"),
    "seconds": ({"ts": [1672531200 + 86400 * i for i in range(N)]}, "date"),
    "milliseconds": ({"submittedAt": [1672531200000 + 86_400_123 * i for i in range(N)]}, "date"),
    "padded numbers": ({"expte": [f"{7919 * i % 100003:010d}" for i in range(N)]}, "id"),
    "a rate that is set at approval": ({"interest_rate": [i % 40 / 10 for i in range(N)]}, "after"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_column_is_left_out_with_its_reason(name: str, tmp_path: Path) -> None:
    columns, reason = REASONS[name]
    entry = entry_of(tmp_path, **columns)
    assert entry.reason == reason
    assert entry.why


KEPT = {
    "a number that differs in each row": ({"balance": [i * 7919 % 1000 + i / 1e3 for i in range(N)]}, "continuous"),
    "a few dates of terms": ({"months": [12, 24, 36, 48] * (N // 4)}, "continuous"),
    "words of a few kinds": ({"employment": ["steady", "none", "self"] * (N // 3)}, "nominal"),
    "a third missing on both sides": ({"tier": (["", "gold", "silver"] * N)[:N]}, "binary"),
    "zeros in front of amounts": ({"income": [f"{int(n):09d}" for n in NUMBERS]}, "continuous"),
    "codes of one length": ({"branch_code": [f"{i % 40:04d}" for i in range(N)]}, "nominal"),
    "whole weights of people": ({"weight": [50 + i % 45 for i in range(N)]}, "continuous"),
    "bands": ({"dti": [("<20%", "20%-<30%", "36", ">60%")[i % 4] for i in range(N)]}, "ordinal"),
    "a number of accounts": ({"no of accounts": [i % 12 for i in range(N)]}, "continuous"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_a_column_that_looks_alike_is_a_feature(name: str, tmp_path: Path) -> None:
    columns, kind = KEPT[name]
    entry = entry_of(tmp_path, **columns)
    assert (entry.reason, entry.type) == ("", kind)


def test_the_decision_under_another_name_is_left_out_and_a_good_predictor_is_not(tmp_path: Path) -> None:
    answers = [row.rsplit(",", 1)[1] for row in tables.lender(tmp_path).read_text().splitlines()[1:]]
    often = [value if i % 4 else "denied" for i, value in enumerate(answers)]
    codes = {"stage": ["7" if a == "approved" else "9" for a in answers], "score_band": often}
    found = {entry.name: entry for entry in draft_of(tmp_path, **codes).entries}
    assert (found["stage"].reason, found["score_band"].reason) == ("after", "")
    assert "AUC of 1.00" in found["stage"].why


@pytest.mark.parametrize(("filled", "after"), [(lambda yes, i: yes, True), (lambda yes, i: i % 2 == 0, False)])
def test_what_one_side_alone_has_is_known_after_the_decision(filled, after: bool, tmp_path: Path) -> None:
    answers = [row.rsplit(",", 1)[1] for row in tables.lender(tmp_path).read_text().splitlines()[1:]]
    cells = [str(i % 60 + 1) if filled(a == "approved", i) else "0" for i, a in enumerate(answers)]
    assert (entry_of(tmp_path, quoted=cells).reason == "after") is after


def test_of_two_columns_that_tell_the_same_the_first_stays(tmp_path: Path) -> None:
    words = [("car", "home", "other")[i % 3] for i in range(N)]
    codes = {"use": words, "use_cd": [{"car": "1", "home": "2", "other": "3"}[w] for w in words]}
    found = {entry.name: entry for entry in draft_of(tmp_path, **codes, first=NUMBERS, again=NUMBERS).entries}
    assert (found["use"].reason, found["use_cd"].reason) == ("", "copy")
    assert (found["first"].reason, found["again"].reason) == ("", "copy")


def test_equal_rows_with_an_id_are_counted_once(tmp_path: Path) -> None:
    path = tables.lender(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    for again in (5, N // 2):  # also where so many stand twice that few ids are those of one row
        path.write_text("".join([*lines, *lines[1 : again + 1]]))
        draft = drafted(read_file(File(path)), CHOICES)
        assert (draft.repeats, draft.row_id, draft.table.rows, draft.table.repeated) == ("first", "customer", N, again)
    bare = "".join(line.partition(",")[2] for line in lines)
    path.write_text(bare + "".join(line.partition(",")[2] for line in lines[1:6]))
    assert drafted(read_file(File(path)), CHOICES).repeats == "all"


def test_a_group_that_loses_more_rows_to_missing_features_is_named(tmp_path: Path) -> None:
    table = [row.split(",") for row in tables.lender(tmp_path).read_text().splitlines()[1:]]
    draft = draft_of(tmp_path, savings=["" if row[1] == "w" else str(i % 90) for i, row in enumerate(table)])
    [loss] = [loss for loss in draft.losses if loss.group == "w"]
    assert (loss.complete, loss.causes) == (0, ("savings",))


@pytest.mark.parametrize(
    ("columns", "year", "asks"),
    [
        ({}, None, True),
        ({"decision_year": ["2021"] * N}, 2021, False),
        ({"year": ["2021"] * 200 + ["2020"] * (N - 200)}, 2021, True),
        ({"decided": ["3/14/2019"] * N}, 2019, False),
        ({"term": ["Fall 2018"] * N}, 2018, True),
        ({"term": ["Rekrutacja 2023/2024"] * N}, 2023, True),
    ],
)
def test_the_year_is_that_of_a_column_of_years_or_dates(columns, year, asks: bool, tmp_path: Path) -> None:
    found = draft_of(tmp_path, **columns).year
    assert bool(found.why) is asks
    assert year is None or found.value == year


def test_a_day_that_stands_for_none_is_missing_and_tells_no_year(tmp_path: Path) -> None:
    days = [f"2023-05-{i % 28 + 1:02d}" if i % 9 else "9999-12-31" for i in range(N)]
    draft = draft_of(tmp_path, decision_date=days)
    assert (draft.year.value, draft.year.why) == (2023, "")
    assert draft.recipes()["decision_date"].codes == ("9999-12-31",)


def test_numbers_rank_the_decision_as_the_check_of_an_audit_has_it() -> None:
    rng = np.random.default_rng(482)
    for share in (0.0, 0.3):
        cells = np.where(rng.random(400) < share, "", np.round(rng.normal(50, 9, 400), 1).astype(str))
        column = columns_of(pa.table({"ratio": cells}))["ratio"]
        favourable = rng.random(400) < 0.3 + 0.4 * (np.nan_to_num(column.numbers) > 50)
        decided = rng.random(400) < 0.9
        split = Split(favourable & decided, ~favourable & decided)
        expected = association(column.numbers[decided], favourable[decided], unordered=False).value
        assert tells(column, split) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "asks"),
    [("monthly_income", True), ("Jahreseinkommen", True), ("coapplicant_income", False), ("capital_gain", False)],
)
def test_an_income_of_0_that_is_kept_is_named_with_its_rows(name: str, asks: bool, tmp_path: Path) -> None:
    draft = draft_of(tmp_path, **{name: [0 if i % 20 == 0 else 3 * i for i in range(N)]})
    entry = next(entry for entry in draft.entries if entry.name == name)
    assert (entry.doubt == "0 is kept as the income of 12 rows") is asks
    (question,) = [q for q in questions(draft) if q.key == "numbers"] if asks else [None]
    if question is not None:
        changed = answered(draft, {"numbers": f"{name}: 0 is missing"})
        assert changed.recipes()[name].codes == ("0",)


def test_thousands_that_end_in_zeros_are_no_decimals(tmp_path: Path) -> None:
    incomes = [1000 * (40 + i % 9) if i % 2 else 10_007 + 13 * i for i in range(N)]
    incomes[1] = 1_234_567  # two marks prove what a full stop is
    draft = draft_of(tmp_path, ingresos=[f"{income:,}".replace(",", ".") for income in incomes])
    assert draft.table.columns["ingresos"].numbers.sum() == sum(incomes)


def test_a_column_in_the_words_of_a_legend_stands_for_its_codes(tmp_path: Path) -> None:
    file = tables.lender(tmp_path, PROD_CD=[("10", "20", "30")[i % 3] for i in range(N)])
    file.write_text(f"{file.read_text()}\n\nPROD_CD: 10 = Auto, 20 = Card, 30 = Home\n")
    draft = drafted(read_file(File(file)), CHOICES)
    assert {"PROD_CD", "PROD_CD in words"} & set(draft.features) == {"PROD_CD in words"}
