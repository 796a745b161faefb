"""Words of column names: places, and the branches and officers of an application.

One vocabulary for drafted specs and for the denial ladder, read by words: ``property_zip_code`` holds the word zip.
"""

import re
from typing import Final

PLACES: Final = frozenset(
    (
        *("zip", "zipcode", "postcode", "postal", "plz", "city", "town", "county", "tract", "msa", "fips", "state"),
        *("region", "province", "neighborhood", "neighbourhood", "ward", "district", "latitude", "longitude", "lat"),
        *("lon", "address", "street", "area"),
    )
)
"""A column with one of these words says where an applicant lives, or the home is."""
THROUGH: Final = ("officer", "underwriter", "broker", "branch", "store", "channel", "lender", "lei")
"""A column with one of these words says through whom an application went."""
CLUSTERS: Final = ("officer", "underwriter", "broker", "branch", "store", "lender", "lei", "tract")
"""Rows of one value of such a column hang together; the first that a file holds counts."""
DATES: Final = frozenset(("month", "date", "quarter"))
"""A column with one of these words may say when."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: at blanks, marks, numbers and capitals."""
    return tuple(word.lower() for word in _WORD.findall(name))


def is_place(name: str) -> bool:
    """Whether a column is a place, by the words of its name."""
    return not PLACES.isdisjoint(words_of(name))


def is_through(name: str) -> bool:
    """Whether a column is a branch, an officer or a channel, by the words of its name."""
    return not set(THROUGH).isdisjoint(words_of(name))
