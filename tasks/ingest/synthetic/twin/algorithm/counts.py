"""Published numbers of rows of HMDA years, so that a twin can be as large, or a stated part of it.

Up to 2016 the counts of the historic files; from 2017 those that the official data browser shows, late filings
included. They are published figures. Freezes of one year differ by up to a percent.
"""

from types import MappingProxyType

PUBLISHED = MappingProxyType({
    2007: 26_605_695, 2008: 17_391_570, 2009: 19_493_491, 2010: 16_348_557, 2011: 14_873_415, 2012: 18_691_551,
    2013: 17_016_159, 2014: 12_049_341, 2015: 14_374_184, 2016: 16_332_987, 2017: 14_334_811, 2018: 15_140_471,
    2019: 17_563_221, 2020: 25_699_043, 2021: 26_269_980, 2022: 16_125_975, 2023: 11_564_178, 2024: 12_259_199,
    2025: 13_543_606,
})  # fmt: skip
"""Year -> rows of all states."""


def rows_of(year: int, part: float) -> int:
    """A part of the rows of a year, at least one.

    Raises:
        ValueError: No count is known of the year.
    """
    if year not in PUBLISHED:
        raise ValueError(f"no published count of {year}; known: {min(PUBLISHED)} to {max(PUBLISHED)}")
    return max(1, round(part * PUBLISHED[year]))
