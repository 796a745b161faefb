"""Bands such as `<20%`, `25-34`, `75+` and `$50k to $75k`: which columns hold some, and their order by lower ends."""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake.codes import codes_among_words
from tasks.ingest.intake.folding import spellings
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.numbers import parse
from tasks.ingest.intake.units import MEASURED, affix, power_of

_LEAST_SHARE, _MOST_BANDS, _MOST_TEXTS, _LONGEST = 0.9, 80, 2000, 80
_NUMBER: Final = re.compile(r"\s*(?:-?\d[\d.,]*)?\s*")
_INFINITE: Final = Decimal("Infinity")
_OWN_MARKS: Final = ColumnRecipe.model_validate({"read": "number", "thousands": (",", ".")})
_ALIKE: Final = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212~\u301c\uff5e", "-"))
_TOKEN: Final = re.compile(r"#|[<>]=?|[^\W\d_]+|[^\w\s]")

_BELOW: Final = """
< | <= | ≤ | under | below | less than | up to | at most | lower than | fewer than | younger than | to | max
bis | bis zu | unter | weniger als | höchstens | jünger als | moins de | jusqu'à | menos de | hasta | menor de
menor que | menores de | inferior a | até | abaixo de | meno di | fino a | sotto | sotto i | minder dan | tot
tot en met | t/m | onder | jonger dan | poniżej | do | mniej niż | upp till | mindre än | högst | yngre än
op til | under
"""
_ABOVE: Final = """
> | >= | ≥ | over | above | more than | greater than | at least | older than | from | min
ab | über | mehr als | mindestens | älter als | plus de | à partir de | dès | más de | desde | mayor de | mayor que
mayores de | superior a | a partir de | mais de | acima de | oltre | più di | sopra | sopra i | almeno | meer dan
vanaf | boven | ouder dan | powyżej | ponad | od | więcej niż | över | mer än | minst | äldre än | mere end
"""
_BELOW_BEHIND: Final = """
and or &: under below less younger fewer lower
und oder: weniger jünger darunter niedriger
et ou y o e i: moins menos meno menores inferiore mniej młodsi poniżej
en of och eller og: minder jonger lager yngre mindre under lägre
ve veya: altı altında aşağı az
: 未満 未满 不足 以下 以内 及以下 まで 代以下 代未満 미만 이하 대이하 대미만 대_이하 대_미만
"""
_ABOVE_BEHIND: Final = """
and or &: over above more older up greater higher
und oder: mehr älter darüber höher
et ou y o e i: plus más mayores mais acima più oltre superiore maggiore więcej starsi powyżej wyżej
en of och eller og: meer ouder hoger äldre mer över högre mere ældre derover
ve veya: üstü üzeri üzerinde yukarı fazla
: + 以上 及以上 超 より上 代以上 이상 초과 대이상 대_이상
"""
"""Words behind a number, each alone or behind one of the words before the colon."""
_STRICTLY_ABOVE: Final = frozenset(
    (">", "over", "above", "more than", "greater than", "über", "mehr als", "超", "초과")
)
_BETWEEN: Final = """
- | - < | - <= | - under | to | to < | to under | to less than | to below | through | thru | and | and under
and less than | bis | bis unter | bis zu | und | a | à | y | et | e | ao | al | à moins de | a menos de | do
tot | tot en met | t/m | till | til | och | i | ile | ve | , | , < | から | から - | 至 | 到 | 에서
以上 | 以上 - | 이상 | 이상 -
"""
_OPENING: Final = """
between | from | zwischen | von | entre | de | da | tra | van | tussen | od | między | mellan | från | fra
( | [ | > | >= | ages | age | aged
"""
_CLOSING: Final = ") | ] | 未満 | 未满 | 以下 | 以内 | 미만 | 이하 | 사이 | 之间 | まで | arası | inclusive"
_DECADES: Final = {"s": 0, "er": 0, "代": 0, "대": 0, "talet": 0, "代前半": 0, "代後半": 5, "대 초반": 0, "대 후반": 5}
"""Words behind a decade of ages, and the years after which it begins."""


def _phrase(text: str) -> str:
    return " ".join(_TOKEN.findall(text.replace("\u0131", "i").casefold()))


def _phrases(listing: str) -> frozenset[str]:
    return frozenset(_phrase(phrase) for line in listing.strip().splitlines() for phrase in line.split(" | "))


def _endings(listing: str) -> frozenset[str]:
    """Words behind a number, alone and behind a word for `and` or `or`."""
    lines = (line.split(":") for line in listing.strip().splitlines())
    pairs = ((before, word) for befores, words in lines for before in ("", *befores.split()) for word in words.split())
    return frozenset(_phrase(f"{before} {word}".replace("_", " ")) for before, word in pairs)


_SETS: Final = {
    "below": _phrases(_BELOW),
    "below behind": _endings(_BELOW_BEHIND),
    "above": _phrases(_ABOVE),
    "above behind": _endings(_ABOVE_BEHIND),
    "between": _phrases(_BETWEEN) | {""},
    "opening": _phrases(_OPENING) | {""},
    "closing": _phrases(_CLOSING) | {""},
}
_INTERVALS: Final = (
    (re.compile(r"^[(\[]-inf(?:inity)?\s?,\s?(.*)[)\]]$"), r"<= \1"),
    (re.compile(r"^[(\[](.*\d)\s?,\s?\+?inf(?:inity)?[)\]]$"), r">= \1"),
    (re.compile(r"^([(\[][^,]+),([^,]+[)\]])$"), r"\1 , \2"),
)
"""Intervals as programs print them, and a form with words."""


class Band(NamedTuple):
    """A band by its ends, infinite where it is open; a number alone has two that are equal."""

    low: Decimal
    above: bool
    """Whether the lower end itself is outside."""
    high: Decimal

    @property
    def single(self) -> bool:
        """Whether it is a number alone."""
        return self.low == self.high


def guess(counts: Mapping[str, int]) -> tuple[str, ...] | None:
    """The bands of a column from the lowest to the highest, in their printed spellings; None where it holds none.

    90 % of the cells that are there have to be bands or numbers between them; codes for missing do not count.
    """
    if len(counts) > _MOST_TEXTS or all(map(_NUMBER.fullmatch, counts)):
        return None
    codes = codes_among_words(counts)
    present = {
        text: rows for text, rows in counts.items() if text not in codes and not is_missing(text, of_numbers=True)
    }
    printed = spellings(present)
    values = dict.fromkeys(printed.values())
    if not 2 <= len(values) <= _MOST_BANDS:
        return None
    bands = {value: band for value in values if (band := read_band(value)) is not None}
    real = [band for band in bands.values() if not band.single]
    ends = [end for band in real for end in (band.low, band.high) if end.is_finite()]
    if not ends:
        return None
    # Numbers below the bands belong to them where only the top is open: 0, 1, 2, 3+.
    lowest = min(ends) if any(band.high.is_finite() for band in real) else min(Decimal(0), *ends)
    between = {value: band for value, band in bands.items() if not band.single or lowest <= band.low <= max(ends)}
    rows = sum(rows for text, rows in present.items() if printed[text] in between)
    if rows < _LEAST_SHARE * sum(present.values()) or len(between) < _LEAST_SHARE * len(values):
        return None
    return tuple(sorted(between, key=between.__getitem__))


def read_band(text: str) -> Band | None:
    """The ends of a band, or of a number alone; None where a text is neither."""
    plain = unicodedata.normalize("NFKC", text).replace("\u0130", "i").replace("\u0131", "i").casefold()
    plain = " ".join(plain.translate(_ALIKE).split()).strip("'\"")
    for pattern, plainer in _INTERVALS:
        plain = pattern.sub(plainer, plain)
    numbers = list(MEASURED.finditer(plain[:_LONGEST]))
    if len(plain) > _LONGEST or not 1 <= len(numbers) <= 2:
        return None
    words = [word for word in _TOKEN.findall(MEASURED.sub(" # ", plain)) if not ((unit := affix(word)) and unit.units)]
    places = [place for place, word in enumerate(words) if word == "#"]
    before, behind = " ".join(words[: places[0]]), " ".join(words[places[-1] + 1 :])
    powers = [power_of(match["scale"]) if match["scale"] else 0 for match in numbers]
    # Marks part thousands, unless the number proves that they do not.
    values = [parse(match["number"], _OWN_MARKS) or re.sub(r"\D", "", match["number"]) for match in numbers]
    ends = [Decimal(value).scaleb(power) for value, power in zip(values, powers, strict=True)]
    if len(ends) == 1:
        return _open(ends[0], before, behind)
    between = " ".join(words[places[0] + 1 : places[1]])
    if between not in _SETS["between"] or before not in _SETS["opening"] or behind not in _SETS["closing"]:
        return None
    low, high = ends
    if powers[1] and not powers[0] and low.scaleb(powers[1]) < high:
        low = low.scaleb(powers[1])
    return Band(low, before in ("(", ">"), high) if low < high else None


def _open(end: Decimal, before: str, behind: str) -> Band | None:
    """A band that is open at one end, a decade of ages, or a number alone."""
    if (not behind and before in _SETS["below"]) or (not before and behind in _SETS["below behind"]):
        return Band(-_INFINITE, False, end)
    if (not behind and before in _SETS["above"]) or (not before and behind in _SETS["above behind"]):
        return Band(end, (before or behind) in _STRICTLY_ABOVE, _INFINITE)
    if not before and behind in _DECADES and end % 10 == 0:
        return Band(end + _DECADES[behind], False, end + 9)
    return None if before not in ("", "-") or behind else Band(-end if before else end, False, -end if before else end)
