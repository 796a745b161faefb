"""What a draft takes for a denial: every spelling of a value goes with it, and what is no plain denial is asked for."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import evenhand, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.cli.draft import table as draft_table
from flows.cli.draft.columns import Candidate, given_sides, guessed_sides
from flows.cli.options import load_spec
from schemas.audit.file import parse
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.plan import plan

ROWS = 600
GROUPS = ("Asian", "Black", "White")


def decision(*values: str, column: str = "approved") -> Candidate:
    return Candidate(column, dict.fromkeys(values, 10), 0.0)


def table(place: Path, words: dict[str, float], seed: int = 3) -> pd.DataFrame:
    """Loans whose decision is one of some words with some shares, in loans.csv."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "race": rng.choice(GROUPS, ROWS, p=[0.2, 0.3, 0.5]),
            "income": rng.normal(60, 15, ROWS).round(1),
            "approved": rng.choice(list(words), ROWS, p=list(words.values())),
        }
    )
    frame.to_csv(place / "loans.csv", index=False)
    return frame


def draft(place: Path, *words: str):
    """The command and the spec that it wrote."""
    ended = evenhand("init", "loans.csv", *words, "--protected", "race", "-o", "loans.yaml", cwd=place)
    assert ended.returncode == 0, ended.stderr
    return ended, load_spec(place / "loans.yaml", {}).spec


def counted(spec, place: Path) -> pd.DataFrame:
    """Applications and favourable decisions by group, as the first stage of an audit makes them."""
    lake, first = Lake(place / "lake"), plan(spec).steps[0]
    produced = first.stage.run(lake, {}, first.settings, first.modules)
    rows = lake.read(produced.table("applications")).to_pandas()
    members = lake.read(produced.table("memberships")).to_pandas().query("protected_attribute == 'race'")
    merged = rows.merge(members, on="row_id")
    return merged.groupby("group")["favourable"].agg(["size", "sum"])


@pytest.mark.parametrize(
    ("words", "favourable"),
    [
        ({"yes": 0.3, "Yes": 0.3, "YES": 0.25, "no": 0.05, "No": 0.05, "NO": 0.05}, "yes"),
        ({"Approved": 0.5, "approved ": 0.2, " APPROVED.": 0.1, "denied": 0.1, "Denied.": 0.1}, "approved"),
        ({">50K": 0.4, ">50K.": 0.4, "<=50K": 0.1, "<=50K.": 0.1}, ">50K."),
        ({"1": 0.5, "1.0": 0.3, "0": 0.1, "0.0": 0.1}, "1"),
    ],
)
def test_spellings_of_a_value_are_one_value(words: dict[str, float], favourable: str, tmp_path: Path) -> None:
    frame = table(tmp_path, words)
    ended, spec = draft(tmp_path, "--decision", "approved", "--favourable", favourable)
    alike = [word for word in words if draft_table.folded(word) == draft_table.folded(favourable)]
    assert {draft_table.folded(value) for value in spec.decision.favourable} == {draft_table.folded(favourable)}
    assert len({draft_table.folded(value) for value in spec.decision.unfavourable}) == 1
    assert ("are spellings of one value" in ended.stderr) == (len(spec.decision.favourable) > 1)
    expected = frame["approved"].isin(alike).groupby(frame["race"]).agg(["size", "sum"])
    pd.testing.assert_frame_equal(counted(spec, tmp_path), expected, check_names=False, check_dtype=False)


def test_what_is_no_decision_is_no_denial_and_is_named(tmp_path: Path) -> None:
    words = {"yes": 0.6, "no": 0.1, "withdrawn": 0.1, "incomplete": 0.1, "purchased": 0.05, "Cancelled": 0.05}
    frame = table(tmp_path, words)
    ended, spec = draft(tmp_path, "--decision", "approved", "--favourable", "yes")
    assert (spec.decision.favourable, spec.decision.unfavourable) == (("yes",), ("no",))
    assert "decision.unfavourable" in spec.unconfirmed
    (mark,) = (m for m in parse((tmp_path / "loans.yaml").read_text()).marks if m.key == "decision.unfavourable")
    for word in ("withdrawn", "incomplete", "purchased", "Cancelled"):
        rows = int((frame["approved"] == word).sum())
        assert f"{word} ({rows} rows)" in mark.why
        assert f"{word} ({rows} rows)" in ended.stderr
    decided = frame[frame["approved"].isin(["yes", "no"])]
    expected = decided["approved"].eq("yes").groupby(decided["race"]).agg(["size", "sum"])
    pd.testing.assert_frame_equal(counted(spec, tmp_path), expected, check_names=False, check_dtype=False)


def test_a_value_that_the_user_calls_a_denial_is_one(tmp_path: Path) -> None:
    table(tmp_path, {"yes": 0.6, "no": 0.2, "Withdrawn": 0.1, "withdrawn": 0.1})
    words = ("--decision", "approved", "--favourable", "yes", "--unfavourable", "no", "--unfavourable", "withdrawn")
    _, spec = draft(tmp_path, *words)
    assert sorted(spec.decision.unfavourable) == ["Withdrawn", "no", "withdrawn"]
    assert "decision.unfavourable" not in spec.unconfirmed


def test_where_no_value_is_a_plain_denial_the_denials_are_asked_for(tmp_path: Path) -> None:
    table(tmp_path, {"A": 0.6, "B": 0.2, "C": 0.2})
    words = ("init", "loans.csv", "--decision", "approved", "--favourable", "A", "--protected", "race")
    ended = evenhand(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert "which values of approved are denials?" in ended.stderr
    assert "--unfavourable 'B'" in ended.stderr or "--unfavourable 'C'" in ended.stderr
    assert evenhand(*words, "--unfavourable", "D", cwd=tmp_path).returncode == 2
    assert evenhand(*words, "--unfavourable", "A", cwd=tmp_path).returncode == 2
    assert evenhand(*words, "--unfavourable", "B", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("values", "favourable", "denials", "is_marked"),
    [
        (("yes", "no"), "yes", {"no"}, False),
        (("True", "False"), "true", {"False"}, False),
        (("1", "0"), "0", {"1"}, False),
        (("1", "2"), "1", {"2"}, True),
        (("Fully Paid", "Charged Off", "Current"), "fully paid", {"Charged Off"}, True),
        (("Loan originated", "Application denied by financial institution"), "loan originated", None, False),
        (("originated", "Application withdrawn by applicant", "declined"), "originated", {"declined"}, True),
    ],
)
def test_plain_words_of_denial(values: tuple, favourable: str, denials: set | None, is_marked: bool) -> None:
    sides = given_sides(decision(*values), [favourable])
    assert set(sides.unfavourable) == (denials or set(values[1:]))
    assert bool(sides.why_denials) == is_marked


def test_codes_of_hmda_are_denied_by_3_alone() -> None:
    sides = given_sides(decision(*"12345678", column="action_taken"), ["1", "2"])
    assert sides.unfavourable == ("3",)
    assert "4 (10 rows)" in sides.why_denials


def test_two_values_of_which_one_is_no_decision_are_no_decision() -> None:
    with pytest.raises(SpecError, match="which values of approved are denials"):
        given_sides(decision("approved", "withdrawn"), ["approved"])


WORDS = st.sampled_from(
    ["approved", "yes", "denied", "no", "declined", "withdrawn", "incomplete", "purchased", "maybe", "in review", "x"]
)


@settings(max_examples=examples(200))
@given(st.data())
def test_no_spelling_of_the_favourable_value_is_ever_a_denial(data: st.DataObject) -> None:
    """Each other value is a plain denial, or the draft asks to confirm it."""
    words = data.draw(st.lists(WORDS, min_size=2, max_size=5, unique=True))
    values = {spelled(data, word) for word in words for _ in range(2)}
    favourable = data.draw(st.sampled_from(sorted(values)))
    candidate = decision(*sorted(values))
    try:
        sides = given_sides(candidate, [favourable])
    except SpecError:
        return
    assert {draft_table.folded(value) for value in sides.favourable} == {draft_table.folded(favourable)}
    assert draft_table.folded(favourable) not in {draft_table.folded(value) for value in sides.unfavourable}
    for value in values - set(sides.favourable):
        opposite = draft_table.folded(value) == "no" and draft_table.folded(favourable) == "yes"
        opposite |= draft_table.folded(value) == "yes" and draft_table.folded(favourable) == "no"
        assert (value in sides.unfavourable) == (draft_table.is_denial(value) or opposite) or value in sides.why_denials


def spelled(data: st.DataObject, word: str) -> str:
    """One of many spellings of a word."""
    cased = getattr(word, data.draw(st.sampled_from(["lower", "upper", "title", "capitalize"])))()
    blanks = data.draw(st.sampled_from([" ", "  "]))
    return (
        data.draw(st.sampled_from(["", " "])) + blanks.join(cased.split()) + data.draw(st.sampled_from(["", ".", " "]))
    )


def test_guessed_sides_take_every_spelling() -> None:
    sides = guessed_sides(decision("Approved", "APPROVED.", "Denied", "withdrawn"))
    assert (sides.favourable, sides.unfavourable) == (("Approved", "APPROVED."), ("Denied",))
    assert "withdrawn (10 rows)" in sides.why_denials


def test_a_group_that_loses_its_rows_to_a_missing_feature_is_named(tmp_path: Path) -> None:
    frame = table(tmp_path, {"yes": 0.7, "no": 0.3})
    frame.loc[frame["race"] == "Black", "income"] = np.nan
    frame.to_csv(tmp_path / "loans.csv", index=False)
    ended, spec = draft(tmp_path, "--decision", "approved", "--favourable", "yes")
    black = int((frame["race"] == "Black").sum())
    sentence = f"of Black applicants 0 of {black} have every feature (missing: income)"
    assert sentence in ended.stderr
    assert "of White applicants" not in ended.stderr
    assert "missing" in spec.unconfirmed
    assert sentence in (tmp_path / "loans.yaml").read_text()


def test_a_table_without_a_feature_says_that_rates_alone_are_audited(tmp_path: Path) -> None:
    frame = table(tmp_path, {"yes": 0.7, "no": 0.3}).drop(columns="income")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    ended, spec = draft(tmp_path, "--decision", "approved", "--favourable", "yes")
    assert "no column is left as a feature" in ended.stderr
    assert not spec.features()
