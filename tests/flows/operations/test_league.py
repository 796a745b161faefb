"""The league of a year: which runs stand for it, what is withheld across them, the command, and what it refuses."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, evenhand
from lake_of_lenders import LENDERS, add_run, lake_of_lenders, people, rate

from flows.operations.league import document, linked_attributes, make_league, names_of
from schemas.errors import IntegrityError, SpecError
from tasks.ingest.vintages.panels import Lender
from tasks.metrics.league.rows import Asked
from tasks.metrics.publish.algorithm.profiles import POLICIES

ALL_ASKED = Asked(None, None)


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """The lake, its spec and its place; tests add nothing to it."""
    place = tmp_path_factory.mktemp("lenders")
    lake, spec = lake_of_lenders(place)
    return lake, spec, place


@pytest.fixture(scope="module")
def league(held):
    return make_league(held[1], 2024, held[0], ALL_ASKED)


def lines(league, measure, group):
    table = next(t for subject, t in league.tables.items() if (subject.measure, subject.group) == (measure, group))
    return {line.entrant.value: line for line in table.lines}, table


def test_direct_comes_first_and_every_lender_is_there_once(league):
    assert [(s.theory, s.group) for s in league.tables] == [
        ("similar_applicants", "Asian"), ("similar_applicants", "Black"), ("approval_rates", "Asian"), ("approval_rates", "Black"),  # noqa: E501
    ]  # fmt: skip
    for table in league.tables.values():
        assert sorted(line.entrant.value for line in table.lines) == sorted(LENDERS)


def test_columns_are_those_of_the_runs_own_verdicts(league):
    found, table = lines(league, "adjusted_effect", "Black")
    first = found["LEI0"]
    assert first.figure.value == pytest.approx(60 / 600 - 60 / 200)
    assert first.figure.n == 200
    assert first.entrant.usable == 900
    assert first.difference == pytest.approx(first.figure.value - table.everybody.value)
    assert (first.figure.robustness, first.figure.state) == (0.1, "outside")
    assert first.q <= 0.05
    assert first.screened
    assert first.figure.value < first.pooled < first.figure.high, "pulled towards the others"
    assert [line.entrant.value for line in table.screened] == ["LEI0"]


def test_a_published_p_of_a_thousandth_is_told_by_estimate_and_error(league):
    found, _ = lines(league, "adjusted_effect", "Black")
    assert found["LEI0"].p < 1e-4
    assert found["LEI1"].p > 0.05


def test_rows_are_in_the_order_of_the_pooled_end_that_is_nearer_to_the_limit(league):
    for measure in ("adjusted_effect", "approval_rate_ratio"):
        _, table = lines(league, measure, "Black")
        highs = [line.pooled_high for line in table.lines if line.pooled_high is not None]
        assert highs == sorted(highs)
        assert len(highs) > 2
        assert all(line.figure.withheld for line in table.lines[len(highs) :]), "those without a figure come last"


def test_what_a_run_withholds_is_withheld_and_so_is_what_would_tell_it(league):
    found, table = lines(league, "adjusted_effect", "Asian")
    gone = {value for value, line in found.items() if line.figure.withheld}
    assert "LEI2" in gone
    assert all(found[value].pooled is None and found[value].q is None for value in gone)
    assert all(found[value].figure.state == "inconclusive" for value in gone)
    hidden = league.hidden["race"]
    assert not hidden.unequal
    assert gone == {"LEI2", *hidden.partitions}
    assert table.everybody.withheld == hidden.everybody


def test_partitions_without_a_run_are_counted(held, league):
    census = league.census
    assert (census.done, census.too_few, census.failed, census.not_begun) == (5, 1, 0, 0)
    assert (census.without_value, census.is_complete) == (0, False)
    assert census.words.startswith("5 have a run, 1 have too few people")


def test_partitions_that_the_spec_leaves_out_are_others(held):
    lake, spec, _ = held
    few = spec.model_copy(update={"by": spec.by.model_copy(update={"values": ("LEI0", "LEI1")})})
    made = make_league(few, 2024, lake, ALL_ASKED)
    assert sorted(made.entrants) == ["LEI0", "LEI1"]
    assert not made.census.is_complete


def test_the_newest_valid_run_stands_for_a_partition(held, tmp_path):
    lake, spec = lake_of_lenders(tmp_path, dict(list(LENDERS.items())[:2]), every=False, small=0)
    later = add_run(lake, spec, "LEI0", people((60, 540), (20, 180), (20, 80)), finished="2026-02-01T00:00:00Z")
    made = make_league(spec, 2024, lake, ALL_ASKED)
    assert made.runs["LEI0"].run == later
    assert lines(made, "adjusted_effect", "Black")[0]["LEI0"].difference is None, "there is no run over all rows"


def test_the_order_of_the_runs_changes_nothing(held, league, tmp_path):
    lake, spec = lake_of_lenders(tmp_path, dict(reversed(LENDERS.items())))
    assert document(make_league(spec, 2024, lake, ALL_ASKED)) == document(league)


def test_attributes_that_share_a_column_are_not_both_told_of_everybody():
    race, both, sex = ({"name": n, "columns": c} for n, c in (("race", "r"), ("both", "re"), ("sex", "s")))
    assert linked_attributes([race, both, sex]) == {"both"}


def test_everything_is_printed_under_a_profile_that_withholds_nothing(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, profile="internal")
    made = make_league(spec, 2024, lake, ALL_ASKED)
    assert not POLICIES[made.profile].protects
    assert lines(made, "adjusted_effect", "Asian")[0]["LEI2"].figure.n == 3


def test_a_run_that_does_not_say_what_it_publishes_is_refused(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, dict(list(LENDERS.items())[:2]))
    path = next(path for path in lake.storage.glob("runs/*LEI0*/manifest.json"))
    from flows.runs.index import digest

    content = json.loads(lake.storage.read(path))
    del content["sha256"]
    tables = content["partitions"][0]["tables"]
    content["partitions"][0]["tables"] = [each for each in tables if each["table"] != "publication"]
    lake.write_file(path, json.dumps({**content, "sha256": digest(content)}).encode())
    with pytest.raises(IntegrityError, match="audit it again"):
        make_league(spec, 2024, lake, ALL_ASKED)


@pytest.mark.parametrize(
    ("measure", "group", "said"),
    [
        ("infeasible_share", None, "more paths are feasible"),
        ("st_effect", None, "less alike.*ask for adjusted_effect, approval_rate_ratio, denial_rate"),
        ("adjusted_efect", None, "did you mean 'adjusted_effect'"),
        ("overlap_effect", None, "no partition has a figure of it"),
        (None, "Blck", "did you mean 'Black'"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(held, measure, group, said):
    with pytest.raises(SpecError, match=said):
        make_league(held[1], 2024, held[0], Asked(measure, group))


def test_a_measure_that_was_taken_at_one_size_may_be_asked(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, {}, every=False)
    for value, numbers in list(LENDERS.items())[:2]:
        row = rate(people(*numbers), "Black", hidden=False)
        row |= {"method": "fgce", "measure": "infeasible_share", "parameters": '{"size": 500}'}
        add_run(lake, spec, value, people(*numbers), measures=[row, {**row, "parameters": "{}"}])
    made = make_league(spec, 2024, lake, Asked("infeasible_share", None))
    assert [subject.parameters for subject in made.tables] == ['{"size": 500}']
    (table,) = made.tables.values()
    assert all(line.pooled is None for line in table.lines), "its interval is not known to cover"


def test_methods_that_asked_a_sample_are_said(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, {}, every=False)
    for value, numbers in list(LENDERS.items())[:2]:
        row = rate(people(*numbers), "Black", hidden=False) | {"method": "cst", "measure": "st_effect"}
        sampled = {**row, "parameters": '{"sampled": "20000 of 90000"}'}
        add_run(lake, spec, value, people(*numbers), measures=[sampled] if value == "LEI0" else [])
    made = make_league(spec, 2024, lake, ALL_ASKED)
    assert {value: entrant.sampled for value, entrant in made.entrants.items()} == {"LEI0": "cst", "LEI1": ""}


def test_names_are_those_of_the_panel_and_of_the_table_beside_the_vintage(tmp_path):
    (tmp_path / "applications").mkdir()
    named = pa.table({"lender_id": ["LEI0", "LEI1", None], "name": ["First Bank", None, "Nobody"], "rows": [1, 2, 3]})
    pq.write_table(named, tmp_path / "lenders.parquet")
    run = SimpleNamespace(spec={"source": {"vintage_file": str(tmp_path / "applications")}})
    assert names_of([run, run], "lender_id", {}) == {"LEI0": "First Bank"}
    assert names_of([run], "state", {}) == {}
    assert names_of([SimpleNamespace(spec={"source": {"path": "a.csv"}})], "lender_id", {}) == {}
    assert names_of([SimpleNamespace(spec={"source": {"vintage_file": "/nowhere/a.parquet"}})], "lender_id", {}) == {}
    panel = {"LEI0": Lender("Old Bank"), "LEI2": Lender("Third Bank")}
    assert names_of([run], "lender_id", panel) == {"LEI0": "First Bank", "LEI2": "Third Bank"}
    assert names_of([run], "state", panel) == {}


def test_one_measure_and_group(held):
    made = make_league(held[1], 2024, held[0], Asked("denial_rate", "Black"))
    assert [(s.measure, s.group, s.theory) for s in made.tables] == [("denial_rate", "Black", "")]
    (table,) = made.tables.values()
    assert table.tested == 0


@pytest.mark.parametrize(
    ("lenders", "small", "said"),
    [
        ({}, 30, "0 of 0 of 2024 have a run"),
        ({"LEI0": LENDERS["LEI0"]}, 30, "a league of one compares nothing"),
        ({"LEI0": LENDERS["LEI0"]}, 400, "has one value with people enough"),
    ],
)
def test_fewer_than_two_partitions_are_no_league(tmp_path, lenders, small, said):
    lake, spec = lake_of_lenders(tmp_path, lenders, every=False, small=small)
    with pytest.raises(SpecError, match=said):
        make_league(spec, 2024, lake, ALL_ASKED)


def test_a_league_before_two_partitions_are_done_says_how_to_go_on(tmp_path):
    lake, spec = lake_of_lenders(tmp_path, LENDERS, every=False)
    for path in lake.storage.glob("runs/*/manifest.json"):
        if "LEI0" not in path:
            lake.storage.remove(path.rpartition("/")[0])
    with pytest.raises(SpecError, match=r"1 of 5 of 2024 has a run; `evenhand backfill SPEC --years 2024` goes on"):
        make_league(spec, 2024, lake, ALL_ASKED)


def command(place, *options):
    return evenhand("league", str(place / "loans.yaml"), "--lake", str(place / "lake"), *options)


def test_the_command_prints_what_it_is_for_first_and_writes_the_page(held):
    done = command(held[2], "--year", "2024")
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("Benjamini-Hochberg over lenders is for screening and is no verdict on its own")
    assert "no ranking of lenders" in done.stdout
    page = held[2] / "lake/reports/league-loans-2024/league.html"
    assert str(page) in done.stdout.splitlines()[-1]
    assert page.is_file()
    said = json.loads((page.parent / "league.json").read_text())
    assert said["partitions"]["done"] == 5
    assert {row["value"] is None for row in said["tables"][0]["rows"] if row["withheld"]} <= {True}


def test_the_command_as_json_and_the_page_elsewhere(held, tmp_path):
    file = tmp_path / "made/here.html"
    done = command(held[2], "--json", "--measure", "adjusted_effect", "--group", "Black", "--html", str(file))
    said = json.loads(done.stdout)
    assert said["page"] == str(file)
    assert [table["group"] for table in said["tables"]] == ["Black"]
    assert len(said["tables"][0]["rows"]) == 5
    assert 'href="file:///' in file.read_text()


def test_a_spec_without_by_has_no_league(held):
    done = evenhand("league", str(REPOSITORY / "data/audits/boston1990.yaml"), "--lake", str(held[2] / "lake"))
    assert done.returncode == 2
    assert "by: {column: lender_id}" in done.stderr
