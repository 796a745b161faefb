"""Words of column names: places in every language of drafts, and through whom an application went."""

import ast
import re
from pathlib import Path

import pytest
from source_trees import nodes_of, walked

from flows.cli.draft.vocabulary import LANGUAGES, is_named
from schemas.audit.column import block_of
from schemas.blocks import PLACES, is_place, is_through, words_of
from schemas.terms import Role

GROUP = "source"
"""Run by the worker that has parsed the code."""
ROOT = Path(__file__).parents[2]
MOST_WORDS_OF_PLACES = 4
"""In one file beside the vocabulary: vintages are of a state, a county or a metropolitan area."""
PHRASES = [(language, p.strip(" =")) for language, listing in PLACES.items() for p in listing.split("|")]


@pytest.mark.parametrize(
    "name",
    [
        *("zip", "ZipCode", "property_zip_code", "plz", "postcode", "censusTract", "MSA", "state_code", "Street 2"),
        *("tract_minority_pct", "neighborhood_minority_share", "ward_population", "county_fips5", "derived_msa_md"),
        *("Wohnort", "Geschäftsadresse", "STRASSE", "código_postal", "Codigo Postal", "İlçe", "kod pocztowy", "区县"),
        *("住所コード", "거주지역", "pays de résidence", "Län"),
    ],
)
def test_a_place_is_a_place_for_drafts_and_the_ladder_however_it_is_written(name):
    assert is_place(name)
    assert is_named(name, "place")
    assert block_of(name, (Role.FEATURE,)) == "place"


@pytest.mark.parametrize(
    "name",
    [
        *("income", "marital_status", "statement", "plate", "latest", "cityscape", "loan", "lån", "lån_belopp"),
        *("cap_rate", "via_broker", "il_score", "report", "support", "cp_ratio", "decided_by"),
    ],
)
def test_a_word_inside_another_and_a_word_of_another_language_is_no_place(name):
    assert not is_place(name)
    assert not is_named(name, "place")


def test_every_language_of_drafts_has_places_and_every_phrase_is_found():
    assert set(PLACES) == set(LANGUAGES)
    assert [(language, phrase) for language, phrase in PHRASES if not is_place(phrase)] == []
    assert [phrase for _, phrase in PHRASES if not is_place(phrase.upper())] == []


def listed_places(file: Path) -> set[str]:
    """Words of places that a file lists: whole texts of code, their parts between bars, phrases of a list."""
    single = {phrase for _, phrase in PHRASES}
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        nodes = walked().get(file) or nodes_of(file)
        docs = {node.value for node in nodes if isinstance(node, ast.Expr)}
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and n not in docs]
        listed = [part for value in texts if isinstance(value, str) for part in (value, *re.split(r"\s*\|\s*", value))]
        return single & set(listed)
    return single & {line.split(",")[2] for line in text.splitlines() if line.startswith("name,")}


def test_no_second_list_of_places_stands_beside_the_vocabulary():
    files = [f for folder in ("schemas", "tasks", "flows", "research") for f in (ROOT / folder).rglob("*.py")]
    files += (ROOT / "flows/cli/draft/words").glob("*.csv")
    lists = {file.relative_to(ROOT).as_posix(): listed_places(file) for file in files}
    assert lists.pop("schemas/blocks.py") > {"zip", "county"}
    assert len(lists) > 300
    assert {name: sorted(words) for name, words in lists.items() if len(words) > MOST_WORDS_OF_PLACES} == {}
    assert {word for name, words in lists.items() if name.endswith(".csv") for word in words} == set()


def test_a_second_list_would_be_found(tmp_path):
    code = tmp_path / "places.py"
    code.write_text('X = frozenset(("zip", "city", "county", "tract", "street", "ward"))\n', encoding="utf-8")
    words = tmp_path / "en.csv"
    words.write_text("kind,means,phrase,note\nname,place,zip,\n", encoding="utf-8")
    assert len(listed_places(code)) > MOST_WORDS_OF_PLACES
    assert listed_places(words) == {"zip"}


def test_branches_and_officers_are_through_whom():
    assert [is_through(name) for name in ("branch_id", "loanOfficer", "LEI", "brokerage")] == [True, True, True, False]


def test_words_are_cut_at_marks_numbers_and_capitals():
    assert words_of("tract_to-MSAIncome2020") == ("tract", "to", "msa", "income", "2020")
    assert words_of("ÄnderungDatum été") == ("änderung", "datum", "été")
