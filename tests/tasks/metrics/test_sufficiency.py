"""When an audit ends before its costly stages: no group has the people that a verdict needs, and none can breach."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from conftest import SPEC, spec_of
from loans_by_year import WITHIN, write_years, year_of_loans, yearly_spec

from flows.execution import check_evidence
from flows.partitions.year_audit import audit_year
from schemas.errors import TooLittleEvidenceError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.metrics import verdicts

FREE = SPEC.split("thresholds:")[0] + "disclosure: {profile: public}\n"
"""Without limits of its own."""
LIMITS = {"verdicts__minimum_n": "30", "verdicts__minimum_events": "10"}


def tables(**groups: tuple[int, int]) -> tuple[pa.Table, pa.Table]:
    """Applications and memberships; of each group how many applied, and how many were denied."""
    rows = [(f"{name}{i}", name, i >= denied) for name, (n, denied) in groups.items() for i in range(n)]
    ids, names, favourable = (list(column) for column in zip(*rows, strict=True))
    memberships = {"row_id": ids, "protected_attribute": ["race"] * len(ids), "group": names}
    return pa.table({"row_id": ids, "favourable": favourable}), pa.table(memberships)


def check(text: str = FREE, groups: dict[str, tuple[int, int]] | None = None, **overrides: str) -> None:
    verdicts.check(*tables(**(groups or {})), spec_of(Path(), text, **overrides))


@pytest.mark.parametrize(
    ("groups", "small"),
    [
        ({"white": (70, 20), "Black": (29, 12)}, "'Black'"),
        ({"white": (29, 12), "Black": (70, 20)}, "'white'"),
        ({"white": (70, 20), "Black": (40, 9)}, "'Black'"),
        ({"white": (70, 52), "Black": (40, 31)}, "'Black'"),
        ({"white": (70, 20), "Black": (9, 3), "Asian": (5, 1), "Roma": (3, 1)}, "'Asian', 'Black' and 1 more"),
    ],
)
def test_without_a_group_of_enough_people_the_audit_ends(groups: dict[str, tuple[int, int]], small: str) -> None:
    with pytest.raises(TooLittleEvidenceError) as error:
        check(groups=groups)
    said = str(error.value)
    assert error.value.exit_code is ExitCode.INCONCLUSIVE
    assert f"too few are {small};" in said
    assert "30 applications, 10 approved and 10 denied" in said
    assert len(said) <= 240
    assert not any(f" {n} " in said for n, _ in groups.values()), "exact small counts are not told"


@pytest.mark.parametrize(
    "groups",
    [
        {"white": (70, 20), "Black": (30, 10)},
        {"white": (70, 20), "Black": (5, 2), "Asian": (30, 10)},  # enough for somebody
        {"white": (1000, 100), "Black": (20, 20)},  # 0 of 20 against 90 of 100 breaches by the raw rates alone
    ],
)
def test_where_a_verdict_can_come_out_it_goes_on(groups: dict[str, tuple[int, int]]) -> None:
    check(groups=groups)


@pytest.mark.parametrize(
    "overrides", [{"verdicts__limits": "null"}, {"profile": "paper"}, {"verdicts__minimum_n": "5"}]
)
def test_where_nothing_is_judged_or_less_is_asked_it_goes_on(overrides: dict[str, str]) -> None:
    check(groups={"white": (70, 20), "Black": (29, 12)}, **overrides)


def test_a_model_may_deny_others_than_the_lender_did() -> None:
    few_denied = {"white": (70, 20), "Black": (40, 2)}
    check(groups=few_denied, verdicts__decision_makers="[model]")
    with pytest.raises(TooLittleEvidenceError):
        check(groups={"white": (70, 20), "Black": (29, 2)}, verdicts__decision_makers="[model]")


def test_a_limit_of_the_specs_own_holds_for_the_reference_group_too() -> None:
    groups = {"white": (70, 20), "Black": (29, 12)}
    check(SPEC, groups)
    with pytest.raises(TooLittleEvidenceError):
        check(SPEC, {"white": (25, 12), "Black": (29, 12)})


def test_a_message_with_long_names_keeps_its_length() -> None:
    names = [f"a group with a very long name {chr(97 + i)}" for i in range(20)]
    with pytest.raises(TooLittleEvidenceError) as error:
        check(SPEC, {"white": (25, 12), **dict.fromkeys(names, (20, 10))})
    assert "and 19 more;" in str(error.value)
    assert str(error.value).endswith("--set verdicts.limits=null --set thresholds=[]")
    assert len(str(error.value)) <= 240


def test_a_year_of_a_back_fill_is_recorded_as_insufficient(tmp_path: Path) -> None:
    write_years(tmp_path)
    year_of_loans(WITHIN).head(24).to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    lake = Lake(tmp_path / "lake")
    attempt = audit_year(yearly_spec(tmp_path), WITHIN, lake)
    assert (attempt.state, attempt.exit_code) == ("inconclusive", ExitCode.INCONCLUSIVE)
    assert attempt.message.startswith(f"inconclusive in {WITHIN}: too few are ")
    assert (attempt.run, lake.storage.glob("stages/score/*")) == (None, [])


def test_it_is_asked_once_after_the_stage_that_counts() -> None:
    read = SimpleNamespace(read=lambda _: pytest.fail("nothing is read"))
    check_evidence(read, spec_of(Path(), FREE), [])  # type: ignore[arg-type]
    check_evidence(read, spec_of(Path(), FREE), [SimpleNamespace(stage="score")])  # type: ignore[arg-type, list-item]
