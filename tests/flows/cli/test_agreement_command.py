"""`evenhand agreement` and the order of file packs, on a lake with findings of several methods."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from audited_loans import audited, copy_of
from conftest import evenhand

from tasks.metrics.algorithm.agreement import EXPLAINS, SYMBOLS

GROUP = "audited_loans"

SIGNS = tuple(SYMBOLS)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audited(tmp_path_factory)[0] / "lake"


def printed(lake: Path, *words: str) -> list[dict[str, object]]:
    done = evenhand("agreement", "--lake", str(lake), *words, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, object]] = json.loads(done.stdout)
    return rows


def test_signs_of_a_group_are_those_of_its_table_and_pattern(lake: Path) -> None:
    rows = printed(lake)
    assert {row["group"] for row in rows} == {"race: Black"}
    for row in rows:
        assert row["sign"] in SIGNS
        assert SYMBOLS[str(row["sign"])] in str(row["pattern"])
        if row["sign"] == "against" and row["measure"] == "cst_effect":
            assert float(str(row["high"])) < 0, "as approval: the whole interval is below no difference"
        assert set(str(row["may_differ"]).split("; ")) - {""} <= set(EXPLAINS)
    assert {str(row["pattern"]).split()[-1] for row in rows} == {"GCFN/"}, "the audit does not ask for it"
    [cst] = [row for row in rows if row["measure"] == "cst_effect"]
    done = evenhand("sql", "SELECT measure, n, value FROM published_agreement", "--lake", str(lake), "--json")
    assert "restricted" not in done.stderr
    published = {row["measure"]: (row["n"], row["value"]) for row in json.loads(done.stdout)}
    assert published["cst_effect"] == (cst["n"], -float(str(cst["value"]))), "what the disclosure pass printed"
    assert {row["reference_group"] for row in rows} == {"white"}
    assert cst["twins_mediated"] == "5 of 5 (0.48 to 1.00)"


def test_pairs_of_flags_add_up_and_tables_of_few_people_are_withheld(lake: Path) -> None:
    done = evenhand("agreement", "--lake", str(lake), "--by", "applicant", "--json")
    rows = json.loads(done.stdout)
    assert "restricted" not in done.stderr, "the table passed the disclosure pass"
    assert "no finding about that person" in done.stderr
    assert {(row["first"], row["second"]) for row in rows} == {("cst", "fgce")}
    for row in rows:
        cells = [row[name] for name in ("both", "first_alone", "second_alone", "neither")]
        if row["withheld"]:
            assert cells == [None] * 4
            assert row["kappa"] is None
        else:
            assert sum(cells) == row["n"]
            assert all(cell == 0 or cell >= 5 for cell in cells)
            assert row["kappa_low"] <= row["kappa"] <= row["kappa_high"]
            assert row["ac1_low"] <= row["ac1"] <= row["ac1_high"]
        assert "unit" in row["may_differ"]
    assert evenhand("agreement", "--lake", str(lake), "--rows").returncode == 2


def test_lines_of_applications_are_restricted_and_add_up_to_the_pairs(lake: Path) -> None:
    done = evenhand("agreement", "--lake", str(lake), "--by", "applicant", "--rows", "--json")
    assert "restricted" in done.stderr
    rows = json.loads(done.stdout)
    flag = {(row["group"], row["decision_maker"], row["method"], row["row_id"]): row["flag"] for row in rows}
    for pair in printed(lake, "--by", "applicant"):
        whose = pair["group"], pair["decision_maker"]
        ids = [row_id for *of, method, row_id in flag if (*of, method) == (*whose, "cst")]
        of_both = [i for i in ids if None not in (flag[*whose, "cst", i], flag.get((*whose, "fgce", i)))]
        assert pair["withheld"] or len(of_both) == pair["n"]


def test_the_files_of_the_denied_are_in_the_order_of_necessity(lake: Path, tmp_path: Path) -> None:
    lake_of_test = copy_of(lake, tmp_path / "lake").root
    words = ("--file-pack", "20", "--denied", "--decision-maker", "lender", "--lake", str(lake_of_test))
    done = evenhand("findings", *words)
    assert done.returncode == 0, done.stderr
    assert "No figure here is a finding about that person" in done.stderr.replace("\n", " ")
    [path] = [line for line in done.stdout.splitlines() if line.endswith("-complainants.csv")]
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    shares = [float(row["necessity"]) for row in rows if row["necessity"]]
    assert len(shares) > 5
    assert shares == sorted(shares, reverse=True)
    for row in rows:
        if row["necessity"]:
            control, test = (float(row[f"refused_in_{side}_group"]) for side in ("control", "test"))
            assert float(row["necessity"]) == pytest.approx(min(max((control - test) / control, 0), 1))
            assert 0 <= float(row["necessity_low"]) <= float(row["necessity_high"]) <= 1
    shutil.rmtree(lake_of_test)
