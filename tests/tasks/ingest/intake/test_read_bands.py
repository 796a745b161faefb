"""Bands and their order by lower ends."""

from decimal import Decimal

import pytest

from tasks.ingest.intake.bands import guess, read_band

ORDERS = [
    ["<20%", "20%-<30%", "30%-<36%", "36", "37", "49", "50%-60%", ">60%"],
    ["<25", "25-34", "35-44", "45-54", ">74"],
    ["under 40", "40 to 61", "62 and over"],
    ["Less than $25,000", "$25,000 - $49,999", "$50k to $75k", "$75k+"],
    ["< 1 year", "1 year", "2 years", "10+ years"],
    ["0", "1", "2", "3+"],
    ["(0, 10]", "(10, 20]", "(20, 30]"],
    ["(-inf,25]", "(25,35]", "(35, inf)"],
    ["20代前半", "20代後半", "30代", "60代以上"],
    ["jonger dan 25", "25 t/m 34", "35 jaar en ouder"],
    ["25세 미만", "25세~34세", "40대 이상"],
    ["unter 25", "25 bis 34", "35 bis unter 65", "65 und älter"],
    ["moins de 1 000 €", "1 000 à 2 000 €", "plus de 2 000 €"],
    ["até R$ 1.000", "R$ 1.000 a R$ 2.000", "acima de R$ 2.000"],
    ["menos de 25", "entre 25 y 34", "35 o más"],
    ["meno di 30", "30 - 39 anni", "oltre 40"],
    ["tot 30 jaar", "30 tot 65 jaar", "65 jaar en ouder"],
    ["poniżej 2 000 zł", "2 000 - 5 000 zł", "powyżej 5 000 zł"],
    ["25 altı", "25-34 yaş", "35 yaş ve üzeri"],
    ["yngre än 25", "25–34 år", "35 år och äldre"],
    ["20歳未満", "20歳以上30歳未満", "30歳以上"],
    ["20代", "30代", "40代"],
    ["300万円未満", "300万円～500万円", "500万円以上"],
    ["30岁以下", "31-40岁", "60岁及以上"],
    ["20세 미만", "20세 이상 30세 미만", "30세 이상"],
]


@pytest.mark.parametrize("order", ORDERS)
def test_bands_are_ordered_by_their_lower_ends(order: list[str]) -> None:
    mixed = dict.fromkeys(sorted(order, key=lambda band: band[::-1]), 10)
    assert guess(mixed) == tuple(order)


def test_missing_words_and_codes_do_not_count() -> None:
    assert guess({"25-34": 50, "<25": 20, "NA": 30, "Exempt": 9, "8888": 7}) == ("<25", "25-34")


def test_spellings_of_a_band_are_joined() -> None:
    assert guess({"Under 40": 5, "under 40 ": 2, "40+": 9, "UNDER 40": 1}) == ("Under 40", "40+")


OTHERS = [
    ["36", "37", "38"],
    ["A", "B", "25-34"],
    ["White", "Black"],
    ["12345-6789", "54321-9876"],
    ["2023-01-02", "2023-02-03"],
    ["25-34"],
    ["$5", "$6", "$7"],
    ["120 Monate", "240 Monate"],
]


@pytest.mark.parametrize("cells", OTHERS)
def test_numbers_words_and_codes_are_no_bands(cells: list[str]) -> None:
    assert guess(dict.fromkeys(cells, 10)) is None


def test_numbers_outside_of_all_bands_are_no_bands() -> None:
    assert guess({"<20": 10, "20-40": 10, "500": 10}) is None
    assert guess({"<20": 10, "20-40": 10, "25": 10}) == ("<20", "20-40", "25")


def test_a_scale_behind_the_upper_end_counts_for_the_lower_one() -> None:
    band = read_band("50-75k")
    assert band is not None
    assert (band.low, band.high) == (Decimal(50000), Decimal(75000))
