"""The watch: told, fetched, audited once, and audited again when a newer edition comes. A real publisher and server."""

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from publisher import Published, Publisher, publisher

from flows.runs.given import given_spec
from flows.runs.record import is_published
from schemas.errors import SpecError
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import add, vintages
from tasks.lake.store import Lake

pytestmark = pytest.mark.slow

NEWEST = """\
name: newest
year: 2022
source: {kind: hmda, vintage: {dataset: snapshot, geography: nationwide}}
decision: {column: action_taken, favourable: [1, 2, 8], unfavourable: [3, 7]}
protected:
  - name: race
    columns: [derived_race]
    groups: {White: [White], Black: [Black or African American]}
    reference: White
    unlisted: not available
columns: {income_usd: {type: continuous, constraint: up}, loan_amount_usd: {type: continuous}}
model: {kind: logistic_regression, folds: 3}
methods: {adjusted: null, fgce: null}
bootstrap: {draws: 100}
verdicts: {limits: null}
"""


def rows(place: Path, seed: int) -> Path:
    """A synthetic file of 2022."""
    return write(place / str(seed), TwinSettings(rows=300), seed).rows


def zipped(file: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(file, "2022_public_lar_csv.csv")
    return packed.getvalue()


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Publisher]:
    with publisher() as running:
        body = zipped(rows(tmp_path, 1))
        running.files["/static-data/snapshot/2022/2022_public_lar_csv.zip"] = Published(body)
        yield running


@pytest.fixture
def on_server(server: str) -> Iterator[None]:
    from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        yield


@pytest.mark.usefixtures("on_server")
def test_what_is_published_is_told_fetched_and_audited_once(published: Publisher, tmp_path: Path) -> None:
    from flows.watch import watch

    spec, lake = tmp_path / "newest.yaml", Lake(tmp_path / "lake")
    spec.write_text(NEWEST)

    def look(**given: Any) -> dict[str, Any]:
        found: dict[str, Any] = watch(
            spec=str(spec), lake=lake.location, **{"year": 2022, "base_url": published.url, **given}
        )
        return found

    told = look()
    assert published.url in told["not_fetched"]
    assert (told["fetched"], told["held"], told["run"]) == ("", "", "")
    assert (published.asked, vintages(lake)) == ([], [])

    first = look(fetch=True)
    (held,) = vintages(lake)
    assert first["fetched"] == first["held"] == str(held)
    assert (first["not_fetched"], first["audited"], held.frozen) == ("", True, date(2023, 5, 1))
    assert is_published(lake, first["run"])

    again = look(fetch=True)
    assert (again["fetched"], again["audited"], again["run"]) == ("", False, first["run"])
    assert len(published.asked) == 1, "what is held is not fetched again"

    missing = look(fetch=True, year=2023)
    assert "2023_public_lar_csv.zip answered" in missing["not_fetched"]
    assert (missing["published_year"], missing["held"], missing["run"]) == (2023, str(held), first["run"])

    published.files["/static-data/snapshot/2021/2021_public_lar_csv.zip"] = Published(zipped(rows(tmp_path, 3)))
    wrong = look(fetch=True, year=2021)
    assert "2022" in wrong["not_fetched"], "what came is of another year"
    assert (wrong["held"], wrong["run"]) == (str(held), first["run"])

    key = {"year": 2022, "dataset": "snapshot", "geography": "nationwide"}
    newer = add(lake, rows(tmp_path, 2), **key, frozen=date(2023, 8, 1))  # type: ignore[arg-type]
    restated = look()
    assert (restated["held"], restated["audited"]) == (str(newer), True)
    assert restated["run"] != first["run"]


@pytest.mark.parametrize("source", ["{kind: csv, path: x.csv}", "{kind: hmda, vintage: {dataset: twin}}"])
def test_a_spec_that_names_no_published_edition_is_refused(source: str, tmp_path: Path) -> None:
    from flows.watch import watch

    lines = [f"source: {source}" if line.startswith("source:") else line for line in NEWEST.splitlines()]
    spec = tmp_path / "newest.yaml"
    spec.write_text("\n".join(lines))
    state = watch.fn(spec=str(spec), lake=str(tmp_path / "lake"))
    assert (state.type.value, state.name) == ("FAILED", "Spec")
    assert re.search(r"a watch needs|nothing to watch for", state.message)


def test_a_spec_is_given_as_values_or_as_a_file(tmp_path: Path) -> None:
    spec = tmp_path / "newest.yaml"
    spec.write_text(NEWEST)
    read = given_spec(str(spec))
    assert given_spec(read.model_dump(mode="json")) == read
    with pytest.raises(SpecError, match=r"no audit spec can be read at .*other.yaml"):
        given_spec(str(tmp_path / "other.yaml"))
    spec.write_text("name: [")
    with pytest.raises(SpecError, match=r"newest\.yaml: not YAML"):
        given_spec(str(spec))
