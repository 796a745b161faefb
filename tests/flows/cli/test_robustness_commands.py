"""``evenhand power`` and ``evenhand stability`` as a user runs them: tables, files, seeds, and messages."""

import json
from pathlib import Path

import pytest
from audited_loans import audited
from conftest import SPEC, evenhand, loans

from flows.cli.robustness import gain_sentence

GROUP = "audited_loans"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("power")
    loans(600, 3).to_csv(place / "loans.csv", index=False)
    file = place / "loans.yaml"
    text = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")
    file.write_text(text + "verdicts: {columns_complete: true}\n")
    return file


def power(spec: Path, *arguments: str) -> "tuple[str, str, int]":
    done = evenhand("power", str(spec), "--lake", str(spec.parent / "no-lake"), "--plants", "2", *arguments)
    return done.stdout, done.stderr, done.returncode


def test_power_prints_every_size_of_harm_and_writes_the_same_bytes_for_the_same_seed(spec: Path, tmp_path: Path):
    files = [tmp_path / name for name in ("one.json", "two.json", "other.json")]
    for file, seed in zip(files, ("5", "5", "6"), strict=True):
        out, _, code = power(spec, "--seed", seed, "--json", str(file))
        assert code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = json.loads(files[0].read_text())
    similar = [row for row in rows if row["question"] == "similar_applicants"]
    assert [row["points"] for row in similar] == [0.0, 0.02, 0.05, 0.1]
    assert all(row["outside"] + row["within"] + row["inconclusive"] == pytest.approx(1) for row in rows)
    assert {row["question"] for row in rows} == {"similar_applicants", "approval_rates"}
    assert "none (false alarms)" in out
    assert "Similar applicants, Black: harm of 10 points would be outside in" in out
    assert not (spec.parent / "no-lake").exists()


def test_power_of_a_part_names_it(spec: Path):
    out, _, code = power(spec, "--part", "history=bad", "--group", "race: Black")
    assert code == 0
    assert "history: bad" in out
    assert "Black where history is bad: harm of 10 points" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--group", "Blak"), "--group Blak: no such judged group; did you mean 'Black'?"),
        (("--part", "histry=bad"), "--part histry=bad: no column 'histry' parts the groups; did you mean 'history'?"),
        (("--part", "history=bed"), "--part history=bed: 'history' has no level 'bed'"),
        (("--part", "history"), "--part history: expected COLUMN=LEVEL, such as"),
        (("--set", "methods.adjusted=null"), "this spec leaves the method `adjusted` out"),
        (("--set", "methods.adjusted.judged=logit"), "`methods.adjusted.judged` is logit"),
        (("--set", "verdicts.minimum_n=1000"), "too few decided members for a verdict, which needs 1000: race: Black"),
        (("--set", "verdicts.parts.by=[]", "--part", "history=bad"), "no parts are looked at"),
        (("--set", "verdicts.parts.minimum_n=500", "--part", "history=bad"), "--part history=bad: too few decided"),
    ],
)
def test_power_says_what_is_wrong(spec: Path, arguments: "tuple[str, ...]", message: str):
    _, err, code = power(spec, *arguments)
    assert (code, message in err) == (2, True), err


def files_of(lake: Path) -> "dict[Path, int]":
    return {file: file.stat().st_mtime_ns for file in lake.rglob("*") if file.is_file()}


def test_stability_prints_48_choices_and_writes_them(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path):
    place, run = audited(tmp_path_factory)
    lake = str(place / "lake")
    before = files_of(place / "lake")
    done = evenhand(
        *("stability", run, "--lake", lake, "--json", str(tmp_path / "c.json"), "--svg", str(tmp_path / "c.svg"))
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "c.json").read_text())
    assert len(rows) == 48
    assert sorted(row["number"] for row in rows) == list(range(1, 49))
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    counts = {state: sum(row["state"] == state for row in rows) for state in ("outside", "within", "inconclusive")}
    state, n = max(counts.items(), key=lambda pair: pair[1])
    assert f"Black: {state} in {n} of 48 choices of form, columns, files and estimator" in done.stdout
    assert "points of approval [95 %]" in done.stdout
    assert "states are one-sided at 5 %" in done.stderr
    drawing = (tmp_path / "c.svg").read_text()
    assert drawing.startswith("<svg")
    assert "limit" in drawing
    assert files_of(place / "lake") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nosuch",), "holds no run 'nosuch'"),
        (("--group", "Blak"), "judges no such group; did you mean 'Black'?"),
    ],
)
def test_stability_says_what_is_wrong(
    tmp_path_factory: pytest.TempPathFactory, arguments: "tuple[str, ...]", message: str
):
    place, _ = audited(tmp_path_factory)
    done = evenhand("stability", *arguments, "--lake", str(place / "lake"))
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("low", "above", "start", "words"),
    [
        (
            0.01,
            5,
            "Black: candidate 7 of 12 raises",
            "by 0.040 (95 % interval 0.010 to 0.080). The interval is above zero",
        ),
        (0.01, 2, "Black: no firm gain. Candidate 7", "in only 2 of 5 splits"),
        (-0.01, 1, "Black: no gain is shown (not_above_zero, -0.010 to 0.080)", "in 1 of 5 splits"),
    ],
)
def test_a_gain_of_few_splits_is_not_firm(low: float, above: int, start: str, words: str):
    gain = {"group": "Black", "candidates": 12, "chosen": 7, "splits": 5, "splits_above": above, "low": low}
    gain |= {"high": 0.08, "above_zero": low > 0, "reason": "" if low > 0 else "not_above_zero"}
    gain |= {"gain": 0.04 if low > 0 else None, "ratio": 0.8 if low > 0 else None}
    sentence = gain_sentence(gain)
    assert sentence.startswith(start)
    assert words in sentence


@pytest.mark.slow
def test_alternatives_prints_the_gains_and_on_request_the_register(spec: Path, tmp_path: Path):
    arguments = ("alternatives", str(spec), "--loss", "0.05", "--candidates", "12", "--lake", str(tmp_path / "lake"))
    arguments = (*arguments, "--set", "methods.adjusted.estimators=[logit]", "--set", "bootstrap.draws=100")
    done = evenhand(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "Black" in {gain["group"] for gain in found["gains"]}
    for gain in found["gains"]:
        assert (gain["candidates"], gain["loss"]) == (12, 0.05)
        assert gain["gain"] is None or gain["low"] > 0
    assert "register" not in found
    again = evenhand(*arguments, "--register")  # the lake holds it, and nothing is computed again
    assert again.returncode == 0, again.stderr
    assert "Candidates on the choosing part" in again.stdout
    assert "restricted" in again.stderr
    assert [gain["group"] for gain in found["gains"] if gain_sentence(gain) not in again.stderr] == []
    assert found["run"] in again.stdout


@pytest.mark.slow
def test_comparators_print_pairs_of_files_and_the_control_comparison(spec: Path, tmp_path: Path, server: str):
    lake = ("--lake", str(tmp_path / "lake"))
    methods = [word for name in ("cst", "cec", "gcfn", "fgce", "raguel") for word in ("--set", f"methods.{name}=null")]
    audit = ("audit", str(spec), *lake, "--quiet", *methods, "--set", "methods.adjusted.splits=1")
    assert evenhand(*audit, server=server).returncode in (0, 1, 3)
    done = evenhand("findings", "--comparators", "2", "--format", "csv", *lake)
    assert done.returncode == 0, done.stderr
    assert "restricted: rows of persons" in done.stderr
    assert "Denied applicants with an approved comparator" in done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.startswith("protected_attribute,denied_row,rank,distance,group,row_id")
    ranks = [line.split(",")[2] for line in lines]
    assert set(ranks) == {"0", "1", "2"}
    none = evenhand(*audit, "--set", "methods.adjusted.comparators=null", server=server)
    assert none.returncode in (0, 1, 3)
    empty = evenhand("findings", "--comparators", "2", "--format", "csv", *lake)
    assert (empty.returncode, len(empty.stdout.splitlines())) == (0, 1)
