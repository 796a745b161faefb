"""``evenhand init`` of a file of HMDA writes the spec that audits it; a table with a few names of HMDA is its own."""

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import unprepared_tables as tables
from conftest import REPOSITORY, SHARED, evenhand

from flows.cli.draft.hmda_spec import hmda_spec
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, SpecError
from tasks.ingest import registry
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.registry import read_spec

sys.path.append(str(REPOSITORY / "tests" / "tasks" / "ingest" / "hmda"))

import hmda_files
import submissions


def of(path: Path) -> AuditSpec:
    """The spec of a file, which its reader accepts."""
    text = hmda_spec(path)
    assert text is not None
    spec: AuditSpec = read_spec(text, "hmda.yaml", {}).spec
    registry.check_columns(spec)
    return spec


@pytest.mark.parametrize("name", hmda_files.YEARS)
def test_every_layout_has_its_spec(tmp_path: Path, name: str) -> None:
    year = hmda_files.YEARS[name]
    spec = of(hmda_files.write(tmp_path / "lar.txt", name, year))
    assert (spec.year, spec.title, spec.source.kind) == (year, f"Loan decisions, {year}", "hmda")
    modern = {"property_value_usd", "debt_to_income_ratio", "ltv_ratio", "applicant_age"}
    assert modern & set(spec.columns) == (modern if year >= 2018 else set())
    named = {name for edge in spec.causal_graph.edges for name in edge}
    assert named <= set(spec.columns) | {p.name for p in spec.protected}


def test_init_writes_it_with_exit_code_0_and_the_audit_reads_it(tmp_path: Path) -> None:
    rows = submissions.rows_of(300)
    rows[7] = submissions.changed(rows[7], applicant_race_1="6")
    submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(300))
    done = evenhand("init", "lar.txt", "-o", "lar.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "lar.yaml").read_text()
    spec: AuditSpec = read_spec(text, "lar.yaml", {"source.path": str(tmp_path / "lar.txt")}).spec
    assert spec.title == "Loan decisions of Made Up Test Lender, 2023"
    assert (spec.year, spec.disclosure.profile) == (2023, "strict")
    assert {p.name: set(p.groups) for p in spec.protected} == {
        "race": {"White", "Black", "Asian", "not available"},
        "sex": {"male", "female"},
    }
    assert {"applicant_credit_score", "debt_to_income_pct"} <= set(spec.features())
    assert spec.columns["applicant_credit_score"].block == "history"
    assert not {"aus_result_1", "debt_to_income_ratio"} & set(spec.features())
    produced = ingest.function(settings=ingest_settings(spec))
    applications = produced.tables["applications"].to_pandas()
    assert len(applications) == 300
    assert applications["applicant_credit_score"].between(560, 820).all()
    public = read_spec(text, "lar.yaml", {"source.path": str(tmp_path / "lar.txt"), "disclosure.profile": "public"})
    with pytest.raises(SpecError, match=r"set disclosure\.profile to strict"):
        registry.check_columns(public.spec)


@pytest.mark.slow
@pytest.mark.parametrize("year", [2020, 2023])
def test_a_submission_is_audited_to_its_end_and_leaves_no_secret_in_any_byte(tmp_path: Path, year: int) -> None:
    rows = [
        submissions.changed(row, **dict([list(submissions.TEXTS.items())[place % len(submissions.TEXTS)]]))
        for place, row in enumerate(submissions.rows_of(300, year))
    ]
    submissions.write(tmp_path / "lar.txt", rows, submissions.sheet_of(300, year))
    draft = evenhand("init", "lar.txt", "-o", "lar.yaml", cwd=tmp_path)
    (tmp_path / "lar.txt").rename(tmp_path / "submitted.txt")
    audit = evenhand("audit", "lar.yaml", "--set", "source.path=submitted.txt", "--lake", "lake", cwd=tmp_path)
    assert audit.returncode in (0, 3), audit.stderr
    assert list((tmp_path / "lake").rglob("report.json"))
    texts = draft.stdout + draft.stderr + audit.stdout + audit.stderr
    for file in (file for file in tmp_path.rglob("*") if file.is_file() and file.name != "submitted.txt"):
        texts += file.read_bytes().decode("latin-1")
        if file.suffix == ".parquet":  # packed, so that the bytes alone would prove little
            texts += str(pq.read_table(file, partitioning=None).to_pylist())
    secrets = [*submissions.SECRETS.values(), *submissions.TEXTS.values(), *submissions.SHEET_SECRETS]
    secrets.remove(submissions.SECRETS["zip_code"])  # five digits are anywhere
    assert [secret for secret in secrets if secret.lower() in texts.lower()] == []


def test_a_public_file_is_written_as_it_was(tmp_path: Path) -> None:
    spec = of(tables.hmda(tmp_path))
    assert (spec.year, spec.disclosure.profile) == (2024, "published")
    assert "debt_to_income_ratio" in spec.columns
    assert "American Indian" not in spec.protected[0].groups


def test_a_decision_that_is_given_makes_a_draft_of_its_own(tmp_path: Path) -> None:
    tables.hmda(tmp_path)
    done = evenhand("init", "lender.csv", "--decision", "action_taken", "-o", "own.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kind: csv" in (tmp_path / "own.yaml").read_text()


def test_a_table_with_a_few_names_of_hmda_is_its_own(tmp_path: Path) -> None:
    names = "id,activity_year,action_taken,derived_race,derived_sex,applicant_age,dti_band,income_k,loan_amount\n"
    (tmp_path / "own.csv").write_text(names + "A1,2023,1,White,Male,25-34,36,128,132500\n" * 5)
    assert hmda_spec(tmp_path / "own.csv") is None
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    assert hmda_spec(tmp_path / "text.csv") is None


@pytest.mark.data("corpus/intake")
def test_bands_and_codes_under_own_names_are_no_file_of_hmda() -> None:
    assert hmda_spec(SHARED / "corpus" / "intake" / "tables" / "08-bands-and-codes.csv") is None


def test_a_submission_that_cannot_be_read_is_never_drafted_as_a_table(tmp_path: Path) -> None:
    path = submissions.write(tmp_path / "lar.txt", submissions.rows_of(5), submissions.sheet_of(6))
    with pytest.raises(DataQualityError, match="S304"):
        hmda_spec(path)
    done = evenhand("init", "lar.txt", "--decision", "action_taken", cwd=tmp_path)
    assert done.returncode == 4
    assert submissions.SECRETS["street_address"] not in done.stdout + done.stderr


def test_a_packed_file_is_as_good(tmp_path: Path) -> None:
    path = hmda_files.write(tmp_path / "lar.csv", "data_browser", 2023)
    shutil.make_archive(str(tmp_path / "lar"), "zip", tmp_path, "lar.csv")
    assert of(path.with_suffix(".zip")).year == 2023
