"""Whom published counts count, where refused rows are written whole, as a sample, or not at all: the same people."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.errors import IntegrityError
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS, REFUSAL_COUNTS, REFUSALS
from tasks.metrics.publish.people import Crowd, SourceTables
from tasks.pipeline import stage
from tasks.pipeline.stage import hold
from tasks.plan import plan

BOTH = "{name: both, columns: [race, purpose], reference: white and buy}"
RACE = "{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}"
FEATURES = ("income", "amount")
LACKS = [(name, reason) for name in FEATURES for reason in ("missing_covariate", "exempt_covariate")]


@pytest.fixture
def many(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Loans of two linked attributes that both stages refuse some of, and a line that cannot be read."""
    monkeypatch.setattr(stage, "WHOLE_ROWS", 20)
    monkeypatch.setattr(stage, "SAMPLED_ROWS", 5)
    frame = loans(1000).astype(object)
    frame.loc[frame.index % 5 == 0, "purpose"] = "other"
    frame.loc[frame.index % 6 == 1, "income"] = "NA"
    frame.loc[frame.index % 9 == 1, "amount"] = "NA"
    frame.loc[frame.index % 7 == 1, "amount"] = "Exempt"
    frame.loc[frame.index % 11 == 2, "approved"] = "withdrawn"
    text = frame.to_csv(index=False)
    (place / "loans.csv").write_text(f"{text}too,few\n")
    return place


def tables_of(place: Path, rule: str) -> dict[str, pa.Table]:
    """What is written up to the decisions."""
    keep = {
        "source__keep": "{purpose: [buy, refinance]}",
        "refusals__keep": rule,
        "columns__amount__bounds": "[0, 400]",
    }
    parts: dict[str, list[pa.Table]] = {}
    for step in plan(spec_of(place, protected=f"[{RACE}, {BOTH}]", model="{kind: none}", **keep)).steps[:3]:
        read = [pa.concat_tables(parts.get(t.name) or [t.empty()]) for t in step.stage.reads]
        made = step.stage.function(*read, settings=step.settings)
        kept, rows, *_ = hold(step.stage, made, made.rows_in if made.rows_in is not None else read[0].num_rows)
        for name, table in {**kept, "refusals": rows}.items():
            parts.setdefault(name, []).append(table)
    return {name: pa.concat_tables(each) for name, each in parts.items()}


def crowd_of(place: Path, tables: dict[str, pa.Table]) -> Crowd:
    told = SourceTables(*(tables[t.name] for t in (APPLICATIONS, MEMBERSHIPS, REFUSALS, REFUSAL_COUNTS)))
    protected = spec_of(place, protected=f"[{RACE}, {BOTH}]").protected
    return Crowd.of(told, tables["decisions"], protected, FEATURES)


def said(crowd: Crowd) -> list[Any]:
    people = crowd.people(LACKS)
    arrays = [people.columns, *(each.codes for each in people.attributes), people.bases, people.events, people.weights]
    plain = [{k: v.tolist() for k, v in each.items()} if isinstance(each, dict) else each.tolist() for each in arrays]
    return [plain, crowd.lines, [each.groups for each in people.attributes], list(map(crowd.readable, crowd.lines))]


@pytest.mark.long
def test_every_rule_counts_the_same_people(many: Path) -> None:
    tables = {rule: tables_of(many, rule) for rule in ("all", "sample", "counts")}
    rows = {rule: each["refusals"].num_rows for rule, each in tables.items()}
    lines = crowd_of(many, tables["all"]).lines
    assert len({line[0] for line in lines}) == 2
    assert ("ingest", "failed_expectation", "amount") in lines
    assert rows["all"] > 400
    assert rows["sample"] <= 5 * len(lines)
    assert rows["counts"] == 0
    whole = said(crowd_of(many, tables["all"]))
    assert sum(whole[0][-1]) == 1001
    assert said(crowd_of(many, tables["sample"])) == whole
    assert said(crowd_of(many, tables["counts"])) == whole


def test_counts_of_another_run_are_found_out(many: Path) -> None:
    tables = tables_of(many, "sample")
    tables["refusal_counts"] = tables["refusal_counts"].slice(0, tables["refusal_counts"].num_rows - 8)
    with pytest.raises(IntegrityError, match="refusal_counts"):
        crowd_of(many, tables)
