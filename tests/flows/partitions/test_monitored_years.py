"""Years of a lake against their limits: which run stands for a year, what makes two alike, and the command."""

import json
from types import SimpleNamespace

import pytest
from conftest import REPOSITORY, evenhand
from year_verdicts import as_table, verdict, whole

from flows.cli.backfill import with_figures
from flows.outcome import artifacts
from flows.partitions import trends
from flows.partitions import trends as partitions
from flows.partitions.trends import changes_of, followed, rule_of, said_of_years
from flows.runs.index import Run
from schemas.artifact import Artifact, Partition
from tasks.metrics.algorithm.monitoring import MonitoringRule
from tasks.reporting.trends import HMDA_BREAK, YearResult, table, trend

RULE = MonitoringRule()
RACE = {"name": "race", "columns": ["race"], "groups": {"white": ["w"], "Black": ["b"]}, "reference": "white"}


class Shelf:
    """A lake that holds tables of verdicts and nothing else."""

    location = "shelf"
    storage = SimpleNamespace(glob=lambda _: ())
    """Nothing was released or signed."""

    def __init__(self, tables):
        self.tables = tables

    def read(self, artifact):
        return self.tables[artifact.path]


def run(year, *, tables=("verdicts",), kind="csv", code="1", protected=(RACE,), lacking=(), name="", **verdicts):
    spec = {"source": {"kind": kind, "lacking": list(lacking)}, "protected": list(protected), "verdicts": verdicts}
    artifacts = tuple(Artifact(table=t, path=f"{year}{name}", sha256="0", rows=1) for t in tables)
    partition = Partition(stage="measure", key="k", tables=artifacts, files={})
    told = {"state": "within", "finished": f"{year}{name}", "source_sha256": "0" * 64, "versions": {}, "lineage": ()}
    of = f"a-{year}{name}"
    return Run(run=of, audit="a", year=year, code=code, spec=spec, partitions=(partition,), protected=False, **told)


def rows_of(runs, values, rule=RULE):
    held = {
        str(y) if isinstance(y, int) else y: as_table([whole(), verdict("Black", v, 0.01)]) for y, v in values.items()
    }
    seen = followed(Shelf(held), runs, rule)
    return {row["year"]: row for row in table("a", seen, rule).to_pylist()}


def test_verdicts_of_a_lake_become_rows_and_years_without_them_gaps():
    runs = {2016: run(2016), 2017: None, 2018: run(2018, tables=("measures",)), 2019: run(2019)}
    rows = rows_of(runs, {2016: 0.08, 2019: 0.08})
    assert [row["state"] for row in rows.values()] == ["outside", "not_run", "not_run", "outside"]
    assert rows[2017]["reason"] == "no run of this year"
    assert rows[2018]["reason"] == "the run of this year has no verdicts"
    assert rows[2019]["change"] == pytest.approx(0)


def test_a_restated_year_enters_by_its_last_edition_only():
    restated = rows_of({2016: run(2016, name="b"), 2017: run(2017)}, {"2016b": 0.01, 2017: 0.05})
    never = rows_of({2016: run(2016), 2017: run(2017)}, {2016: 0.01, 2017: 0.05})
    assert restated == never


OTHER = RACE | {"groups": {"white": ["w"], "Black": ["b", "B"]}}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("without ltv", {"lacking": ["ltv"]}),
        ("another version of the method", {"code": "2"}),
        ("the groups are defined otherwise", {"protected": [OTHER]}),
        ("columns_complete true, before false", {"columns_complete": True}),
    ],
)
def test_runs_that_differ_are_not_compared(words, more):
    rows = rows_of({2016: run(2016), 2017: run(2017, **more)}, {2016: 0.01, 2017: 0.05})
    assert rows[2017]["change_state"] == "not_comparable"
    assert words in rows[2017]["reason"]


def test_a_group_without_members_makes_no_difference_to_others():
    runs = {2016: run(2016), 2017: run(2017, lacking=["race: Asian"])}
    assert rows_of(runs, {2016: 0.01, 2017: 0.05})[2017]["change_state"] == "none"


def test_hmda_is_not_compared_across_2018():
    for kind, state in (("hmda", "not_comparable"), ("csv", "none")):
        rows = rows_of({y: run(y, kind=kind) for y in (2017, 2018)}, {2017: 0.01, 2018: 0.05})
        assert rows[2018]["change_state"] == state
        assert (HMDA_BREAK[1] in rows[2018]["reason"]) == (kind == "hmda")


def test_the_rule_is_that_of_the_spec():
    assert rule_of({}) == rule_of({"verdicts": None}) == RULE
    said = {"alpha": 0.01, "monitoring": {"rule": "bonferroni", "years": 8}}
    assert rule_of({"verdicts": said}) == MonitoringRule("bonferroni", 8, 0.01)


def test_a_back_fill_ends_with_a_sentence_a_theory(monkeypatch):
    runs = {2016: run(2016), 2017: run(2017)}
    monkeypatch.setattr(partitions, "last_run", lambda lake, audit, year: runs.get(year))
    shelf = Shelf({str(year): as_table([verdict("Black", 0.08, 0.01)]) for year in runs})
    said = ["Similar applicants: the years together are outside the limit (Black since 2016)"]
    assert said_of_years("a", (2016, 2017, 2018), shelf) == said
    assert said_of_years("a", (2018,), shelf) == []


WORSE, BETTER, TWICE, ONCE = (
    [0.0, 0.002, 0.0, 0.001, 0.1],
    [0.0, 0.002, 0.0, 0.001, -0.1],
    [0.02, 0.06, 0.02, 0.05, 0.03, 0.12, 0.19],
    [0.02, 0.06, 0.02, 0.05, 0.03, 0.12],
)


@pytest.mark.parametrize(("values", "announced"), [(WORSE, True), (BETTER, False), (TWICE, True), (ONCE, False)])
def test_a_schedule_announces_a_change_against_the_group(monkeypatch, values, announced):
    """At once where q is below 0.01, else in the second year in a row; the event names the series, and no number."""
    runs = {2010 + t: run(2010 + t) for t in range(len(values))}
    monkeypatch.setattr(partitions, "runs_of", lambda *_, **__: list(runs.values()))
    monkeypatch.setattr(partitions, "last_run", lambda lake, audit, year: runs.get(year))
    shelf = Shelf({str(y): as_table([verdict("Black", v, 0.01)]) for y, v in zip(runs, values, strict=True)})
    events = []
    monkeypatch.setattr(artifacts, "emit_event", lambda **event: events.append(event))
    artifacts.announce_changes("a", lambda: changes_of("a", shelf))
    assert [event["event"] for event in events] == ["evenhand.trend.changed"] * announced
    for event in events:
        assert event["payload"]["group"] == "Black"
        assert event["payload"]["year"] == str(2009 + len(values))
        assert not {"n", "value", "events"} & set(event["payload"])


@pytest.fixture
def made(monkeypatch):
    """`evenhand trend` on years with verdicts, and without a lake."""

    def give(values):
        runs = {2010 + t: run(2010 + t) for t in range(len(values))}
        shelf = Shelf({str(y): as_table([verdict("Black", v, 0.01)]) for y, v in zip(runs, values, strict=True)})
        seen = followed(shelf, runs, RULE)
        years = [YearResult(year, run="r") for year in runs]
        found = trends.Made(trend("a", years), "page.html", seen, table("a", seen, RULE))
        monkeypatch.setattr(trends, "make_trend", lambda *_: found)
        monkeypatch.setattr("tasks.lake.store.open_lake", lambda lake: SimpleNamespace(location=lake))

    return give


def command(*options):
    return evenhand("trend", str(REPOSITORY / "data/audits/boston1990.yaml"), "--years", "2010-2014", *options)


CALM, BEYOND, MOVED = [0.0, 0.002, 0.001, 0.0, 0.001], [0.09, 0.092, 0.091, 0.09, 0.091], [0.0, 0.002, 0.0, 0.001, -0.1]


@pytest.mark.parametrize(
    ("values", "fails"), [(CALM, set()), (BEYOND, {"outside"}), (MOVED, {"changed"})], ids=["calm", "beyond", "moved"]
)
@pytest.mark.parametrize("fail_on", ["", "never", "changed", "outside"])
def test_the_exit_code_is_1_only_for_what_was_asked(made, values, fails, fail_on):
    made(values)
    done = command(*(("--fail-on", fail_on) if fail_on else ()))
    assert done.returncode == (1 if fail_on in fails else 0), done.stderr


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("changed", 3), ("outside", 3)])
def test_without_verdicts_nothing_reads_as_a_pass(made, fail_on, code):
    made([])
    done = command("--fail-on", fail_on)
    assert done.returncode == code
    assert "nothing was held against a limit" in done.stdout


def test_the_command_prints_the_states_and_the_change(made):
    made(BEYOND)
    said = command().stdout
    assert "years against their limits" in said
    assert "outside" in said
    assert "2014: 0.000 [" in said
    assert "Similar applicants: the years together are outside the limit (Black since 2010)" in said
    told = json.loads(command("--json").stdout)["monitoring"]
    assert [row["state"] for row in told] == ["outside"] * 5
    assert told[-1]["years_used"] == 4


def test_only_rows_with_a_figure_are_printed_and_the_others_are_counted_by_reason():
    rows = [
        {"decision_maker": "lender", "protected_attribute": "race", "group": group, "measure": "rate", "year": year}
        | {"told": told, "value": 0.5 if told == "value" else None}
        for group, words in (
            ("A", ("value", "withheld")),
            ("B", ("withheld", "withheld")),
            ("C", ("too few", "withheld")),
            ("D", ("too few", "too few")),
        )
        for year, told in zip((2010, 2011), words, strict=True)
    ]
    shown, others = with_figures(rows)
    assert [(row["group"], row["2010"], row["2011"]) for row in shown] == [("A", "0.500", "withheld")]
    assert others == "3 of 4 measures have no figure in any of these years: too few 2, withheld 1"
    assert with_figures(rows[:2])[1] == ""
