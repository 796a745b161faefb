"""Retention: what no kept run needs goes, and nothing else, whatever runs share and whenever the removal is stopped."""

import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from conftest import SHARED, evenhand, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from retained_runs import ONE, Drawn, lake_of, make, partition

from flows.operations import retention
from flows.operations.retention import Keeping, Removal, collect, held_back, left_alone, removals
from flows.runs.index import digest, former_reports, runs_of
from flows.runs.signatures import protect, verify_run
from flows.supervision.presence import at_work, gate
from schemas.errors import InfrastructureError, IntegrityError, SpecError
from schemas.terms import ExitCode
from tasks.lake import log
from tasks.lake.store import Lake

RUNS = st.lists(
    st.builds(
        Drawn,
        st.sampled_from(["loans", "loans-2"]),
        st.sampled_from([2020, 2021]),
        st.frozensets(st.integers(0, 5), min_size=1),
        st.integers(0, 5).map(lambda n: n == 0),
    ),
    max_size=8,
)


def expected(runs: Sequence[Drawn], keep: int) -> set[int]:
    """Which runs are kept, said in another way than the code says it: by counting the later ones of its kind."""
    later = {
        i: sum((r.audit, r.year) == (runs[j].audit, runs[j].year) for j in range(i + 1, len(runs)))
        for i, r in enumerate(runs)
    }
    return {i for i, r in enumerate(runs) if r.protected or later[i] < keep}


def held_by(lake: Lake) -> dict[str, set[str]]:
    return {
        "runs": {p.parent.name for p in (lake.root / "runs").glob("*/manifest.json")},
        "reports": {p.parent.name for p in (lake.root / "reports").glob("*/report.html")},
        "stages": {p.name for p in (lake.root / "stages").glob("*/*")},
    }


def size(lake: Lake) -> int:
    """Bytes of all files but the entries of the log and figures of removed runs, which only grow."""
    growing = (lake.root / "log", lake.root / "removed")
    files = (f for f in lake.root.parent.rglob("*") if f.is_file() and f.parent not in growing)
    return sum(f.stat().st_size for f in files)


class TestAnyRuns:
    @given(RUNS, st.integers(1, 3))
    @settings(max_examples=examples(20), deadline=None)
    def test_kept_runs_stay_whole_and_the_rest_goes(self, runs: list[Drawn], keep: int) -> None:
        with lake_of(runs) as lake:
            before, size_before = held_by(lake), size(lake)
            listed = removals(lake, Keeping(keep))
            assert (held_by(lake), size(lake)) == (before, size_before), "a list removes nothing"
            went = collect(lake, Keeping(keep))
            assert [(r.kind, r.name) for r in went] == [(r.kind, r.name) for r in listed]
            kept = expected(runs, keep)
            names = {f"run{i}" for i in kept}
            needed = {f"key{n}" for i in kept for n in runs[i].partitions}
            assert held_by(lake) == {"runs": names, "reports": names, "stages": needed}
            assert size_before - size(lake) == sum(r.bytes for r in went)
            for name in names:
                assert verify_run(lake.root, name)["altered"] == 0
            assert removals(lake, Keeping(keep)) == [], "once"

    @given(RUNS, st.integers(1, 2), st.integers(0, 12))
    @settings(max_examples=examples(20), deadline=None)
    def test_stopped_anywhere_no_run_is_left_without_its_files(self, runs: list[Drawn], keep: int, stop: int) -> None:
        with lake_of(runs) as lake, pytest.MonkeyPatch.context() as patch:
            left, remove = [stop], shutil.rmtree

            def dies(path: Path, *_: object, **__: object) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
                remove(path)

            patch.setattr(retention.shutil, "rmtree", dies)
            try:
                collect(lake, Keeping(keep))
            except KeyboardInterrupt:
                for name in held_by(lake)["runs"]:
                    verify_run(lake.root, name)
            patch.undo()
            collect(lake, Keeping(keep, days=0))
            kept = expected(runs, keep)
            names = {f"run{i}" for i in kept}
            needed = {f"key{n}" for i in kept for n in runs[i].partitions}
            assert held_by(lake) == {"runs": names, "reports": names, "stages": needed}
            assert {path.name for path in (lake.root / "runs").iterdir()} == names


class TestOneLake:
    def test_what_an_unfinished_run_wrote_is_kept_for_some_days(self) -> None:
        with lake_of([ONE]) as lake:
            partition(lake, 4)
            (lake.root / "unfinished" / "mediate-abc").mkdir(parents=True)
            (lake.root / "unfinished" / "mediate-abc" / "state").write_bytes(b"12345")
            assert removals(lake, Keeping(1)) == []
            long_ago = time.time() - 15 * 24 * 3600
            for path in [*(lake.root / "unfinished").rglob("*"), *(lake.root / "stages" / "stage0").rglob("*")]:
                os.utime(path, (long_ago, long_ago))
            found = {(r.kind, r.name): r.bytes for r in collect(lake, Keeping(1))}
            assert set(found) == {("partition", "stage0/key4"), ("unfinished", "mediate-abc")}
            assert found["unfinished", "mediate-abc"] == 5

    def test_nothing_goes_while_somebody_is_at_work(self) -> None:
        with lake_of([ONE, ONE]) as lake:
            before = held_by(lake)
            with at_work(lake, "command-1"), pytest.raises(InfrastructureError, match="is in use"):
                collect(lake, Keeping(1))
            with lake.lock("stage1-key1"), pytest.raises(InfrastructureError, match="stage1-key1"):
                collect(lake, Keeping(1))
            assert held_by(lake) == before
            assert [r.name for r in removals(lake, Keeping(1))] == ["run0", "run0"], "a list can be had at any time"

    def test_an_altered_manifest_stops_everything(self) -> None:
        with lake_of([ONE, ONE]) as lake:
            manifest = lake.root / "runs" / "run1" / "manifest.json"
            manifest.write_text(manifest.read_text().replace("key1", "key2"))
            before = held_by(lake)
            with pytest.raises(IntegrityError, match="not the manifest that was written"):
                collect(lake, Keeping(1))
            assert held_by(lake) == before

    @pytest.mark.parametrize("how", ["cut", "link", "log"])
    def test_what_cannot_be_read_lets_nothing_go_and_the_list_can_be_had(self, how: str) -> None:
        with lake_of([ONE, ONE, ONE, replace(ONE, year=2021, partitions=frozenset({3}))]) as lake:
            manifest = lake.root / "runs" / "run3" / "manifest.json"
            if how == "log":
                manifest = lake.root / "log" / "000002.json"
            manifest.write_text(manifest.read_text()[:20])
            if how == "link":
                manifest.unlink()
                manifest.symlink_to(manifest)
            long_ago = time.time() - 15 * 24 * 3600
            for path in (lake.root / "stages").rglob("*"):
                os.utime(path, (long_ago, long_ago))
            before = held_by(lake)
            listed = removals(lake, Keeping(1))
            assert {(r.kind, r.name) for r in listed if r.kind == "run"} == {("run", "run0"), ("run", "run1")}
            assert not [r for r in listed if r.kind == "partition" or r.name == "run3"], "it may need any"
            with pytest.raises(IntegrityError, match="nothing was removed") as told:
                collect(lake, Keeping(1))
            assert str(manifest) in str(told.value)
            words = ("gc", "--keep", "1", "--below-minimum", "a test", "--lake", str(lake.root))
            for done in (evenhand(*words), evenhand(*words, "--json"), evenhand(*words, "--yes")):
                assert done.returncode == ExitCode.INTEGRITY, done.stderr
                assert str(manifest) in done.stdout + done.stderr
            assert held_by(lake) == before

    def test_a_protected_run_without_its_manifest_stops_everything(self) -> None:
        with lake_of([ONE, replace(ONE, protected=True)]) as lake:
            (lake.root / "runs" / "run1" / "manifest.json").unlink()
            before = held_by(lake)
            with pytest.raises(IntegrityError, match=r"manifest of the protected run run1 is missing, .* restore it"):
                collect(lake, Keeping(1))
            assert held_by(lake) == before

    def test_a_run_that_is_just_being_removed_is_not_told_to_be_protected(self) -> None:
        with lake_of([ONE, ONE]) as lake, ThreadPoolExecutor(1) as other:
            with gate(lake):
                asked = other.submit(protect, lake, "run0", True)
                with pytest.raises(FutureTimeout):
                    asked.result(timeout=0.3)
                shutil.rmtree(lake.root / "runs" / "run0")
            with pytest.raises(SpecError, match="holds no run 'run0'"):
                asked.result(timeout=30)

    def test_a_reviewers_pack_goes_with_its_run(self) -> None:
        with lake_of([ONE, ONE]) as lake:
            for name in ("run0", "run1"):
                (lake.root / "restricted" / name).mkdir(parents=True)
            assert [r.name for r in collect(lake, Keeping(1)) if r.kind == "file pack"] == ["run0"]
            assert (lake.root / "restricted" / "run1").is_dir()

    def test_a_report_beside_the_lake_is_named_and_stays(self) -> None:
        with lake_of([ONE, replace(ONE, protected=True), ONE]) as lake:
            for name in ("run0", "run1", "run2"):
                former_reports(lake).write(f"{name}/report.html", name.encode())
            former = lake.root.parent / "reports"
            listed = left_alone(lake, [run for run in runs_of(lake) if run.run == "run0"])
            assert [(each.path, "outside the lake" in each.why) for each in listed] == [(former / "run0", True)]
            went = [r for r in collect(lake, Keeping(1)) if r.kind == "report"]
            assert [r.path for r in went] == [lake.root / "reports" / "run0"]
            assert {path.name for path in former.iterdir()} == {"run0", "run1", "run2"}

    def test_the_command_lists_first_and_removes_on_request(self) -> None:
        with lake_of([ONE, ONE]) as lake:
            listed = evenhand("gc", "--keep", "1", "--lake", str(lake.root))
            assert listed.returncode == 0, listed.stderr
            assert "nothing was removed, as --yes was not given" in listed.stdout
            assert "1 runs stay that are younger than 1095 days" in listed.stdout
            assert held_by(lake)["runs"] == {"run0", "run1"}
            words = ("gc", "--keep", "1", "--lake", str(lake.root), "--yes", "--json")
            young = json.loads(evenhand(*words).stdout)
            assert (young["lake"], young["too_young"]) == ([], ["run0"])
            said = json.loads(evenhand(*words, "--below-minimum", "a lake of tests").stdout)
            assert (said["removed"], [(r["kind"], r["name"]) for r in said["lake"]]) == (
                True,
                [("report", "run0"), ("run", "run0")],
            )
            assert held_by(lake)["runs"] == {"run1"}
            assert log.entries(lake)[-1].text.endswith("; younger than 1095 days: a lake of tests")


DAY = 24 * 3600.0


class TestMinimumAge:
    def test_runs_younger_than_the_minimum_stay_and_older_ones_go(self) -> None:
        with lake_of([ONE, ONE, ONE]) as lake:
            age = (time.time() - datetime(2026, 1, 1, tzinfo=UTC).timestamp()) / DAY  # of all three, to seconds
            young = replace(Keeping(1), minimum_days=age + 1)
            assert removals(lake, young) == []
            assert [run.run for run in held_back(lake, runs_of(lake), young)] == ["run0", "run1"]
            old = replace(Keeping(1), minimum_days=age - 1)
            assert [r.name for r in removals(lake, old) if r.kind == "run"] == ["run0", "run1"]
            assert [r.name for r in removals(lake, replace(Keeping(1), younger=age + 1)) if r.kind == "run"] == []
            reason = replace(young, below_minimum="a law")
            assert [r.name for r in removals(lake, reason) if r.kind == "run"] == ["run0", "run1"]

    def test_a_signed_off_run_stays_whatever_is_said(self) -> None:
        with lake_of([ONE, ONE, ONE]) as lake:
            log.append(lake, "signed off", run="run0", by="Ann Lee", role="prepared")
            went = collect(lake, replace(Keeping(1), minimum_days=1e6, below_minimum="a law"))
            assert [r.name for r in went if r.kind == "run"] == ["run1"]
            assert held_by(lake)["runs"] == {"run0", "run2"}

    def test_the_lakes_settings_are_the_rules_where_the_command_says_nothing(self) -> None:
        with lake_of([ONE, ONE]) as lake:
            none = evenhand("gc", "--lake", str(lake.root))
            assert none.returncode == 2
            assert "Give --keep N" in none.stderr
            (lake.root / "settings.yaml").write_text("retention:\n  keep_runs: 1\n  minimum_days: 0\n")
            listed = json.loads(evenhand("gc", "--lake", str(lake.root), "--json").stdout)
            assert [r["name"] for r in listed["lake"] if r["kind"] == "run"] == ["run0"]


@pytest.mark.data("data/hmda_lar_2010_2017_labels")
def test_older_vintages_go_on_request_unless_a_kept_run_read_them(tmp_path: Path) -> None:
    from datetime import date

    from tasks.ingest.vintages.store import add, file_of

    labels = SHARED / "data" / "hmda_lar_2010_2017_labels" / "hmda_lar_2010_raw_rand_lm100.csv"
    lake = Lake(tmp_path / "lake")
    lines = labels.read_text().splitlines(keepends=True)
    held = []
    for i in range(3):
        file = tmp_path / f"edition{i}.csv"
        file.write_text("".join(lines[: 40 + i]))
        held.append(add(lake, file, year=2010, dataset="historic", geography="nationwide", frozen=date(2012, 1, 1 + i)))
    make(lake, "run0", ONE, 0)
    manifest = lake.root / "runs" / "run0" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["sha256"]
    content["spec"]["source"]["path"] = f"/before/it/moved{file_of(lake, held[0])}"
    manifest.write_text(json.dumps({**content, "sha256": digest(content)}))
    assert removals(lake, Keeping(1)) == [], "vintages stay unless they are named"
    went = collect(lake, Keeping(1, vintages=1))
    assert [(r.kind, r.path) for r in went] == [("vintage", lake.root / held[1].folder)]
    assert [v.is_dir() for v in (lake.root / h.folder for h in held)] == [True, False, True]


@pytest.mark.usefixtures("server")
def test_flow_runs_that_are_over_go_but_for_the_newest(server: str, tmp_path: Path) -> None:
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.states import Completed, Failed, Running

    from flows.supervision.prefect_server import of_lake, remove_outdated

    @flow(name="waits")
    def waits(lake: str, spec: dict[str, object]) -> None: ...

    lake, other = Lake(tmp_path / "lake"), Lake(tmp_path / "other")
    made: dict[str, list[UUID]] = defaultdict(list)
    with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
        for name, where, year, state in [
            ("old", lake, 2020, Completed()),
            ("new", lake, 2020, Failed()),
            ("alone", lake, 2021, Completed()),
            ("other", other, 2020, Completed()),
            ("other", other, 2020, Completed()),
            ("running", lake, 2020, Running()),
        ]:
            given = {"lake": where.location, "spec": {"name": "loans", "year": year}}
            made[name].append(client.create_flow_run(waits, parameters=given, state=state).id)
        assert remove_outdated(client, lake, 1) == 1
        left = {run.id for run in of_lake(client, lake, ["COMPLETED", "FAILED", "RUNNING"])}
        assert left == {*made["new"], *made["alone"], *made["running"]}
        assert {run.id for run in of_lake(client, other, ["COMPLETED"])} == set(made["other"])


def test_a_removal_says_how_large_it_is(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"1234")
    assert retention._removal("run", "a", tmp_path / "a", "why") == Removal("run", "a", 4, "why", tmp_path / "a")
