"""Files whose columns have types: Stata, SAS, SPSS, Feather, and Parquet under an intake."""

import io
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from schemas.audit.intake import Intake
from schemas.audit.source import Source
from schemas.errors import DataQualityError, EvenhandError
from tasks.ingest.sources import binary_reader, files
from tasks.ingest.sources.door import Described, describe

FRAME = pd.DataFrame(
    {
        "id": [f"A{i}" for i in range(40)],
        "outcome": [i % 3 for i in range(40)],
        "income": [np.nan if i == 5 else 1000.5 * i for i in range(40)],
        "score": [float(i % 4 + 96) for i in range(40)],
        "day": [date(2023, 1, 1 + i % 28) for i in range(40)],
    }
)
LABELS = {"outcome": {0: "approved", 1: "denied", 2: "withdrawn"}}
ABOUT = ["Application", "What became of it", "Income in a year", "Score", "Day"]


def described(path: Path) -> tuple[Described, dict[str, list[str]]]:
    found = describe(path)
    raw = files.read(found.source, found.columns)
    assert found.rows == raw.table.num_rows
    return found, raw.table.to_pydict()


def test_stata_gives_labels_and_missing_values(tmp_path: Path) -> None:
    frame = FRAME.assign(score=["a" if i == 0 else i for i in range(40)])
    pyreadstat.write_dta(
        frame,
        str(tmp_path / "x.csv"),
        variable_value_labels=LABELS,
        column_labels=ABOUT,
        missing_user_values={"score": ["a"]},
    )
    found, cells = described(tmp_path / "x.csv")
    assert (found.source.kind, found.rows, found.columns) == ("stata", 40, tuple(FRAME))
    assert cells["outcome"][:3] == ["approved", "denied", "withdrawn"]
    assert (cells["income"][4:6], cells["day"][0]) == (["4002", ""], "2023-01-01")
    assert cells["score"][:2] == ["", "1"]
    assert found.labels["outcome"] == "What became of it"


def test_numbers_of_four_bytes_keep_their_digits(tmp_path: Path) -> None:
    FRAME.drop(columns="day").assign(income=np.array([14.1] * 40, np.float32)).to_stata(
        tmp_path / "x.dta", write_index=False
    )
    _, cells = described(tmp_path / "x.dta")
    assert set(cells["income"]) == {"14.1"}


def test_spss_leaves_out_what_its_user_declared_missing(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        FRAME,
        str(tmp_path / "x.sav"),
        variable_value_labels=LABELS,
        column_labels=ABOUT,
        missing_ranges={"score": [99, {"lo": 200, "hi": 999}]},
    )
    found, cells = described(tmp_path / "x.sav")
    assert (found.source.kind, cells["score"][:4]) == ("spss", ["96", "97", "98", ""])
    assert (cells["outcome"][:3], found.labels["id"]) == (["approved", "denied", "withdrawn"], "Application")


def test_a_transport_file_of_sas(tmp_path: Path) -> None:
    pyreadstat.write_xport(FRAME.drop(columns="day"), str(tmp_path / "x.xpt"), column_labels=ABOUT[:4])
    found, cells = described(tmp_path / "x.xpt")
    assert (found.source.kind, found.rows, cells["income"][4:6]) == ("sas", 40, ["4002", ""])
    content = (tmp_path / "x.xpt").read_bytes()
    (tmp_path / "cut.xpt").write_bytes(content[:-30])
    with pytest.raises(DataQualityError, match="was cut short"):
        describe(tmp_path / "cut.xpt")


def test_without_pyreadstat_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(binary_reader.LibraryError, match=r"need pyreadstat: pip install 'evenhand\[stats\]'"):
        binary_reader.libraries("stata")


TYPED = {
    "money": (pa.array([Decimal("102817.50"), None], pa.decimal128(12, 2)), ["102817.50", ""]),
    "flag": (pa.array([True, False]), ["true", "false"]),
    "race": (pa.array(["White", None]).dictionary_encode(), ["White", ""]),
    "zone": (
        pa.array([datetime(2023, 1, 5, 3), None], pa.timestamp("us", "America/New_York")),
        ["2023-01-04T22:00:00", ""],
    ),
    "midnight": (pa.array([datetime(2023, 1, 5), datetime(2023, 1, 5, 9, 30)]), ["2023-01-05", "2023-01-05T09:30:00"]),
    "fraction": (pa.array([datetime(2023, 1, 5, 1, 2, 3, 500_000)] * 2), ["2023-01-05T01:02:03.500000"] * 2),
    "day": (pa.array([date(2023, 1, 5)] * 2), ["2023-01-05"] * 2),
    "day64": (pa.array([date(2023, 1, 5)] * 2, pa.date64()), ["2023-01-05"] * 2),
    "nan": (pa.array([float("nan"), -0.0]), ["", "0"]),
    "whole": (pa.array([1e15, 5.0]), ["1000000000000000", "5"]),
    "small": (pa.array([1.5e-7, 2.5e22]), ["0.00000015", "25000000000000000000000"]),
    "single": (pa.array([0.1, 14.2], pa.float32()), ["0.1", "14.2"]),
    "half": (pa.array(np.array([0.5, np.nan], np.float16)), ["0.5", ""]),
    "large": (pa.array([2**63, 1], pa.uint64()), [str(2**63), "1"]),
    "bytes": (pa.array([b"x", None]), ["x", ""]),
    "null": (pa.nulls(2), ["", ""]),
}
NESTED = {
    "list": pa.array([[1], [2]]),
    "record": pa.array([{"a": 1}] * 2),
    "map": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_types_become_text_and_nested_columns_are_left_out(tmp_path: Path, kind: str) -> None:
    table = pa.table({name: column for name, (column, _) in TYPED.items()} | NESTED)
    if kind == "parquet":
        table = table.set_column(table.column_names.index("half"), "half", table["half"].cast(pa.float32()))
        pq.write_table(table, tmp_path / "x.csv")
    else:
        pyarrow.feather.write_feather(table, tmp_path / "x.csv")
    found, cells = described(tmp_path / "x.csv")
    assert found.source.kind == kind
    assert cells == {name: expected for name, (_, expected) in TYPED.items()}
    assert set(found.nested) == set(NESTED)
    assert [(evidence.what, evidence.certain) for evidence in found.evidence] == [("nested", True)]


def test_parquet_without_an_intake_reads_as_before(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [float("nan"), 1e15], "at": [datetime(2023, 1, 5)] * 2}), tmp_path / "x.parquet")
    source = Source(kind="parquet", path=str(tmp_path / "x.parquet"))
    assert files.read(source, ["x", "at"]).table.to_pydict() == {
        "x": ["nan", "1e+15"],
        "at": ["2023-01-05 00:00:00.000000"] * 2,
    }
    read = files.read(source.model_copy(update={"intake": Intake()}), ["x", "at"]).table.to_pydict()
    assert read == {"x": ["", "1000000000000000"], "at": ["2023-01-05"] * 2}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_names_are_made_usable(tmp_path: Path, kind: str) -> None:
    table = pa.table({" Income  ($) ": [1, 2], "": ["x", "y"], "Income ($)": [3, 4]})
    write = pq.write_table if kind == "parquet" else pyarrow.feather.write_feather
    write(table, tmp_path / "x")
    found, cells = described(tmp_path / "x")
    assert cells == {"Income ($)": ["1", "2"], "column_2": ["x", "y"], "Income ($)_2": ["3", "4"]}
    assert found.labels["Income ($)_2"] == "Income ($)"


def written(kind: str) -> bytes:
    sink = io.BytesIO()
    if kind == "feather":
        pyarrow.feather.write_feather(FRAME, sink, compression="lz4")
        return sink.getvalue()
    raise ValueError(kind)


def damaged(content: bytes, seed: int) -> bytes:
    """Some bytes of the head or of the whole are others."""
    rng, out = random.Random(seed), bytearray(content)
    for _ in range(4):
        out[rng.randrange(min(len(out), 2000 if seed % 2 else len(out)))] = rng.randrange(256)
    return bytes(out)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dta", "sav", "xpt", "feather"])
def test_damaged_files_end_as_one_sentence(tmp_path: Path, kind: str) -> None:
    writers: dict[str, Any] = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}
    if kind == "feather":
        content = written("feather")
    else:
        writers[kind](FRAME, str(tmp_path / "sound"))
        content = (tmp_path / "sound").read_bytes()
    messages: list[str] = []
    for at, part in enumerate(
        [content[: len(content) * 2 // 3], content[:40], *(damaged(content, i) for i in range(8))]
    ):
        path = tmp_path / f"{at}.{kind}"
        path.write_bytes(part)
        try:
            found = describe(path)
            files.read(found.source, found.columns)
        except EvenhandError as error:
            messages.append(str(error))
    assert all(f".{kind}" in message for message in messages)
    assert len(messages) > 1


def test_a_feather_bomb_is_stopped(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(pa.table({"x": ["y" * 1000] * 120_000}), tmp_path / "x.feather", compression="zstd")
    with pytest.raises(DataQualityError, match="more than 200 times its size"):
        described(tmp_path / "x.feather")
