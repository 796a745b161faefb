"""The place of the table in a list of records: its width, its header, its rows, and what is above and below them.

Pure: records in, places out. A record is a list of cells; one without cells is blank and counts for nothing. Reading
files and cutting lines into cells: ``door``.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

Cells = Sequence[str]

FOOT_WORDS: Final = frozenset(
    (
        *("total", "totals", "subtotal", "sum", "average", "mean", "end", "source", "sources", "note", "notes"),
        *("generated", "grand", "records", "footer", "overall"),
        *("gesamt", "gesamtsumme", "summe", "insgesamt", "durchschnitt", "mittelwert", "ende", "quelle", "anmerkung"),
        *("totaux", "somme", "moyenne", "fin", "ensemble"),
        *("suma", "promedio", "media", "fuente"),
        *("totais", "soma", "média", "fim", "fonte"),
        *("totale", "totali", "somma", "fine"),
        *("totaal", "som", "gemiddelde", "einde", "bron"),
        *("razem", "suma", "ogółem", "średnia", "koniec", "źródło", "łącznie"),
        *("toplam", "ortalama", "son", "kaynak"),
        *("totalt", "summa", "medelvärde", "slut", "källa"),
        *("合計", "総計", "小計", "平均", "出典", "終了"),
        *("合计", "总计", "小计", "来源", "结束"),
        *("합계", "총계", "소계", "평균", "출처", "끝"),
        *(
            "i alt",
            "ialt",
            "sum",
            "kilde",
            "yhteensä",
            "keskiarvo",
            "lähde",
            "celkem",
            "součet",
            "zdroj",
            "jumlah",
            "sumber",
        ),
        *("итого", "всего", "сумма", "среднее", "конец", "источник", "примечание"),
    )
)
"""First words of a record that is no row: totals, means, ends and sources, in the languages that tables come in."""
_UNPARTED: Final = tuple(word for word in FOOT_WORDS if ord(word[0]) >= 0x3000)
"""Those of languages that put no blanks between words."""

MOST_HEADERS: Final = 3
"""Records that may stand one below the other as a header."""
MOST_FOOT: Final = 50
"""Records at the end that may be no rows."""
_WIDE: Final = 4
"""Columns of a table in which a record with one cell is no row."""
_LOOKED_AT: Final = 40
"""Records in which the first row has to be."""
_BODY: Final = 2_000
"""Rows by which cells are judged."""
_MOST: Final = 0.8
"""Share of the cells of a column that make its type."""
_FULL: Final = 0.95
"""Share of the cells that are there, of a column that is hardly ever empty."""
_VALUES: Final = 50
"""Different texts of a column of categories."""
_NO_VALUE: Final = frozenset(("na", "n/a", "nan", "null", "none", "-", "--", ".", "?", "nil", "#n/a", "dk", "unknown"))
_NUMBER: Final = re.compile(r"[^\w(+-]*[A-Za-z]{0,3}[^\w]*[(+-]?\s*\d[^A-Za-z]*[A-Za-z. %]{0,9}\)?")
"""A number, an amount with its currency or unit, or a date."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_CODE: Final = re.compile(r"[A-Za-z]{1,4}[-_ /.]?[A-Za-z0-9_/.-]*\d[\w/.-]*")


@dataclass(frozen=True)
class Layout:
    """Where the table lies among the records; numbers count from 0 and leave out blank records."""

    width: int
    """Cells of a row."""
    header: int | None
    """The record that names the columns."""
    beside: tuple[int, ...]
    """Other records that name them, too: short names above the header, or long ones below it."""
    first: int
    """The first row."""
    last: int
    """The last row."""
    coverage: float
    """Share of the records that have that width."""
    judges: "tuple[Judge, ...]"
    """What the cells of each column are like."""


def laid_out(records: Sequence[Cells]) -> Layout | None:
    """Where the table lies; None where no two records that follow each other have as many cells, and several."""
    width = _width(records)
    if width < 2:
        return None
    fitting = [i for i, record in enumerate(records) if len(record) == width]
    block = [records[i] for i in fitting]
    judges = _judges(block[min(MOST_HEADERS, len(block) // 2) :][:_BODY], width)
    alone = 1 if width >= _WIDE else 0  # a title may look like a value of the first column: `2023년 채용 결과`
    first = next(
        (
            at
            for at, record in enumerate(block[:_LOOKED_AT])
            if likeness(record, judges) > 0 and sum(bool(cell.strip()) for cell in record) > alone
        ),
        None,
    )
    header, beside = _header(block, first, judges)
    opening = first if first is not None else 0 if header is None else header + 1
    last = len(records) - 1 - foot_of(records, width, judges)
    last = max((i for i in fitting if i <= last), default=len(records) - 1)
    return Layout(
        width,
        None if header is None else fitting[header],
        tuple(fitting[i] for i in beside),
        fitting[min(opening, len(fitting) - 1)],
        last,
        len(fitting) / len(records),
        judges,
    )


def _width(records: Sequence[Cells]) -> int:
    """Cells of the longest run of records that have as many; 0 where no two that follow each other do."""
    longest, width, run = 1, 0, 0
    for i, record in enumerate(records):
        run = run + 1 if i and len(record) == len(records[i - 1]) else 1
        if run > longest and len(record) > 1:
            longest, width = run, len(record)
    return width if longest > 1 else 0


@dataclass(frozen=True)
class Judge:
    """What the cells of a column are like."""

    shape: str
    """year, number, code or text, of most cells that are there; nothing where there is none."""
    values: Counter[str]
    """How often each text occurs; empty where nearly all differ."""
    full: bool
    """Whether hardly any cell is empty."""

    def of(self, cell: str) -> int:
        """1 for a cell like those of a row, -1 for one like those of a header, 0 for one that could be both."""
        text = cell.strip()
        if not text or text.casefold() in _NO_VALUE:
            return 0
        if self.values.get(text, 0) > 1:
            return 1
        if self.shape != "text":
            shape = shape_of(text)
            return 0 if (shape, self.shape) == ("year", "number") else 1 if shape == self.shape else -1
        return -1 if self.values else 0


def _judges(rows: Sequence[Cells], width: int) -> tuple[Judge, ...]:
    judges = []
    for i in range(width):
        present = [text for row in rows if len(row) == width and (text := row[i].strip())]
        shapes = Counter(map(shape_of, (text for text in present if text.casefold() not in _NO_VALUE)))
        shape, times = shapes.most_common(1)[0] if shapes else ("", 0)
        counts = Counter(present)
        few = len(counts) <= min(_VALUES, max(len(present) // 2, 1))
        if shape == "year" and times < _MOST * shapes.total():
            shape = "number"
        times += shapes["year"] if shape == "number" else 0
        steady = times >= _MOST * shapes.total()
        judges.append(
            Judge(shape if steady else "text", counts if few else Counter(), len(present) >= _FULL * len(rows))
        )
    return tuple(judges)


def shape_of(text: str) -> str:
    """What a text is like: a year; a number, an amount or a date; a code of letters and digits; or any other text."""
    text = unicodedata.normalize("NFKC", text).strip()
    if _YEAR.fullmatch(text):
        return "year"
    if _NUMBER.fullmatch(text):
        return "code" if text[0].isascii() and text[0].isalpha() and " " not in text and len(text) < 30 else "number"
    return "code" if _CODE.fullmatch(text) else "text"


def likeness(record: Cells, judges: Sequence[Judge]) -> int:
    """How much more a record is like a row, above 0, or like a header, below it."""
    return sum(judge.of(cell) for judge, cell in zip(judges, record, strict=False))


def _header(block: Sequence[Cells], first: int | None, judges: Sequence[Judge]) -> tuple[int | None, tuple[int, ...]]:
    """The record that names the columns, and others that could."""
    if first is None:
        full = [i for i, record in enumerate(block[:_LOOKED_AT]) if _names_columns(record)]
        return (full[0] if full else None), ()
    candidates: list[int] = []
    above = [i for i in range(first - 1, -1, -1) if any(cell.strip() for cell in block[i])]
    units = [i for i in above[:1] if _is_units(block[i], judges)]
    for i in above[len(units) :][:MOST_HEADERS]:
        if not _names_columns(block[i]):
            break
        candidates.append(i)
    if not candidates:
        return None, ()
    # Words of two letters or more: names of columns have more of them than their codes, such as X1.
    words = {i: sum(len(re.findall(r"[^\W\d_]{2,}", cell)) for cell in block[i]) for i in candidates}
    best = max(candidates, key=lambda i: (words[i], i))
    return best, tuple(sorted(i for i in (*candidates, *units) if i != best))


def _is_units(record: Cells, judges: Sequence[Judge]) -> bool:
    """Whether a record holds units of some columns of numbers, and nothing else: `USD`, `%`, `years`."""
    present = [(judge, cell) for judge, cell in zip(judges, record, strict=True) if cell.strip()]
    of_numbers = all(judge.shape == "number" for judge, _ in present)
    return 2 * len(present) < len(record) and of_numbers and any(judge.of(cell) < 0 for judge, cell in present)


def _names_columns(record: Cells) -> bool:
    """Whether at least half of the cells are filled, and most of those differ."""
    present = [cell.strip() for cell in record if cell.strip()]
    return 2 * len(present) >= len(record) and 2 * len(set(present)) > len(present)


def foot_of(records: Sequence[Cells], width: int, judges: Sequence[Judge]) -> int:
    """How many records at the end are no rows; none where that would be more than a foot has."""
    count = 0
    for record in reversed(records[-MOST_FOOT - 1 :]):
        if not (_is_wide_foot(record, judges) if len(record) == width else _is_other_foot(record, judges)):
            break
        count += 1
    return count if count <= MOST_FOOT else 0


def _is_wide_foot(record: Cells, judges: Sequence[Judge]) -> bool:
    """Whether a record as wide as a row is a total, an end or a source, or has no id and half of its cells."""
    present = [(i, cell.strip()) for i, cell in enumerate(record) if cell.strip()]
    gaps = sum(judge.full and not cell.strip() for judge, cell in zip(judges, record, strict=True))
    if not present:
        return True
    if not record[0].strip() and judges[0].full and 2 * len(present) <= len(record) and gaps > 1:
        return True
    at, text = present[0]
    if not says_foot(text) or judges[at].values.get(text, 0) > 1:
        return False
    return gaps > 0 or judges[at].of(text) < 0


def _is_other_foot(record: Cells, judges: Sequence[Judge]) -> bool:
    """Whether a record of another width is no row that lost or gained cells."""
    present = [cell for cell in record if cell.strip()]
    if not present or says_foot(present[0]):
        return True
    return 2 * len(present) <= len(judges) and judges[0].of(record[0]) <= 0 and likeness(record, judges) <= 0


def says_foot(text: str) -> bool:
    """Whether a text begins as a total, an end or a source does."""
    words = re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text).casefold())
    first = {words[0], " ".join(words[:2])} if words else set[str]()
    return bool(first & FOOT_WORDS) or (bool(words) and words[0].startswith(_UNPARTED))


# --------------------------------------------------------------------------------------------------------------------
# Names of columns as they are used, made of those that a header gives.


def usable_names(names: Iterable[str]) -> list[str]:
    """The names trimmed, with one kind of blank and of letters, no two equal; an empty one is the number of its place.

    The second ``income`` is ``income_2``, and an empty seventh name is ``column_7``.
    """
    parted = ("".join(" " if c.isspace() or c in "\u200b\ufeff\u2060" else c for c in name).split() for name in names)
    cleaned = [
        unicodedata.normalize("NFC", " ".join(words)) or f"column_{i}" for i, words in enumerate(parted, start=1)
    ]
    usable: list[str] = []
    spelled, used = set(cleaned), set[str]()
    for name in cleaned:
        best, number = name, 2
        while best in used or (best != name and best in spelled):
            best, number = f"{name}_{number}", number + 1
        used.add(best)
        usable.append(best)
    return usable


def numbered_names(width: int) -> tuple[str, ...]:
    """Names of columns that a file does not name: column_01, column_02, ..."""
    digits = len(str(width))
    return tuple(f"column_{i:0{digits}}" for i in range(1, width + 1))
