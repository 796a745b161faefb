"""Dates as people write them: the formats of a column, whether day or month is first, and a cell as an ISO date.

Day or month first is proven by a number above 12 in the column, else by other columns of the file, else by its commas
and currencies; what nothing proves is a question.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.audit.intake import EXCEL, ColumnRecipe
from tasks.ingest.intake.codes import ZERO_DATES
from tasks.ingest.intake.folding import plain_digits
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.numbers import NumberGuess
from tasks.ingest.intake.units import CURRENCIES, name_words

_EPOCH, _SERIALS = date(1899, 12, 30), range(20_000, 60_001)
_DAYS: Final = 31
_LEAST_SERIAL: Final = 1_000
"""Of a date of birth, in 1902: below it are ages."""
_YEARS: Final = range(1900, 2101)
OLDEST: Final = 120
"""Years of an age that a person can have."""
_LENGTHS: Final = frozenset(((4, 1), (4, 2), (1, 4), (2, 4), (1, 2), (2, 2)))
"""Of the first and the last number of a date: one of them is the year."""
_LEAST_SHARE, _LEAST_VOICE, _LONGEST = 0.95, 0.01, 60
_SAMPLES: Final = (40, 500)
"""Texts of a column after which it holds no dates where fewer than a quarter of them are one."""
_PIVOT: Final = 69
"""Two digits from here on are a year of the last century, as in POSIX."""

_MONTHS: Final = """
jan january janv janvier januar jänner jän enero ene janeiro gennaio gen januari styczeń stycznia sty ocak oca \
tammikuu tammikuuta leden ledna января январь янв
feb february peb pebruari févr fév fevr février fevrier februar febrero fevereiro fev febbraio februari luty lutego \
lut şubat şub helmikuu helmikuuta únor února февраля февраль фев
mar march mars märz mär mrz marzo março marco maart mrt marzec marca mart \
marts maaliskuu maaliskuuta březen března марта март maret
apr april avr avril abril abr aprile kwiecień kwietnia kwi nisan nis huhtikuu huhtikuuta duben dubna апреля апрель апр
may mai mayo maio maggio mag mei maj maja mayıs toukokuu toukokuuta květen května мая май
jun june juin juni junio junho giugno giu czerwiec czerwca cze haziran haz kesäkuu kesäkuuta červen června июня июнь июн
jul july juil juillet juli julio julho luglio lug lipiec lipca lip temmuz tem \
heinäkuu heinäkuuta červenec července июля июль июл
aug august août aout agosto ago augustus augusti sierpień sierpnia sie ağustos ağu \
elokuu elokuuta srpen srpna августа август авг agustus agu agt
sep sept september septembre septiembre setiembre setembro set settembre wrzesień września wrz eylül eyl \
syyskuu syyskuuta září сентября сентябрь сен сент
oct october octobre oktober okt octubre outubro out ottobre ott październik października paź ekim eki \
lokakuu lokakuuta říjen října октября октябрь окт
nov november nop nopember novembre noviembre novembro listopad listopada lis kasım kas \
marraskuu marraskuuta listopadu ноября ноябрь ноя
dec december déc décembre decembre dezember dez diciembre dic dezembro dicembre grudzień grudnia gru aralık ara \
desember des joulukuu joulukuuta prosinec prosince декабря декабрь дек
"""
"""Words for each month, of the languages of drafts that use letters."""
_FILLERS: Final = frozenset(
    (
        *(
            "of",
            "the",
            "st",
            "nd",
            "rd",
            "th",
            "er",
            "re",
            "de",
            "del",
            "di",
            "den",
            "le",
            "el",
            "il",
            "o",
            "r",
            "roku",
        ),
        *("mon", "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday", "wednesday", "thursday", "friday"),
        *("saturday", "sunday", "º", "ª"),
    )
)
_DATE_NAMES: Final = frozenset(
    (
        *("date", "dates", "dat", "dt", "day", "datum", "fecha", "data", "tarih", "tarihi", "dag", "dia", "día", "dob"),
        *("giorno", "dzień", "gün", "birth", "birthday", "born", "geburtstag", "naissance", "nacimiento", "nascimento"),
        *("dato", "päivä", "pvm", "päivämäärä", "дата", "tanggal", "tgl"),
    )
)
_DATE_STEMS: Final = ("datum", "date", "tarih", "日付", "日期", "年月日", "날짜", "일자", "生年", "申請日", "申込日")
_ERAS: Final = {"令和": 2018, "平成": 1988, "昭和": 1925, "民國": 1911, "民国": 1911, "r": 2018, "h": 1988, "s": 1925}
"""The year before the first one of an era."""

_TIME: Final = re.compile(
    r"(?:t|\s+)\s*\d{1,2}(?::\d{2}){1,2}(?:[.,]\d+)?\s*(?:[ap]\.?m\.?)?\s*(?:z|utc|gmt|[+-]\d{2}:?\d{2})?$"
)
_WEEKDAY: Final = re.compile(r"\s*\([^\d()]{1,10}\)$")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUMERIC: Final = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})", re.ASCII)
_DIGITS_AND_SIGNS: Final = re.compile(r"\d+(?:[-/.]\d+)*", re.ASCII)
_WHOLE: Final = re.compile(r"(\d+)(?:[.,]0+)?", re.ASCII)
_ERA: Final = re.compile(
    rf"({'|'.join(era for era in _ERAS if len(era) > 1)})\s*(\d+|元)\s*年(.*)|([rhs])(\d+)([-/.].*)"
)
_DIRECTIVE: Final = re.compile(r"%[a-zA-Z]")
_NAMED: Final = ("%d %b %Y", "%b %d %Y", "%Y %b %d", "%d %b %y", "%b %d %y", "%b %Y", "%b %y")
_EAST_ASIAN: Final = ("%Y年%m月%d日", "%Y년 %m월 %d일", "%Y年%m月", "%Y년 %m월")
_MONTHLY: Final = ("%Y-%m", "%m/%Y", "%Y/%m", "%m-%Y", "%m.%Y", "%Y.%m")
_COMPACT: Final = ("%Y%m%d", "%d%m%Y", "%m%d%Y", "%y%m%d", "%Y%m")
_ORDERS: Final = {"dmy": "%d{0}%m{0}%{1}", "mdy": "%m{0}%d{0}%{1}", "ymd": "%{1}{0}%m{0}%d"}
_DAY_FIRST_EXCEPT: Final = frozenset(("USD", "PHP", "CNY", "JPY", "KRW", "TWD", "HUF", "CAD"))


class Span(NamedTuple):
    """One way to read the dates of a column, the rows that it reads, and the first and the last date."""

    format: str
    rows: int
    first: str
    last: str


@dataclass(frozen=True)
class DateGuess:
    """How a column of dates is to be read, and what of it is uncertain."""

    recipe: ColumnRecipe
    question: str | None = None
    evidence: tuple[Span, ...] = ()
    dates: dict[str, int] = field(default_factory=dict)
    """ISO date -> rows."""
    unread: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        """Whether nothing is to be confirmed."""
        return self.question is None

    @property
    def years(self) -> dict[int, int]:
        """Year -> rows, the first year first."""
        years: Counter[int] = Counter()
        for day, rows in self.dates.items():
            years[int(day[:4])] += rows
        return dict(sorted(years.items()))


class _Shape(NamedTuple):
    """What cells of numeric dates have in common: the sign between the parts, the year's length and place."""

    sign: str
    year: str
    first: bool


def parse(text: str, formats: Iterable[str]) -> str | None:
    """The date of a cell in ISO form; None where it fits no format, or several with different dates.

    Formats are of dates: a time of day behind one is left out. `%b` is a month's name in any of sixteen languages, and
    `excel` a serial number of Excel. What is an ISO date stays one.
    """
    plain = _plain(text[:_LONGEST])
    if _ISO.fullmatch(plain):
        return plain if _date(int(plain[:4]), int(plain[5:7]), int(plain[8:])) else None
    days = {day for layout in formats if (day := _fitting(plain, layout)) is not None}
    return days.pop().isoformat() if len(days) == 1 else None


def born(text: str, formats: Collection[str]) -> str | None:
    """The date of birth of a cell in ISO form: as ``parse``, with serial numbers of Excel before 1954, too."""
    serial = re.fullmatch(r"(\d{4,5})(?:[.,]\d+)?", text.strip(), re.ASCII) if EXCEL in formats else None
    if serial and _LEAST_SERIAL <= int(serial[1]) < _SERIALS.stop:
        return (_EPOCH + timedelta(days=int(serial[1]))).isoformat()
    return parse(text, formats)


def age(birth: str, decided: str) -> int:
    """Whole years between two ISO dates; who is born on 29 February is a year older on 1 March of a common year."""
    return int(decided[:4]) - int(birth[:4]) - (decided[5:] < birth[5:])


def guess(
    columns: Mapping[str, Mapping[str, int]],
    numbers: Mapping[str, NumberGuess] | None = None,
    births: Collection[str] = (),
) -> dict[str, DateGuess]:
    """The columns of a file that hold dates, and how they are read.

    Args:
        columns: texts of each column with their rows.
        numbers: how its numbers are read, which tells the locale of the file.
        births: columns with dates of birth, of which no question quotes a cell.
    """
    formats = {name: layouts for name, counts in columns.items() if (layouts := _formats(name, counts)) is not None}
    proven = {order for layouts in formats.values() for order in layouts.proven}
    order, sure = _usual_order(columns, numbers or {}, proven)
    guesses = {name: _guessed(name, columns[name], layouts, order, sure) for name, layouts in formats.items()}
    return {name: _unquoted(name, day) if name in births else day for name, day in guesses.items()}


def _unquoted(name: str, day: DateGuess) -> DateGuess:
    """The guess of a column with dates of birth, which quotes none of them."""
    if day.question is None:
        return day
    parts = [f"{name}: no cell of the file proves whether the day or the month is first"] if day.evidence else []
    parts += [f"{sum(day.unread.values()):,} cells of {name} are no dates"] if day.unread else []
    return replace(day, question=f"{'; '.join(parts) or f'{name} has several orders of day and month'}.", evidence=())


@dataclass(frozen=True)
class _Formats:
    """Formats of a column that are certain, shapes with an open order, and orders that its cells prove."""

    certain: tuple[str, ...]
    open: tuple[tuple[_Shape, tuple[str, ...]], ...]
    proven: frozenset[str]
    mixed: bool


def _formats(name: str, counts: Mapping[str, int]) -> _Formats | None:
    """The formats of a column's cells; None where fewer than 95 % of them are dates."""
    present: dict[str, int] = {}
    dated = any(word in _DATE_NAMES or any(stem in word for stem in _DATE_STEMS) for word in name_words(name))
    rows_of: Counter[tuple[str, ...]] = Counter()
    shapes: dict[_Shape, dict[str, int]] = {}
    fitting = 0
    for place, (text, rows) in enumerate(counts.items()):
        if place in _SAMPLES and 4 * fitting < sum(present.values()):
            return None
        plain = _plain(text[:_LONGEST])
        if plain in ZERO_DATES or (not any(map(str.isdigit, plain)) and is_missing(text, of_numbers=True)):
            continue
        present[text] = rows
        if match := _NUMERIC.fullmatch(plain):
            first, sign, _, last = match.groups()
            if (len(first), len(last)) in _LENGTHS:
                shape = _Shape(sign, "y" if len(first) + len(last) < 5 else "Y", len(first) == 4)
                shapes.setdefault(shape, {})[plain] = shapes.get(shape, {}).get(plain, 0) + rows
                fitting += rows
            continue
        layouts = tuple(layout for layout in _further(plain, dated) if _fitting(plain, layout))
        if layouts:
            rows_of[layouts] += rows
            fitting += rows
    total = sum(present.values())
    if not total or fitting < _LEAST_SHARE * total:
        return None
    dated_rows = sum(rows_of.values())
    certain, undecided, proven, mixed = _covering(rows_of), [], set[str](), False
    for shape, cells in shapes.items():
        orders, fits, sure = _orders(shape, cells)
        dated_rows += fits
        if sure:
            certain += [_format(shape, order) for order in orders]
            proven |= {order for order in orders if len(orders) == 1} - {"ymd"}
            mixed |= len(orders) > 1
        elif orders:
            undecided.append((shape, orders))
    if dated_rows < _LEAST_SHARE * total or ("%Y%m%d" in certain and not dated and len(present) < 5):
        return None
    return _Formats(tuple(certain), tuple(undecided), frozenset(proven), mixed)


def _guessed(name: str, counts: Mapping[str, int], layouts: _Formats, order: str, sure: bool) -> DateGuess:
    chosen = [_format(shape, order if order in orders else orders[0]) for shape, orders in layouts.open]
    recipe = ColumnRecipe.model_validate({"read": "date", "format": tuple(dict.fromkeys((*layouts.certain, *chosen)))})
    questions: list[str] = []
    evidence: tuple[Span, ...] = ()
    if layouts.open and not sure:
        shape, orders = layouts.open[0]
        example = next(text for text in counts if _NUMERIC.fullmatch(_plain(text))).strip()
        words = {"dmy": "the day", "mdy": "the month", "ymd": "the year"}[order if order in orders else orders[0]]
        questions.append(f"{name}: in `{example}`, {words} is read first, which no cell of the file proves.")
        for layout in (_format(shape, order) for order in orders):
            days = [(day, rows) for text, rows in counts.items() if (day := parse(text, (layout,))) is not None]
            evidence += (Span(layout, sum(rows for _, rows in days), min(days)[0], max(days)[0]),)
    if layouts.mixed:
        questions.append(f"{name} has days first and months first: cells that fit both ways are left unread.")
    dates: dict[str, int] = {}
    unread: dict[str, int] = {}
    missing: dict[str, int] = {}
    for text, rows in counts.items():
        day = parse(text, recipe.format)
        if day is not None:
            dates[day] = dates.get(day, 0) + rows
        elif is_missing(text, of_numbers=True) or _plain(text) in ZERO_DATES:
            missing[text] = rows
        else:
            unread[text] = rows
    if unread:
        frequent = sorted(unread, key=lambda text: -unread[text])[:3]
        listed = ", ".join(f"`{text.strip()}` ({unread[text]:,} rows)" for text in frequent)
        questions.append(f"{name}: {listed} are no dates, and their rows are refused.")
    return DateGuess(recipe, " ".join(questions) or None, evidence, dates, unread, missing)


def _usual_order(
    columns: Mapping[str, Mapping[str, int]], numbers: Mapping[str, NumberGuess], proven: Collection[str]
) -> tuple[str, bool]:
    """The order of day, month and year where a column does not prove it, and whether the file does."""
    if len(proven) == 1:
        return next(iter(proven)), True
    units = {number.recipe.unit for number in numbers.values()} & CURRENCIES
    east = {"JPY", "CNY", "KRW", "TWD", "HUF"}
    if units and units <= east:
        return "ymd", True
    commas = any(number.certain and number.recipe.decimal == "," for number in numbers.values())
    foreign = any(not letter.isascii() and letter.isalpha() for name in columns for letter in name)
    if commas or foreign or (units and not units & _DAY_FIRST_EXCEPT):
        return "dmy", not proven
    return "mdy", False


def _orders(shape: _Shape, cells: Mapping[str, int]) -> tuple[tuple[str, ...], int, bool]:
    """The orders of day, month and year of cells of a shape, the rows that they read, and whether cells prove them.

    An order is out where a cell fits another one alone; both stay where 1 % of such cells or more speak for each.
    """
    # Two digits in the first place are years where they are few, and those in the last place are many days.
    firsts, lasts = ({re.split(r"\D", plain)[place] for plain in cells} for place in (0, -1))
    days_last = 3 * len(firsts) <= len(lasts) and all(int(last) <= _DAYS for last in lasts)
    years_first = shape.year == "y" and days_last and all(len(first) == 2 for first in firsts)
    possible = ("ymd",) if shape.first or years_first else ("dmy", "mdy")
    alone: Counter[str] = Counter()
    fits: Counter[str] = Counter()
    rows = 0
    for plain, count in cells.items():
        fitting = [order for order in possible if _fitting(plain, _format(shape, order)) is not None]
        rows += count if fitting else 0
        fits.update(dict.fromkeys(fitting, count))
        if len(fitting) == 1:
            alone[fitting[0]] += count
    spoken = tuple(order for order in sorted(alone) if alone[order] >= _LEAST_VOICE * alone.total())
    if spoken:
        return spoken, fits[spoken[0]] if len(spoken) == 1 else rows, True
    return tuple(order for order in possible if fits[order]), rows, False


def _format(shape: _Shape, order: str) -> str:
    return _ORDERS[order].format(shape.sign, shape.year)


def _covering(rows_of: Counter[tuple[str, ...]]) -> list[str]:
    """The fewest formats for all cells, by rows of cells that fit several of them: the one of most rows first."""
    chosen: list[str] = []
    while rows_of:
        fits: Counter[str] = Counter()
        for layouts, rows in rows_of.items():
            fits.update(dict.fromkeys(layouts, rows))
        chosen.append(fits.most_common(1)[0][0])
        rows_of = Counter({layouts: rows for layouts, rows in rows_of.items() if chosen[-1] not in layouts})
    return chosen


def _further(plain: str, dated: bool) -> Iterable[str]:
    """Formats that a cell without three parted numbers may have."""
    if _WHOLE.fullmatch(plain):
        return (*_COMPACT, EXCEL) if dated else _COMPACT[:1]
    if plain.isascii() and plain.replace(".", "").replace(" ", "").isdigit():
        return (EXCEL,) if dated else ()
    if "年" in plain or "년" in plain:
        return _EAST_ASIAN
    if any(map(str.isalpha, plain)):
        return _NAMED
    return _MONTHLY if dated else _MONTHLY[:3]


@lru_cache(maxsize=65536)
def _plain(text: str) -> str:
    """The text in small letters with one kind of digits and blanks, years in place of eras, and no time of day."""
    plain = text.strip()
    if not _DIGITS_AND_SIGNS.fullmatch(plain):
        plain = plain_digits(text).replace("\u0130", "i").replace("\u0131", "i").casefold()
        plain = _WEEKDAY.sub("", _TIME.sub("", " ".join(plain.split())))
        if era := _ERA.fullmatch(plain):
            named, year, rest, letter, number, further = era.groups()
            count = 1 if year == "元" else int(year or number)
            plain = f"{_ERAS[named or letter] + count}{'年' + rest if named else further}"
    if " " in plain:
        plain = re.sub(r"\s*([-/.])\s*", r"\1", re.sub(r"(?<=\d) ?(?:r|г)\.?$", "", plain))
    return plain[:-1] if plain.endswith(".") and plain[-2:-1].isdigit() else plain


def _fitting(plain: str, layout: str) -> date | None:
    """The date that a plain text is in one format."""
    if layout == EXCEL:
        serial = re.fullmatch(r"(\d{5})(?:[.,]\d+)?", plain)
        days = int(serial[1]) if serial else 0
        return _EPOCH + timedelta(days=days) if days in _SERIALS else None
    if "%b" in layout or "%B" in layout:
        return _of_words(plain, layout)
    match = _pattern(layout).fullmatch(plain)
    if match is None:
        return None
    parts = match.groupdict()
    year = int(parts["Y"]) if parts.get("Y") else _century(int(parts.get("y") or 0))
    return _date(year, int(parts["m"]), int(parts.get("d") or 1))


def _of_words(plain: str, layout: str) -> date | None:
    """The date of a text that names its month; signs, ordinal endings and small words between parts do not count."""
    first = re.match(r"([^\W\d_]+)\.?,\s*", plain)
    if first and first[1] not in _MONTH_OF:  # the day of the week
        plain = plain[first.end() :]
    tokens = [token for token in re.findall(r"\d+|[^\W\d_]+", plain) if token not in _FILLERS]
    directives = [match[0] for match in _DIRECTIVE.finditer(layout.replace("%B", "%b").replace("%e", "%d"))]
    if len(tokens) != len(directives):
        return None
    parts = dict(zip(directives, tokens, strict=True))
    month = _MONTH_OF.get(parts["%b"])
    year, day = parts.get("%Y") or parts.get("%y") or "", parts.get("%d", "1")
    if month is None or not (year.isdigit() and day.isdigit()) or len(year) != (4 if "%Y" in parts else 2):
        return None
    return _date(int(year) if "%Y" in parts else _century(int(year)), month, int(day))


@lru_cache(maxsize=256)
def _pattern(layout: str) -> re.Pattern[str]:
    """The pattern of a format without names of months; its time of day is left out, as it is of the cells."""
    plain = re.sub(r"[T ]*%[HI].*$", "", layout).replace("%e", "%d").rstrip(".")
    plain = re.sub(r"\s*([-/.])\s*", r"\1", plain)
    signs = {"%Y": r"(?P<Y>\d{4})", "%y": r"(?P<y>\d{2})", "%m": r"(?P<m>\d{1,2})", "%d": r"(?P<d>\d{1,2})"}
    compact = bool(re.search("%[Yymd]%[Yymd]", plain))
    pieces = re.split(r"(%[Yymd])", plain)
    pattern = "".join(signs[piece] if piece in signs else re.escape(piece).replace(r"\ ", r"\s?") for piece in pieces)
    pattern = pattern.replace("月", r"\s?月\s?").replace("年", r"\s?年\s?").replace("日", r"\s?日")
    pattern = pattern.replace("년", r"\s?년").replace("월", r"\s?월").replace("일", r"\s?일")
    if compact:
        pattern = pattern.replace("{1,2}", "{2}") + r"(?:\.0+)?"
    return re.compile(pattern, re.ASCII)


def _century(year: int) -> int:
    return year + (1900 if year >= _PIVOT else 2000)


def _date(year: int, month: int, day: int) -> date | None:
    if year not in _YEARS and year != date.max.year:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


_MONTH_OF: Final = {
    unicodedata.normalize("NFKC", word).replace("\u0131", "i").casefold(): number
    for number, line in enumerate(_MONTHS.strip().splitlines(), 1)
    for word in line.split()
}
