"""JSON lines and arrays of objects: values as text, in the digits of the file."""

from pathlib import Path

import pytest

from schemas.errors import DataQualityError
from tasks.ingest.sources import files
from tasks.ingest.sources.door import Described, describe


def described(place: Path, content: str | bytes) -> tuple[Described, dict[str, list[str]], list[int]]:
    (place / "loans.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    found = describe(place / "loans.csv")
    raw = files.read(found.source, found.columns)
    assert found.source.kind == "jsonl"
    assert found.rows == raw.table.num_rows + len(raw.unread)
    return found, raw.table.to_pydict(), [row.row for row in raw.unread]


def test_values_are_text_in_their_own_digits(tmp_path: Path) -> None:
    _, cells, _ = described(
        tmp_path,
        '{"id": 12345678901234567890123, "x": 1.50, "flag": true, "name": "Pe\\u00f1a", "none": null}\n'
        '{"x": 1e5, "id": -0, "flag": false, "late": "z", "x2": NaN}\r\n'
        '{"id": 7}\n',
    )
    assert cells == {
        "id": ["12345678901234567890123", "-0", "7"],
        "x": ["1.50", "1e5", ""],
        "flag": ["true", "false", ""],
        "name": ["Peña", "", ""],
        "none": ["", "", ""],
        "late": ["", "z", ""],
        "x2": ["", "", ""],
    }


def test_lines_that_are_no_object_are_malformed_rows(tmp_path: Path) -> None:
    lines = ['{"a": 1, "b": 2}', '{"a": 1, "b": }', '{"a": 2, "a": 3}', "", '{"a": 4}', '{"a": ' + "[" * 9000 + "}"]
    _, cells, malformed = described(tmp_path, "\n".join([*lines, *['{"a": 5}'] * 30]))
    assert (cells["a"][:3], malformed) == (["1", "4", "5"], [2, 3, 5])


def test_nested_keys_are_left_out_and_odd_names_are_made_usable(tmp_path: Path) -> None:
    found, cells, _ = described(tmp_path, '{" a ": 1, "": "x", "l": null, "o": {"z": 1}}\n{"l": [1], "o": 2}\n')
    assert cells == {"a": ["1", ""], "column_2": ["x", ""]}
    assert (found.nested, dict(found.labels)) == (("l", "o"), {"a": " a ", "column_2": ""} | {})


def test_an_array_of_objects_is_a_table_too(tmp_path: Path) -> None:
    found, cells, malformed = described(tmp_path, '[{"a": 1, "b": "x"},\n {"a": 2},\n 3]\n')
    assert (found.rows, cells, malformed) == (3, {"a": ["1", "2"], "b": ["x", ""]}, [3])


ROWS = '[{"a": 1.50, "b": "x"}, {"a": 2}, 3]'


@pytest.mark.parametrize(
    "content",
    [
        '{"data": ' + ROWS + "}",
        '{\n  "status": "ok",\n  "notes": [],\n  "codes": [1, 2],\n  "records":\n  ' + ROWS + "\n}\n",
        '\ufeff{"count": 3, "result": {"fields": ["a", "b"], "records": ' + ROWS + "}}\n",
        '{"data": [\n{"a": 1.50, "b": "x"},\n{"a": 2},\n3\n]}',
    ],
)
def test_an_array_of_objects_in_one_object_is_a_table_too(tmp_path: Path, content: str) -> None:
    whole, cells, malformed = described(tmp_path, content)
    assert (whole.rows, cells, malformed) == (3, {"a": ["1.50", "2"], "b": ["x", ""]}, [3])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": [{"x": 1}], "b": [{"y": 1}]}', r"2 arrays of objects \(a, b\); expected one"),
        ('{"meta": {"columns": ["x"]}, "data": [[1], [2]]}', "no object with plain values"),
        ('[{"a": 1', "could not be read as JSON"),
        ("[{" + '"a":[' * 100_000, "could not be read as JSON"),
        ('{"a": {"b": 1}}\n', "no object with plain values"),
        ('{"a": "' + "x" * 17_000_000 + '"}\n', "is longer than 16 MB"),
        ("{" + ",".join(f'"{i}": 1' for i in range(10_001)) + "}\n", "more than 10,000 keys"),
        (b'{"a": 1, "b": "\xff"}\n' * 3, "no object with plain values"),
    ],
    ids=["two", "rows of arrays", "cut", "deep", "nested alone", "long", "wide", "no UTF-8"],
)
def test_what_is_no_table_is_named(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(DataQualityError, match=words):
        described(tmp_path, content)


def test_a_table_whose_first_cells_are_in_braces_is_no_json(tmp_path: Path) -> None:
    rows = "".join(f"{{3F2504E0-4F89-11D3-9A0C-{i:012X}}},{i}\n" for i in range(30))
    (tmp_path / "loans.csv").write_text(f"guid,income\n{rows}")
    found = describe(tmp_path / "loans.csv")
    assert (found.source.kind, found.rows) == ("csv", 30)
