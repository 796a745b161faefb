"""`evenhand release` and `evenhand verify FOLDER` by the commands: one door, in whatever order runs were made."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import REPOSITORY, evenhand, loans
from few_loans import FEW
from lake_of_runs import NEW, OLD, lake_of_runs
from served_lake import served

from flows.launch.audit import run_audit
from flows.outcome.conclusion import ending_of_run
from flows.runs.disclosure import read_rows
from flows.runs.index import run_of
from flows.runs.released import OPEN, UNMATCHED, Door, door_of, sharing
from schemas.tables.verdicts import (
    FACTS,
    PUBLICATION,
    PUBLISHED_AGREEMENT_PAIRS,
    PUBLISHED_FINDINGS,
    published,
)
from tasks.lake import log
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec, tables_shown

ROWS = 400


def audited(place: Path, table: str = "few", **overrides: str) -> str:
    """Audit the table `TABLE.csv` in a lake there; the run id."""
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    spec = read_spec(
        FEW, "few.yaml", {"source.path": str(place / f"{table}.csv"), "disclosure.profile": "public"} | keys
    )
    return run_audit(spec.spec, place / "lake", 1).run


def write_tables(place: Path) -> None:
    """A table, and one without three denied applicants of one group."""
    table = loans(ROWS)
    table = table[table["race"] != ""]
    table["note"] = "x"
    table.to_csv(place / "few.csv", index=False)
    few = table[(table["race"] == "b") & (table["approved"] == "no")].index[:3]
    table.drop(few).to_csv(place / "fewer.csv", index=False)
    table.drop(few).to_csv(place / "copy.csv", index=False)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which both tables were audited before anything was released, and the first was released."""
    place = tmp_path_factory.mktemp("door")
    write_tables(place)
    runs = [audited(place, name) for name in ("few", "fewer")]
    done = evenhand("release", runs[0], "--to", str(place / "out"), "--lake", str(place / "lake"))
    assert done.returncode == 0, done.stderr
    (place / "runs.json").write_text(json.dumps(runs))
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "place", symlinks=True)


def runs(place: Path) -> list[str]:
    return json.loads((place / "runs.json").read_text())


@pytest.mark.slow
def test_three_denied_people_do_not_follow_from_two_releases_made_in_any_order(place: Path) -> None:
    first, second = runs(place)
    lake = str(place / "lake")
    published = {run: json.loads((place / "lake/reports" / run / "report.json").read_text()) for run in (first, second)}
    rows = [page["source"]["rows"]["value"] for page in published.values()]
    assert rows[0] - rows[1] == 3, "without the door the three are told"
    assert door_of(Lake(lake), second).apart == (first,)
    done = evenhand("release", second, "--to", str(place / "second"), "--lake", lake)
    assert done.returncode == 0, done.stderr
    assert "restricted: " in done.stderr
    assert "race, Black, source, lender" in done.stderr
    released = json.loads((place / "second/report.json").read_text())
    assert released["run"] not in (first, second)
    numbers = read_rows(Lake(lake), run_of(Lake(lake), released["run"]).partitions, PUBLICATION.name) or []
    spans = [row["high"] - row["low"] for row in numbers if (row["group"], row["base"]) == ("Black", "source")]
    assert min(spans) >= 4, "a reader learns no count of the group to less than five"
    entries = [entry for entry in log.entries(Lake(lake)) if entry.event == "released"]
    assert [entry.run for entry in entries] == [first, released["run"]]
    outcomes = [name for name, _ in _outcomes(Lake(lake), released["run"])]
    assert bool(outcomes) == ("withheld whole" in done.stderr)
    assert all(name in (place / "second/README.md").read_text() for name in outcomes)
    again = evenhand("release", second, "--to", str(place / "third"), "--lake", lake, "--json")
    assert json.loads(again.stdout)["run"] == released["run"], "the same coarser run, not a coarser one still"


@pytest.mark.slow
def test_pages_alerts_and_artifacts_show_no_figures_of_a_run_that_could_be_subtracted(place: Path) -> None:
    first, second = runs(place)
    lake = Lake(place / "lake")
    assert "figures are not shown" in ending_of_run(lake, second).message
    assert "figures are not shown" not in ending_of_run(lake, first).message
    pages = served(lake.location)
    assert pages.get(f"/runs/{first}").status_code == 200
    for path in ("", "/measures.json", "/files.zip", "/quality", f"/compare/{first}"):
        assert pages.get(f"/runs/{second}{path}").status_code == 403, path
    trend = pages.get("/audits/few/trend")
    assert (trend.status_code, second in trend.text) == (200, False), "nor the change from the one to the other"
    both = served(lake.location, restricted=True).get("/audits/few/trend").text
    assert "rows" in both
    assert len(both) > len(trend.text)


@pytest.mark.slow
def test_a_copy_under_another_name_shares_rows_by_their_content(place: Path) -> None:
    other = audited(place, "copy", name="another", year="2023")
    lake = Lake(place / "lake")
    assert [run.run for run in sharing(lake, run_of(lake, other))] == [runs(place)[0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda out: (out / "more.txt").write_text("x"), "more.txt is not named by certificate.json"),
        (lambda out: (out / "empty").mkdir(), "empty is not named"),
        (lambda out: (out / "report.json").unlink(), "report.json is missing"),
        (lambda out: (out / "report.json").write_bytes(b"{}"), "report.json is not the file that was released"),
        (lambda out: (out / "certificate.json").unlink(), "certificate.json is missing"),
        (lambda out: os.mkfifo(out / "pipe"), "pipe is a link, a pipe or a device"),
        (lambda out: _linked(out / "report.json", out.parent / "elsewhere"), "report.json is a link"),
        (lambda out: _piped(out / "certificate.json"), "certificate.json cannot be read"),
        (lambda out: _edited(out, '"year": 2024', '"year": 2023'), "the signature of certificate.json is not one"),
        (lambda out: _edited(out, "\n}", "\n\n}"), "in other bytes"),
    ],
)
def test_a_released_folder_with_one_file_more_less_or_altered_is_named(
    place: Path, harm: Callable[[Path], object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.new_key(place / "key.pem")
    monkeypatch.setenv(log.KEY, str(place / "key.pem"))
    out = place / "signed"
    assert evenhand("release", runs(place)[0], "--to", str(out), "--lake", str(place / "lake")).returncode == 0
    shutil.rmtree(place / "lake")
    whole = evenhand("verify", str(out), "--key", str(place / "key.pem.pub"), cwd=place)
    assert (whole.returncode, "signed by" in whole.stdout) == (0, True), whole.stderr
    harm(out)
    done = evenhand("verify", str(out), cwd=place)
    assert (done.returncode, words in " ".join(done.stderr.split())) == (6, True), done.stderr


def _linked(path: Path, elsewhere: Path) -> None:
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _edited(out: Path, old: str, new: str) -> None:
    path = out / "certificate.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.slow
def test_the_certificate_has_no_counts_of_stages_and_no_digest_of_restricted_tables(place: Path) -> None:
    certificate = json.loads((place / "out/certificate.json").read_text())
    run = run_of(Lake(place / "lake"), certificate["run"])
    restricted = {a.sha256 for partition in run.partitions for a in partition.tables} | {run.source_sha256}
    assert restricted.isdisjoint(json.dumps(certificate).split('"'))
    assert certificate.keys() == {
        *("certificate", "run", "audit", "year", "partition", "profile", "time", "evenhand"),
        *("code", "spec_sha256", "files", "signature"),
    }
    assert set(certificate["files"]) == {
        path.relative_to(place / "out").as_posix() for path in (place / "out").rglob("*") if path.is_file()
    } - {"certificate.json"}


@pytest.mark.slow
@pytest.mark.long
def test_of_two_releases_at_once_the_second_knows_the_first(sound: Path, tmp_path: Path) -> None:
    place = tmp_path / "both"
    place.mkdir()
    write_tables(place)
    ids = [audited(place, name) for name in ("few", "fewer")]
    lake = str(place / "lake")
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "release", run, "--to", str(place / run), "--lake", lake],
            cwd=REPOSITORY,
        )
        for run in ids
    ]
    assert [process.wait() for process in started] == [0, 0]
    released = [entry.run for entry in log.entries(Lake(lake)) if entry.event == "released"]
    assert len(released) == 2
    assert run_of(Lake(lake), released[1]).beside == (released[0],)


def test_a_run_that_withholds_nothing_or_a_place_in_the_lake_is_refused(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    inside = evenhand("release", NEW, "--to", str(tmp_path / "lake/out"), "--lake", lake.location)
    taken = evenhand("release", NEW, "--to", str(tmp_path), "--lake", lake.location)
    assert [
        (done.returncode, words in done.stderr) for done, words in ((inside, "is in the lake"), (taken, "exists"))
    ] == [
        (2, True),
        (2, True),
    ]
    assert log.released(lake) == {}


def test_a_released_run_stays_protected_and_is_kept(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    log.append(lake, "released", run=OLD)
    done = evenhand("protect", OLD, "--off", "--lake", lake.location)
    assert (done.returncode, "stays protected" in done.stderr) == (2, True)
    gone = evenhand("gc", "--keep-runs", "1", "--lake", lake.location)
    assert OLD not in gone.stdout


def test_tables_of_outcomes_are_withheld_whole_where_an_earlier_release_has_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {published(table).name for table in (*FACTS, *tables_shown())}
    names |= {PUBLISHED_FINDINGS.name, PUBLISHED_AGREEMENT_PAIRS.name}
    assert {*UNMATCHED} <= names, "each is a table of the declaration"
    monkeypatch.setattr("flows.runs.released.UNMATCHED", ("published_pricing", "published_verdicts"))
    lake = lake_of_runs(tmp_path / "lake", spec={"disclosure": {"profile": "public", "beside": [{"run": NEW}]}})
    shut = Door(withheld=("published_verdicts",))
    assert door_of(lake, OLD) == OPEN
    log.append(lake, "released", run=NEW)
    log.append(lake, "released", run=OLD)
    assert (door_of(lake, NEW), door_of(lake, OLD)) == (OPEN, shut), "those that have rows; and the first has all"
    pages = served(lake.location)
    shown, whole = (pages.get(f"/runs/{run}/measures").text for run in (OLD, NEW))
    assert ("Figures of the questions" in shown, "Figures of the questions" in whole) == (False, True)
    digests = {a.table: a.sha256[:12] for part in run_of(lake, OLD).partitions for a in part.tables}
    lineage = pages.get(f"/runs/{OLD}/lineage").text
    assert digests["published_measures"] in lineage
    assert digests["published_verdicts"] not in lineage, "a guess of its counts could be tried against it"
    restricted = served(lake.location, restricted=True, by="Ann Lee").get(f"/runs/{OLD}/measures").text
    assert "Figures of the questions" in restricted
    shutil.rmtree(lake.root / "runs" / NEW)
    assert door_of(lake, OLD).apart == (), "it left the house itself"


def test_lists_and_search_tell_no_state_and_no_headline_of_a_run_that_is_not_shown(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec={"disclosure": {"profile": "public"}})
    site = served(lake.location).site
    headline = site.known().runs[NEW].headline
    log.append(lake, "released", run=OLD)
    site.known(refresh=True)
    pages = served(lake.location)
    assert pages.get(f"/runs/{NEW}").status_code == 403
    assert NEW in pages.get("/runs").text
    assert NEW not in pages.get("/runs", params={"state": "outside"}).text
    assert headline
    assert NEW not in pages.get("/search", params={"q": headline}).text
    assert "not shown" in pages.get("/audits/loans/years").text
    open_pages = served(lake.location, restricted=True, by="Ann Lee")
    assert NEW in open_pages.get("/runs", params={"state": "outside"}).text


def test_a_withheld_table_takes_along_what_others_say_of_its_people() -> None:
    measures = pa.table({"measure": ["denial_rate", "rate_spread_effect"], "n": [90, 12]})
    shut = Door(withheld=("published_pricing",))
    assert shut.through("published_pricing", measures).num_rows == 0
    assert shut.through("published_measures", measures)["measure"].to_pylist() == ["denial_rate"]
    assert OPEN.through("published_measures", measures) is measures
    checks = pa.table({"expectation": ["x"], "elements": [1000], "unexpected": [0], "success": [True]})
    named = Door(withheld=("published_validations",)).through("published_validations", checks)
    assert named.to_pylist() == [{"expectation": "x", "elements": None, "unexpected": None, "success": True}]


def _outcomes(lake: Lake, run: str) -> list[tuple[str, int]]:
    """Tables of outcomes with rows, and their number."""
    tables = [artifact for partition in run_of(lake, run).partitions for artifact in partition.tables]
    return [(table.table, table.rows) for table in tables if table.table in UNMATCHED and table.rows]
