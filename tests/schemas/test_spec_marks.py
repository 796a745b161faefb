"""Keys that are marked CHECK: which they are, and that an audit knows them."""

from conftest import SPEC

from schemas.audit.file import parse
from tasks.pipeline.registry import read_spec

MARKED = (
    SPEC.replace("year: 2024", "year: 2024 # CHECK: the year")
    .replace("    reference: white", "    reference: white  #CHECK")
    .replace("title: Synthetic loans", "# CHECK: a comment alone\ntitle: 'a # CHECK of words'  # not CHECK")
    + "verdicts:\n  columns_complete: CHECK # true or false\n"
)


def test_a_mark_stands_behind_its_key_or_is_its_value() -> None:
    marks = {mark.key: mark.why for mark in parse(MARKED.replace("'a # CHECK of words'", "words")).marks}
    assert marks == {"year": "the year", "protected.0.reference": "", "verdicts.columns_complete": "true or false"}


def test_the_spec_names_its_marks_and_options_confirm_them() -> None:
    text = MARKED.replace("'a # CHECK of words'", "words")
    assert read_spec(text, "x").spec.unconfirmed == ("year", "protected.0.reference", "verdicts.columns_complete")
    given = {"year": "2023", "verdicts": "{columns_complete: true}"}
    assert read_spec(text, "x", given).spec.unconfirmed == ("protected.0.reference",)
    assert read_spec(text, "x", {"unconfirmed": "[]"}).spec.unconfirmed == ()
    assert read_spec(SPEC, "x").spec.unconfirmed == ()
    assert read_spec(f"{SPEC}\nunconfirmed: [seed]", "x").spec.unconfirmed == ("seed",)


def test_a_spec_as_values_keeps_them() -> None:
    spec = read_spec(MARKED, "x").spec
    assert spec.model_dump(mode="json")["unconfirmed"]


def test_keys_that_are_no_text_and_stand_twice_are_read() -> None:
    assert [mark.key for mark in parse("1: a # CHECK\nb:\n  - c\n  - {d: CHECK}\ne: {f: x}\ne: y\n").marks] == [
        "1",
        "b.1",
    ]
