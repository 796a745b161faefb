"""People and places of the twin in the codes of HMDA, as far as both families of layouts share them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tasks.ingest.synthetic.twin.algorithm.drawing import PURCHASED, Twin
from tasks.ingest.synthetic.twin.algorithm.people import NOBODY
from tasks.ingest.synthetic.twin.algorithm.settings import RACES, SEXES, WHITE
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

NOTHING = 0
"""Stands for an empty cell."""
_ASIAN, _PACIFIC = RACES.index("Asian"), RACES.index("Pacific Islander")
_ASIANS, _PACIFICS, _HISPANICS = (21, 22, 27), (41, 44), (11, 14)
"""Detailed codes of 2018, given by those whose ``detail`` is 0, 1 or 2."""
_SECOND = 9
"""``detail`` of those who name white as a second race, which nobody does together with a co-applicant."""

DERIVED_RACE = (
    "American Indian or Alaska Native", "Asian", "Black or African American",
    "Native Hawaiian or Other Pacific Islander", "White", "Race Not Available",
)  # fmt: skip
DERIVED_ETHNICITY = ("Hispanic or Latino", "Not Hispanic or Latino", "Ethnicity Not Available")
DERIVED_SEX = ("Male", "Female", "Joint", "Sex Not Available")


@dataclass(frozen=True)
class Codes:
    """Codes of the applicant; those of a co-applicant are the same, or that there is none. All arrays ``(n,)``."""

    race: Ints
    second_race: Ints
    """``NOTHING`` where there is none, as of every co-applicant."""
    ethnicity: Ints
    sex: Ints
    co_race: Ints
    co_ethnicity: Ints
    co_sex: Ints
    unknown: Bools
    """Purchased loans of which the lender was told nothing about people: groups and ages do not apply."""
    alone: Bools
    derived_race: Ints
    """Place in ``DERIVED_RACE``."""
    derived_ethnicity: Ints
    derived_sex: Ints


def codes_of(twin: Twin) -> Codes:
    """Codes by the rules of the twin's year: before 2018 there are no detailed ones."""
    who, alone = twin.people, twin.people.cosex == NOBODY
    unknown = (twin.action == PURCHASED) & (who.detail % 2 == 0)
    race = _told(_detailed_race(twin), who.race_told, unknown, 6)
    ethnicity = _told(_detailed_ethnicity(twin), who.race_told, unknown, 3)
    two = alone & (who.race < WHITE) & (who.detail == _SECOND) & (race < 6)
    second = np.where(two, WHITE + 1, NOTHING)
    sex, cosex = (_told(each + 1, who.sex_told, unknown, 3) for each in (who.sex, who.cosex))
    known = who.race_told & ~unknown
    both = np.where(alone | (who.sex == who.cosex), who.sex, len(SEXES))
    return Codes(
        race=race,
        second_race=second,
        ethnicity=ethnicity,
        sex=sex,
        co_race=np.where(alone, 8, race),
        co_ethnicity=np.where(alone, 5, ethnicity),
        co_sex=np.where(alone, 5, cosex),
        unknown=unknown,
        alone=alone,
        derived_race=np.where(known, who.race, len(RACES)),
        derived_ethnicity=np.where(known, np.where(who.hispanic, 0, 1), 2),
        derived_sex=np.where(who.sex_told & ~unknown, both, 3),
    )


def _told(own: Ints, told: Bools, unknown: Bools, not_provided: int) -> Ints:
    """Who does not say has the code for it, and the next one stands for `not applicable`."""
    found: Ints = np.where(unknown, not_provided + 1, np.where(told, own, not_provided))
    return found


def _detailed_race(twin: Twin) -> Ints:
    who, race = twin.people, twin.people.race + 1
    for group, given in ((_ASIAN, _ASIANS), (_PACIFIC, _PACIFICS)):
        own = (who.race == group) & (who.detail < len(given)) & twin.settings.modern
        race = np.where(own, np.array(given)[np.minimum(who.detail, len(given) - 1)], race)
    return race


def _detailed_ethnicity(twin: Twin) -> Ints:
    who = twin.people
    given = np.array(_HISPANICS)[np.minimum(who.detail, len(_HISPANICS) - 1)]
    hispanic = np.where((who.detail < len(_HISPANICS)) & twin.settings.modern, given, 1)
    found: Ints = np.where(who.hispanic, hispanic, 2)
    return found


class County(NamedTuple):
    """A county that applications come from; tracts in it are numbered at will."""

    state: str
    fips: str
    """Five digits: state and county."""
    metropolitan: str
    """Number of the metropolitan area or division."""


COUNTIES = (
    County("CA", "06037", "31084"),
    County("FL", "12086", "33124"),
    County("IL", "17031", "16984"),
    County("MT", "30063", "33540"),
    County("NY", "36061", "35614"),
    County("TX", "48201", "26420"),
)
TRACTS = ("0001.00", "0029.02", "0047.00", "0101.01", "0205.03", "0320.00", "1203.00", "2402.00", "5234.01", "9501.00")
"""In every county."""
_TRACT_FACTS: Longs = np.arange(len(COUNTIES) * len(TRACTS))


class Tract(NamedTuple):
    """What is published of a tract; arrays ``(60,)`` by place, and moved by nothing."""

    population: Longs = 1_500 + 97 * _TRACT_FACTS
    minority_percent: Floats = 3.25 + 1.5 * _TRACT_FACTS.astype(np.float64)
    median_family_income: Longs = 58_000 + 4_100 * (_TRACT_FACTS // 10)
    income_percent: Longs = 60 + 3 * (_TRACT_FACTS % 29)
    owner_occupied: Longs = 420 + 31 * _TRACT_FACTS
    family_homes: Longs = 610 + 37 * _TRACT_FACTS
    housing_age: Longs = 10 + _TRACT_FACTS


def by_tract(text: str) -> list[str]:
    """A text for every place, of ``{county}`` and ``{tract}``."""
    return [text.format(county=county, tract=tract) for county in COUNTIES for tract in TRACTS]
