"""Random tables: every column is a feature or has a reason, every guess has a question, and rows add up."""

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import lines, questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.spec_text import text
from schemas.audit.file import parse
from tasks.pipeline.registry import read_spec

CERTAIN = {"id", "constant", "date", "year", "copy", "protected", "reserved"}
"""Reasons that need no question; that of people is in the question about protected attributes."""
Cells = Callable[[random.Random, int], list[str]]


def picked(*values: str) -> Cells:
    return lambda rng, n: rng.choices(values, k=n)


def drawn(form: Callable[[random.Random], str]) -> Cells:
    return lambda rng, n: [form(rng) for _ in range(n)]


COLUMNS: dict[str, Cells] = {
    "Income": drawn(lambda r: f"${r.randint(9, 400)},{r.randint(100, 999)}"),
    "Score": drawn(lambda r: r.choice(("", str(r.randint(300, 850)), "-999"))),
    "Ratio": drawn(lambda r: f"{r.uniform(0, 1):.3f}".replace(".", ",")),
    "Volume": drawn(lambda r: f"{r.randint(100, 999)}.{r.randint(100, 999)}"),
    "Loan No": lambda rng, n: [f"{rng.randrange(10**6):06d}{i}" for i in range(n)],
    "Opened": drawn(lambda r: f"{r.randint(1, 28):02d}/{r.randint(1, 12):02d}/2023"),
    "Band": picked("<20%", "20%-30%", ">30%", "99"),
    "Race": picked("White", "WHITE", "Black", "Asian ", "Declined to answer", ""),
    "Sexe": picked("H", "F", "X"),
    "Age": drawn(lambda r: str(r.randint(18, 90))),
    "Nationality": picked("US", "MX", "CA"),
    "Religion": picked("A", "B"),
    "Marital status": picked("single", "married"),
    "Interest rate": drawn(lambda r: r.choice(("", f"{r.uniform(2, 9):.2f}%"))),
    "Loan status": picked("Fully Paid", "Charged Off", ""),
    "Notes": drawn(lambda r: " ".join(r.choice("abcdefgh") * 3 for _ in range(r.randint(4, 9)))),
    "wgt": drawn(lambda r: f"{r.uniform(0.2, 4):.3f}"),
    "Branch": picked("North", "South", "Nroth"),
    "ZIP": drawn(lambda r: f"{r.randrange(90000, 90090):05d}"),
    "Kind": picked("1", "2", "3"),
    "Empty": picked(""),
    "Same": picked("x"),
    "Mostly": drawn(lambda r: r.choice(("", "", "", str(r.randint(1, 99))))),
    "Cost": drawn(lambda r: r.choice((f"${r.randint(1, 99)}", f"€{r.randint(1, 99)}"))),
    "JSON": drawn(lambda r: f'{{"k": {r.randint(1, 9)}}}'),
    "Prüfung": drawn(lambda r: f"{r.uniform(1, 5):.1f}"),
    "収入": drawn(lambda r: f"{r.randint(100, 999)}万円"),
}
DECISIONS = (
    ("Decision", ("Approved", "Denied", "Withdrawn")),
    ("Entscheidung", ("bewilligt", "abgelehnt", "storniert")),
    ("bad_flag", ("0", "1")),
    ("審査結果", ("承認", "否決")),
    ("Outcome", ("Hired", "Rejected", "Purple")),
    ("kredit", ("0", "1")),
)


def written(seed: int, place: Path) -> Path:
    """A table of random columns in a random order and form."""
    rng = random.Random(seed)
    rows = rng.choice((12, 60, 150))
    names = rng.sample(list(COLUMNS), rng.randint(2, 14))
    name, values = rng.choice(DECISIONS)
    cells = {n: COLUMNS[n](rng, rows) for n in names}
    cells[name] = rng.choices(values, k=rows)
    order = rng.sample(list(cells), len(cells))
    path = place / f"t{seed}.csv"
    with path.open("w", newline="", encoding=rng.choice(("utf-8", "utf-8-sig", "utf-16"))) as file:
        writer = csv.writer(file, delimiter=rng.choice(",;\t|"))
        writer.writerow(order)
        body = list(zip(*(cells[n] for n in order), strict=True))
        writer.writerows([*body, *body[: rng.choice((0, 0, 3))]])
    return path


def holds(path: Path) -> None:
    """What every draft keeps."""
    draft = drafted(read_file(File(path)))
    names = {entry.name for entry in draft.entries} | {draft.decision_column} - {""}
    assert names == set(draft.table.names)
    assert all(entry.why for entry in draft.entries)
    asked = questions(draft)
    keys = {key for question in asked for key in question.keys}
    for entry in draft.entries:
        if entry.reason and entry.reason not in CERTAIN:
            assert f"columns.{entry.name}" in keys, (entry.name, entry.why)
        if not entry.reason and entry.doubt:
            assert f"columns.{entry.name}" in keys, (entry.name, entry.doubt)
    assert len(lines(asked)) <= 12
    rows_add_up(draft)
    written_spec = text(draft)
    assert {mark.key for mark in parse(written_spec).marks if mark.key.startswith("columns.")} <= keys
    if draft.is_whole:
        read_spec(written_spec, path.name)


def rows_add_up(draft: Draft) -> None:
    table = draft.table
    if draft.decision is not None:
        sides = sum(sum(draft.of_side(side).values()) for side in ("favourable", "unfavourable", "neither"))
        assert sides + int(table.columns[draft.decision_column].absent.sum()) == table.rows
    for attribute in draft.attributes:
        column = table.columns[attribute.column]
        if not attribute.bands:
            nobody = sum(column.values.get(value, 0) for value in attribute.nobody)
            assert sum(attribute.rows.values()) + nobody + attribute.missing == table.rows
        else:
            assert sum(attribute.rows.values()) + attribute.missing == table.rows


@pytest.mark.parametrize("seed", range(10))
def test_no_column_is_left_out_in_silence(seed: int, tmp_path: Path) -> None:
    holds(written(seed, tmp_path))


@pytest.mark.long
def test_no_column_of_300_tables_is_left_out_in_silence(tmp_path: Path) -> None:
    for seed in range(300):
        holds(written(seed, tmp_path))


@pytest.mark.slow
def test_a_wide_table_is_drafted_in_ten_seconds(tmp_path: Path) -> None:
    from time import process_time

    rng = random.Random(1)
    cells = {f"attr_{j:04d}": [str(rng.randint(0, 4 if j % 2 else 9999)) for _ in range(150)] for j in range(800)}
    cells |= {"Race": rng.choices(("White", "Black"), k=150), "Decision": rng.choices(("Approved", "Denied"), k=150)}
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(cells), *zip(*cells.values(), strict=True)])
    start = process_time()
    draft = drafted(read_file(File(path)))
    text(draft)
    assert process_time() - start < 10
    assert len(draft.features) > 200
    assert "features" in {question.key for question in questions(draft)}
