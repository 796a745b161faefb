"""A group that is too small for a verdict, and less than 1 % of all, is reported and leaves the others alone."""

import math
from pathlib import Path
from typing import Any

import pytest

from schemas.audit.limits import Verdicts
from schemas.audit.spec import Protected
from schemas.tables.verdicts import REPORTED
from schemas.terms import State, Theory
from tasks.in_memory import tables_through
from tasks.metrics.algorithm.verdicts import Counts
from tasks.metrics.verdicts import Gathered, judged, state_of, theories_of
from tasks.metrics.verdicts import tables as verdict_tables
from tasks.pipeline.registry import read_spec

RACE = Protected(name="race", columns=("race",), reference="White")
COMPLETE = Verdicts(columns_complete=True)


def gathered(**sizes: int) -> Gathered:
    """Counts of groups, of which a tenth is denied; White is the reference group."""
    reference = sizes["White"]
    counts = {
        ("lender", RACE.name, group): Counts(n, n // 10, reference, reference // 10) for group, n in sizes.items()
    }
    return Gathered(counts, {}, (RACE,), (), COMPLETE)


@pytest.mark.parametrize(
    ("sizes", "small"),
    [
        ({"White": 2000, "Black": 900, "Samoan": 1}, {"Samoan"}),
        ({"White": 2000, "Black": 900, "Samoan": 28}, {"Samoan"}),
        ({"White": 2000, "Black": 900, "Samoan": 30}, set()),
        ({"White": 900, "Black": 300, "Samoan": 13}, set()),
        ({"White": 900, "Black": 300, "Samoan": 12}, {"Samoan"}),
        ({"White": 5000, "Samoan": 9}, set()),
        ({"White": 5000, "Samoan": 9, "Black": 9}, set()),
        ({"White": 5000, "Black": 900, "not available": 9}, set()),
    ],
)
def test_a_small_group_has_fewer_than_a_verdict_needs_and_less_than_1_percent(sizes: dict, small: set) -> None:
    assert gathered(**sizes).small == {(RACE.name, group) for group in small}


def states(**sizes: int) -> tuple[State, dict[str, State]]:
    judgement = judged(gathered(**sizes), (), COMPLETE)
    rows = [row for row in judgement.rows if row.case.theory is Theory.APPROVAL_RATES and row.case.role == "primary"]
    state = state_of(theories_of(verdict_tables(judgement)["verdicts"].to_pylist()), COMPLETE)
    return state, {row.case.group: row.state for row in rows}


def test_strangers_turn_neither_a_state_nor_the_exit_code() -> None:
    alone = states(White=4000, Black=2000, Asian=1000)
    for strangers in range(1, 10):
        state, rows = states(White=4000, Black=2000, Asian=1000, Samoan=strangers)
        assert rows.pop("Samoan") is State.INFORMATION
        assert (state, rows) == alone
    assert alone == (State.WITHIN, {"Black": State.WITHIN, "Asian": State.WITHIN})
    assert states(White=4000, Samoan=9)[0] is State.INCONCLUSIVE, "nobody else is judged"


SPEC = """\
name: strangers
year: 2023
source: {kind: csv, path: loans.csv}
row_id: null
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected: [{name: race, columns: [race], reference: White}]
columns:
  income: {type: continuous}
  dti: {type: continuous}
model: {kind: none}
methods: {adjusted: {}, fgce: null}
"""


def tables_of(place: Path, strangers: int, profile: str, stage: str) -> dict[str, Any]:
    """Tables of an audit of three groups, and of some strangers of a fourth one."""
    lines = ["income,dti,race,approved"]
    for i in range(1500):
        group = ("White", "White", "Black", "Asian")[i % 4]
        income, dti = 20_000 + 37 * (i * 7919 % 2003), 10 + i * 31 % 50
        denied = (dti > 42) ^ (i * 13 % 7 == 0) or (group == "Black" and i % 11 == 0)
        lines.append(f"{income},{dti},{group},{'no' if denied else 'yes'}")
    lines += [f"{30_000 + 10 * i},{20 + i},Samoan,{'yes' if i % 2 else 'no'}" for i in range(strangers)]
    file = place / "loans.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = read_spec(SPEC, "strangers.yaml", {"source.path": str(file), "disclosure.profile": profile}).spec
    return tables_through(spec, stage)


def audited(place: Path, strangers: int) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows of measures and verdicts of that audit, nothing withheld."""
    tables = tables_of(place, strangers, "internal", "measure")
    rows = {}
    for name in ("measures", "verdicts"):
        for row in tables[name].to_pylist():
            key = (name, row["group"], row["measure"], row.get("parameters"), row["method"], row.get("subgroup"))
            rows[*key, row.get("theory"), row.get("role"), row.get("protected_attribute")] = {
                k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()
            }
    return rows


@pytest.mark.slow
def test_figures_and_states_of_the_others_are_the_same_but_for_the_group_of_strangers(tmp_path: Path) -> None:
    alone = audited(tmp_path, 0)
    for strangers in (1, 9):
        among = audited(tmp_path, strangers)
        of_strangers = {key: row for key, row in among.items() if key[1] == "Samoan"}
        assert {row["reason"] for key, row in of_strangers.items() if key[0] == "verdicts"} == {REPORTED}
        others = {key: row for key, row in among.items() if key not in of_strangers}
        assert {key: row["state"] for key, row in others.items()} == {key: row["state"] for key, row in alone.items()}
        if strangers == 1:  # nine rows are in fits that all rows share, and move them in the third decimal
            # the critical value of parts counts those of every group
            both = ({key: row | {"part_detectable": None} for key, row in rows.items()} for rows in (others, alone))
            assert next(both) == next(both)
        for key, row in others.items():
            figures = [(row[name], alone[key][name]) for name in ("value", "low", "high", "p", "q") if name in row]
            assert all(a == b or a == pytest.approx(b, abs=0.005) for a, b in figures), key


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["published", "public", "strict", "official"])
def test_no_profile_turns_a_state_of_large_groups_when_a_stranger_is_withheld(profile: str, tmp_path: Path) -> None:
    published = []
    for strangers in (0, 1, 4):
        rows = tables_of(tmp_path, strangers, profile, "publish")["published_verdicts"].to_pylist()
        assert {row["state"] for row in rows if row["group"] == "Samoan"} <= {State.INFORMATION, State.NOT_RUN}
        others = [row for row in rows if row["group"] != "Samoan" and row["role"] == "primary"]
        published.append({(row["theory"], row["role"], row["method"], row["group"]): row["state"] for row in others})
    assert published[1] == published[2] == published[0]
    assert State.WITHIN in published[0].values(), "a state that could be turned"
    assert {row[0] for row in published[0]} >= {Theory.APPROVAL_RATES, Theory.SIMILAR_APPLICANTS}
