"""The spec of one year: which file it reads, and what a year that lacks something is audited without."""

from datetime import date

import numpy as np
import pytest
from conftest import REPOSITORY, SHARED
from hypothesis import given
from hypothesis import strategies as st
from loans_by_year import BREACH, LACKING, WITHIN, write_years, year_of_loans, yearly_spec

from flows.partitions.years import given_years, parse_years, spec_of_year
from schemas.errors import InfrastructureError, SpecError, TooFewError
from schemas.vintages import FIRST_YEAR, latest_year
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.methods.cst.settings import CstSettings
from tasks.methods.raguel.settings import RaguelSettings
from tasks.pipeline.registry import read_spec


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("years")
    write_years(path)
    return path


@pytest.fixture(scope="module")
def lake(place):
    return Lake(place / "lake")


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("2012", (2012,)),
        ("2010-2013", (2010, 2011, 2012, 2013)),
        ("2015-2016, 2012", (2012, 2015, 2016)),
        ("2012,2011-2013", (2011, 2012, 2013)),
    ],
)
def test_years_are_read_in_order_and_once(text, years):
    assert parse_years(text) == years


@given(st.sets(st.integers(FIRST_YEAR, latest_year()), min_size=1, max_size=30))
def test_years_written_out_are_read_back(years):
    assert parse_years(",".join(map(str, years))) == tuple(sorted(years))


@pytest.mark.parametrize("text", ["", "12", "2013-2012", "2012-", "2012;2013", "1800", "2010-3000", "all"])
def test_what_is_no_year_is_refused_with_an_example(text):
    with pytest.raises(SpecError, match="no year and no range such as 2010-2024"):
        parse_years(text)


def test_a_deployed_flow_takes_years_as_numbers_or_as_words():
    assert given_years([2019, 2018, 2019]) == given_years("2018-2019") == (2018, 2019)
    with pytest.raises(SpecError, match="`years` is empty"):
        given_years([])


def test_a_whole_year_keeps_the_spec_but_for_its_file(place, lake):
    spec = yearly_spec(place)
    of_year = spec_of_year(spec, WITHIN, lake)
    assert of_year.source.path == str(place / f"loans_{WITHIN}.csv")
    assert (of_year.year, of_year.source.lacking) == (WITHIN, ())
    same = {"year": spec.year, "source": spec.source}
    assert of_year.model_copy(update=same) == spec


def test_a_lacking_column_leaves_no_dangling_name(place, lake):
    spec = yearly_spec(
        place,
        causal_graph__edges="[[race, income], [income, history], [history, amount], [race, amount]]",
        causal_graph__mechanisms="{history: {kind: ordinal}, amount: {kind: linear}}",
        source__keep="{history: present}",
        methods__cst="{attributes: [income, history], sensitivity: false}",
        methods__raguel="{block_column: history}",
    )
    of_year = spec_of_year(spec, LACKING, lake)
    assert of_year.source.lacking == ("history",)
    assert list(of_year.columns) == ["income", "amount"]
    # what went from income through history to amount goes there directly
    assert of_year.causal_graph.edges == (("race", "income"), ("race", "amount"), ("income", "amount"))
    assert list(of_year.causal_graph.mechanisms) == ["amount"]
    assert (
        of_year.source.keep,
        of_year.methods.of(CstSettings).attributes,
        of_year.methods.of(RaguelSettings).block_column,
    ) == (
        {},
        ("income",),
        None,
    )
    check_columns(of_year)


def test_a_method_whose_only_columns_are_lacking_is_left_out(place, lake):
    spec = yearly_spec(place, methods__cst="{attributes: [history]}", methods__raguel="{}")
    of_year = spec_of_year(spec, LACKING, lake)
    assert of_year.methods.of(CstSettings) is None
    assert of_year.methods.of(RaguelSettings) == spec.methods.of(RaguelSettings)


def test_a_block_of_controls_goes_when_none_of_them_is_left(place, lake):
    spec = yearly_spec(place, methods__adjusted="{blocks: {mine: [income, amount], past: [history]}}")
    of_year = spec_of_year(spec, LACKING, lake)
    assert of_year.methods.of(AdjustedSettings).blocks == {"mine": ("income", "amount")}


def test_a_year_without_any_named_control_does_not_take_others_in_their_place(place, lake):
    spec = yearly_spec(place, methods__adjusted="{blocks: {past: [history]}, primary: past}")
    of_year = spec_of_year(spec, LACKING, lake)
    asked = adjust_settings(of_year)
    assert (asked.blocks, asked.primary) == ((), "past")


def test_a_column_that_no_year_has_is_misspelt_and_not_lacking(place, lake):
    of_year = spec_of_year(yearly_spec(place, columns__incme="{type: continuous}"), WITHIN, lake)
    with pytest.raises(SpecError, match="no column 'incme'; did you mean 'income'"):
        check_columns(of_year)


def test_a_group_that_nobody_belongs_to_is_lacking(place, lake):
    spec = yearly_spec(place, protected__0__groups="{white: [w], Black: [b], Asian: [a]}")
    of_year = spec_of_year(spec, WITHIN, lake)
    assert list(of_year.protected[0].groups) == ["white", "Black"]
    assert of_year.source.lacking == ("race: Asian",)


@pytest.mark.parametrize(
    "attribute",
    [
        "{name: race, columns: [race], reference: w}",
        "{name: race, columns: [race], reference: (missing)}",
        "{name: race, columns: [race], groups: {Black: [b], blank: ['']}, reference: blank}",
        "{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}",
    ],
)
def test_a_reference_may_be_a_value_or_the_missing_ones(tmp_path, attribute):
    write_years(tmp_path)
    year_of_loans(WITHIN).replace({"race": {"b": ""}}).to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    of_year = spec_of_year(yearly_spec(tmp_path, protected=f"[{attribute}]"), WITHIN, Lake(tmp_path / "lake"))
    assert len(of_year.protected) == 1
    assert of_year.source.lacking == (("race: Black",) if "Black" in attribute else ())


def test_a_year_without_its_reference_group_has_too_few(tmp_path):
    write_years(tmp_path)
    frame = year_of_loans(BREACH)
    frame[frame["race"] == "b"].to_csv(tmp_path / f"loans_{BREACH}.csv", index=False)
    with pytest.raises(TooFewError, match=r"no protected attribute left to compare by: .* race: white"):
        spec_of_year(yearly_spec(tmp_path), BREACH, Lake(tmp_path / "lake"))


def test_an_attribute_over_a_lacking_column_goes_with_its_edges(tmp_path):
    write_years(tmp_path)
    frame = year_of_loans(WITHIN)
    sex = np.where(np.arange(len(frame)) % 2, "f", "m")
    frame.assign(sex=sex).to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    spec = yearly_spec(
        tmp_path,
        causal_graph__edges="[[gender, income], [race, income]]",
        protected="[{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}, "
        "{name: gender, columns: [sex], reference: m}, {name: both, columns: [race, sex], reference: white and m}]",
    )
    of_year = spec_of_year(spec, BREACH, Lake(tmp_path / "lake"))
    assert [p.name for p in of_year.protected] == ["race"]
    assert of_year.causal_graph.edges == (("race", "income"),)
    assert of_year.source.lacking == ("sex",)
    whole = spec_of_year(spec, WITHIN, Lake(tmp_path / "lake"))
    assert [p.name for p in whole.protected] == ["race", "gender", "both"]


def test_a_column_that_is_empty_in_a_parquet_file_is_lacking(tmp_path):
    for year in (WITHIN, LACKING):
        frame = year_of_loans(WITHIN)
        if year == LACKING:
            frame["history"] = None
        frame.astype({"history": "string"}).to_parquet(tmp_path / f"loans_{year}.parquet")
    spec = yearly_spec(tmp_path, source__kind="parquet", source__path=str(tmp_path / "loans_{year}.parquet"))
    assert spec_of_year(spec, LACKING, Lake(tmp_path / "lake")).source.lacking == ("history",)
    assert spec_of_year(spec, WITHIN, Lake(tmp_path / "lake")).source.lacking == ()


def test_a_source_that_names_no_year_is_refused(place, lake):
    spec = yearly_spec(place, source__path=str(place / f"loans_{WITHIN}.csv"))
    with pytest.raises(SpecError, match="every year would read the same file"):
        spec_of_year(spec, WITHIN, lake)


def test_a_year_without_its_file_names_it(place, lake):
    with pytest.raises(InfrastructureError, match=r"loans_1999\.csv"):
        spec_of_year(yearly_spec(place), 1999, lake)


HMDA = SHARED / "data" / "hmda_lar_2010_2017_labels" / "hmda_lar_2016_raw_rand_lm100.csv"


@pytest.mark.data("data/hmda_lar_2010_2017_labels")
def test_a_vintage_of_hmda_is_resolved_and_lacks_what_its_time_did_not_know(tmp_path):
    from tasks.ingest.vintages.store import add

    lake = Lake(tmp_path / "lake")
    text = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()
    spec = read_spec(text, "hmda.yaml").spec
    with pytest.raises(InfrastructureError, match="holds no vintage of 2016"):
        spec_of_year(spec, 2016, lake)
    held = add(lake, HMDA, year=2016, dataset="historic", geography="nationwide", frozen=date(2018, 1, 1))
    of_year = spec_of_year(spec, 2016, lake)
    assert of_year.source.year == of_year.year == 2016
    assert of_year.source.path is None, "the vintage is what the spec names"
    assert of_year.source.vintage_file is not None
    assert held.sha256[:12] in of_year.source.vintage_file
    lacking = set(of_year.source.lacking)
    assert {"debt_to_income_ratio", "ltv_ratio", "property_value_usd", "applicant_age"} <= lacking
    nodes = {node for edge in of_year.causal_graph.edges for node in edge}
    assert not lacking & nodes
    assert ("race", "loan_amount_usd") in of_year.causal_graph.edges
    check_columns(of_year)
    again = spec_of_year(of_year, 2016, lake)  # a spec of a run resolves anew, to the same
    assert again.source.paths == of_year.source.paths == (of_year.source.vintage_file,)


@pytest.mark.data("data/hmda_lar_2010_2017_labels")
def test_a_column_that_hmda_does_not_know_is_misspelt(tmp_path):
    text = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()
    path = str(HMDA).replace("2016", "{year}")
    overrides = {"source.path": path, "source.vintage": "null", "columns.incme_usd": "{type: continuous}"}
    overrides["methods.cst"] = "null"  # whose order of columns would have to name it
    of_year = spec_of_year(read_spec(text, "hmda.yaml", overrides).spec, 2016, Lake(tmp_path / "lake"))
    with pytest.raises(SpecError, match="no column 'incme_usd'; did you mean 'income_usd'"):
        check_columns(of_year)
