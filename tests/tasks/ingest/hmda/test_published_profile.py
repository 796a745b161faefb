"""The profile `published`, which withholds nothing: for rows that anyone may download, and refused for others."""

import hmda_files
import pytest
import submissions
from conftest import REPOSITORY, loans, spec_of

from schemas.errors import SpecError
from tasks.ingest.registry import check_columns
from tasks.pipeline.registry import read_spec

HMDA = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()


@pytest.mark.parametrize(
    "column",
    [
        "ULI",
        "First Name",
        "applicant_name",
        "surname",
        "DateOfBirth",
        "birth_date",
        "dob",
        "SSN",
        "street_address",
        "name",
    ],
)
def test_a_column_that_public_files_lack_is_named(place, column):
    loans().assign(**{column: "x"}).to_csv(place / "loans.csv", index=False)
    check_columns(spec_of(place))
    with pytest.raises(SpecError, match="files that anyone may download lack") as error:
        check_columns(spec_of(place, disclosure="{profile: published}"))
    assert repr(column) in str(error.value)
    assert error.value.location == ("disclosure", "profile")


@pytest.mark.parametrize("column", ["county_name", "lender_name", "applicant_age", "building", "agency_name", "soul"])
def test_a_column_that_public_files_have_is_taken(place, column):
    loans().assign(**{column: "x"}).to_csv(place / "loans.csv", index=False)
    check_columns(spec_of(place, disclosure="{profile: published}"))


def test_it_is_the_default_of_hmda_and_of_nothing_else(place):
    bare = HMDA.replace("disclosure: {profile: published} # anyone may download these rows\n", "")
    assert bare != HMDA
    assert read_spec(bare, "hmda.yaml", {}).spec.disclosure.profile == "published"
    assert read_spec(bare, "hmda.yaml", {"disclosure.profile": "strict"}).spec.disclosure.profile == "strict"
    assert spec_of(place, disclosure="{}").disclosure.profile == "strict"


def test_a_public_file_of_hmda_is_taken_and_a_lenders_own_is_refused(tmp_path):
    path = hmda_files.write(tmp_path / "lar.txt", "data_browser", 2022)
    public = {"source.path": str(path), "source.vintage": "null", "year": "2022"}
    check_columns(read_spec(HMDA, "hmda.yaml", public).spec)
    submissions.write(tmp_path / "own.txt", submissions.rows_of(50), submissions.sheet_of(50))
    own = {**public, "source.path": str(tmp_path / "own.txt")}
    for profile in ("published", "public"):
        with pytest.raises(SpecError, match=r"own submission \(uli, and exact ages, scores and dates\)"):
            check_columns(read_spec(HMDA, "hmda.yaml", {**own, "disclosure.profile": profile}).spec)
