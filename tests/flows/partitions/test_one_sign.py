"""One lender over two years: pages, terminal, JSON, workbook, trend, league and comparison print one number."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from computed_lake import computed
from conftest import evenhand, loans
from openpyxl import load_workbook
from served_lake import served

from flows.operations.league import document, make_league
from flows.partitions.part_spec import spec_to_audit
from flows.partitions.trends import make_trend
from flows.partitions.years import spec_of_year
from flows.runs.index import last_run
from schemas.tables.verdicts import effect_words
from tasks.lake.store import Lake
from tasks.metrics.league.rows import Asked
from tasks.pipeline.registry import read_spec
from tasks.reporting.charts.values import MINUS

YEARS, LENDER = (2023, 2024), "Strict"
SPEC = """\
name: banks
title: Loans of two banks
year: 2024
source: {kind: csv, path: 'PLACE/loans_{year}.csv'}
by: {column: lender, minimum: 100}
row_id: id
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - {name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}
columns:
  income: {type: continuous, constraint: up}
  history: {type: ordinal, order: [bad, fair, good], constraint: up}
model: {kind: none}
methods: {adjusted: {splits: 1}, fgce: null}
disclosure: {profile: public}
bootstrap: {draws: 100}
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The spec, and the lake of both years: a bank that denies half of the Black applicants it would approve.

    The other bank is audited in the last year alone, as a league compares two.
    """
    place = tmp_path_factory.mktemp("banks")
    for year in YEARS:
        table = loans(2000, seed=year)
        table = table[table["race"] != ""].reset_index(drop=True)
        rng = np.random.default_rng(year)
        lender = np.where(rng.random(len(table)) < 0.5, LENDER, "Fair")
        denied = (lender == LENDER) & (table["race"] == "b") & (rng.random(len(table)) < 0.5)
        table = table.assign(lender=lender, approved=table["approved"].mask(denied, "no"))
        table.to_csv(place / f"loans_{year}.csv", index=False)
    spec = place / "banks.yaml"
    spec.write_text(SPEC.replace("PLACE", str(place)))
    lake = Lake(place / "lake")
    for year, bank in ((YEARS[0], LENDER), (YEARS[-1], LENDER), (YEARS[-1], "Fair")):
        of_year = spec_of_year(read_spec(spec.read_text(), spec.name, {}).spec, year, lake)
        computed(lake, spec_to_audit(of_year, lake, bank))
    return spec, place / "lake"


@pytest.fixture(scope="module")
def made(audited: tuple[Path, Path]) -> dict[str, Any]:
    """What each place prints of the similar Black applicants of the strict bank in the last year."""
    path, root = audited
    lake = Lake(root)
    run = last_run(lake, "banks", YEARS[-1], LENDER)
    before = last_run(lake, "banks", YEARS[0], LENDER)
    assert run is not None
    assert before is not None
    verdicts = run.published("verdicts")
    assert verdicts is not None
    [stored] = [row for row in lake.read(verdicts).to_pylist() if _is_judged(row)]
    folder = root.parent / "files"
    done = evenhand("report", run.run, "--lake", str(root), "--out", str(folder))
    assert done.returncode == 0, done.stderr
    spec = read_spec(path.read_text(), path.name, {}).spec
    trend = make_trend("banks", YEARS, lake, LENDER)
    league = document(make_league(spec, YEARS[-1], lake, Asked("adjusted_effect", "Black")))
    site = served(str(root))
    return {
        "stored": stored,
        "pages": {file.relative_to(folder).as_posix(): _text(file.read_text()) for file in folder.rglob("*.html")},
        "report": json.loads((folder / "report.json").read_text()),
        "workbook": load_workbook(io.BytesIO((folder / "measures.xlsx").read_bytes()), read_only=True),
        "terminal": evenhand("verdicts", run.run, "--lake", str(root)).stdout,
        "shown": evenhand("show", run.run, "--lake", str(root)).stdout,
        "trend": trend,
        "league": league,
        "compared": _text(site.get(f"/runs/{run.run}/compare/{before.run}").text),
        "measures": _text(site.get(f"/runs/{run.run}/measures").text),
    }


def _is_judged(row: dict[str, Any]) -> bool:
    return (row["theory"], row["role"], row["group"]) == ("similar_applicants", "primary", "Black")


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.slow
def test_every_place_prints_the_number_of_the_first_page_with_its_sign(made: dict[str, Any]) -> None:
    value, low, high = -made["stored"]["value"], -made["stored"]["plain_high"], -made["stored"]["plain_low"]
    assert high < 0, "approved less often"
    report = made["report"]
    [row] = [answer for answer in report["questions"] if answer["theory"] == "similar_applicants"]
    [effect] = row["effects"]
    assert (effect["value"], effect["low"], effect["high"]) == tuple(round(100 * n) for n in (value, low, high))
    size = f"{-round(100 * value)} points less often ({-round(100 * high)} to {-round(100 * low)})"
    for text in (row["sentence"], made["pages"]["report.html"], made["shown"]):
        assert size in re.sub(r"\s+", " ", text)
    of_verdicts = dict(zip(report["theories"]["columns"], zip(*report["theories"]["rows"], strict=True), strict=True))
    assert value in of_verdicts["value"]
    names, *cells = made["workbook"]["Measures"].iter_rows(values_only=True)
    sheet = [dict(zip(names, line, strict=True)) for line in cells]
    [measure] = [r for r in sheet if (r["measure"], r["parameters"], r["group"]) == ("adjusted_effect", "{}", "Black")]
    assert (measure["value"], measure["low"], measure["high"]) == pytest.approx((value, low, high))
    [of_year] = [
        r
        for r in made["trend"].table.to_pylist()
        if (r["year"], r["measure"], r["group"]) == (YEARS[-1], "adjusted_effect", "Black")
    ]
    assert of_year["value"] == value
    [monitored] = [
        r
        for r in made["trend"].monitoring.to_pylist()
        if (r["year"], r["theory"], r["group"]) == (YEARS[-1], "similar_applicants", "Black")
    ]
    assert (monitored["value"], monitored["limit"]) == (value, -0.02)
    [line] = [r for r in made["league"]["tables"][0]["rows"] if r["partition"] == LENDER]
    assert (line["value"], line["low"], line["high"]) == (value, low, high)
    printed = effect_words(made["stored"]).split(" [")[0]
    assert printed.startswith("-")
    assert f"{printed} [" in made["terminal"]
    assert f"{printed} [" in made["measures"]
    assert printed.replace("-", MINUS) in made["compared"]


@pytest.mark.slow
def test_pages_of_evidence_and_of_the_question_have_no_other_sign(made: dict[str, Any]) -> None:
    value = -made["stored"]["value"]
    of_question, evidence = made["pages"]["pages/similar-applicants.html"], made["pages"]["evidence/adjusted.html"]
    shown = f"{MINUS}{abs(100 * value):.1f}"
    assert f"{shown} pp" in evidence
    assert shown.replace(MINUS, "+") not in evidence
    assert f"{MINUS}{abs(round(100 * value))}" in of_question
    assert "points of denial" not in evidence + of_question
