"""One table of names: old keys are refused or read, other decisions have words of their own, no second wording."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import REPOSITORY

from schemas.audit.limits import Verdicts
from schemas.audit.spec import Decision
from schemas.questions import (
    LENDING,
    QUESTIONS,
    QUESTIONS_BEFORE,
    STATES,
    STATES_BEFORE,
    DecisionWords,
    rephrase_of,
    rephrase_rows,
    row_now,
    spec_now,
    state_words,
)
from schemas.sentences import glossary, sentences
from schemas.tables.verdicts import columns_in_approval, in_approval, measure_in_approval
from schemas.terms import State, Theory
from tasks.lake.storage import connected

HIRING = DecisionWords(favourable="hired", unfavourable="rejected", unit="candidates")


def test_every_key_has_its_words_and_every_key_of_before_a_key_of_now():
    assert set(QUESTIONS) == set(Theory)
    assert set(STATES) == set(State)
    assert QUESTIONS_BEFORE == {
        **{"outcome": "approval_rates", "direct": "similar_applicants", "total": "causal_model"},
        **{"recourse": "path_to_approval", "reasons": "model_reasons", "own": "own_limits"},
    }
    assert STATES_BEFORE["breach"] == "outside"
    assert STATES_BEFORE["insufficient_evidence (withheld)"] == "inconclusive (withheld)"
    assert (state_words("outside"), state_words("of_later")) == ("Outside the limit", "of later")
    assert len({q.file for q in QUESTIONS.values()} | {q.words for q in QUESTIONS.values()}) == 2 * len(Theory)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limits": {"direct": 0.02}}, "`direct` is now `similar_applicants`"),
        ({"limits": {"total": None, "outcome": 0.8}}, "`total` is now `causal_model`; `outcome` is now"),
        ({"gate": ["similar_applicants", "recourse"]}, "`recourse` is now `path_to_approval`"),
    ],
)
def test_a_spec_with_a_key_of_before_is_refused_with_the_key_of_now(settings, message):
    with pytest.raises(ValueError, match=message):
        Verdicts.model_validate(settings)


def test_a_recorded_spec_or_row_of_before_is_read_with_the_keys_of_now():
    before = {"verdicts": {"limits": {"direct": None, "recourse": {"ratio": 0.8}, "part": 0.05}, "gate": ["direct"]}}
    settings = Verdicts.model_validate(spec_now(before)["verdicts"])
    assert settings.limits.similar_applicants is None
    assert settings.gate == (Theory.SIMILAR_APPLICANTS,)
    assert spec_now({"name": "x"}) == {"name": "x"}
    row = {"theory": "total", "state": "descriptive", "value": 0.1, "group": "direct"}
    assert row_now(row) == {"theory": "causal_model", "state": "information", "value": 0.1, "group": "direct"}


ROW = {
    **{
        "theory": Theory.SIMILAR_APPLICANTS,
        "role": "primary",
        "scale": "linear",
        "value": 0.13,
        "low": 0.06,
        "high": 0.18,
    },
    **{"hull_low": None, "hull_high": None, "plain_low": 0.07, "plain_high": 0.19, "limit": 0.02, "side": "at_most"},
    **{"limit_used": 0.02, "detectable": 0.1, "p_breach": 0.01, "robustness": 0.12},
}


def test_a_difference_is_group_less_reference_in_approval_and_a_ratio_stays():
    turned = in_approval(ROW)
    assert (turned["low"], turned["value"], turned["high"]) == (-0.18, -0.13, -0.06)
    assert (turned["plain_low"], turned["plain_high"]) == (-0.19, -0.07)
    assert (turned["limit"], turned["side"], turned["hull_low"]) == (-0.02, "at_least", None)
    assert (turned["p_breach"], turned["robustness"]) == (0.01, 0.12)
    for theory in (Theory.APPROVAL_RATES, Theory.PATH_TO_APPROVAL, Theory.MODEL_REASONS, Theory.OWN_LIMITS):
        assert in_approval(ROW | {"theory": theory}) == ROW | {"theory": theory}


def test_measures_that_are_effects_on_denial_turn_alike_in_rows_and_queries():
    rows = [
        {"measure": "adjusted_effect", "value": 0.13, "low": 0.06, "high": 0.18},
        {"measure": "approval_rate", "value": 0.7, "low": 0.6, "high": None},
    ]
    turned = [measure_in_approval(row) for row in rows]
    assert turned == [rows[0] | {"value": -0.13, "low": -0.18, "high": -0.06}, rows[1]]
    with connected() as connection:
        query = f"SELECT measure, {', '.join(columns_in_approval().values())} FROM rows ORDER BY value"
        answer = connection.from_arrow(pa.Table.from_pylist(rows)).query("rows", query).to_arrow_table().to_pylist()
    assert answer == turned


@dataclass(frozen=True)
class Page:
    """A text with what must not change."""

    title: str
    state: State
    rows: tuple[str, ...]
    n: int = 3


def test_other_decisions_have_words_of_their_own_and_names_stay():
    text = "Applicants of denied applicants were approved; see pages/similar-applicants.html, --denied."
    assert LENDING.rephrase(text) == text
    said = HIRING.rephrase("Denied: 9 Denied North applicants; the applicant was approved.", ["Denied North"])
    assert said == "Rejected: 9 Denied North candidates; the candidate was hired."
    assert HIRING.rephrase(text).endswith("were hired; see pages/similar-applicants.html, --denied.")
    page = HIRING.rephrase_all(Page("Approved", State.WITHIN, ("of 100 applicants",)))
    assert page == Page("Hired", State.WITHIN, ("of 100 candidates",))


@pytest.mark.parametrize(
    ("column", "values", "unit"),
    [
        ("hired", ("1", "0"), "candidates"),
        ("decision", ("released", "detained"), "defendants"),
        ("admission", ("yes", "no"), "applicants"),
        ("third_party", ("1", "0"), "applicants"),
    ],
)
def test_the_words_follow_from_the_names_of_the_decision_unless_the_spec_has_some(column, values, unit):
    decision = Decision(column=column, favourable=values[:1], unfavourable=values[1:])
    assert decision.wording.unit == unit
    assert decision.model_copy(update={"words": HIRING}).wording == HIRING


def test_rows_of_a_recorded_run_are_told_in_the_words_of_its_decision():
    spec = {
        "title": "Approved loans",
        "decision": {"column": "hired", "favourable": ["1"], "unfavourable": ["0"]},
        "protected": [{"name": "sex", "columns": ["sex"], "reference": "m", "groups": {"Denied North": ["n"]}}],
    }
    row = {"reason": "nobody of the group was approved", "sentence": "Denied North applicants", "next": "", "n": 3}
    [told] = rephrase_rows([row], rephrase_of(spec))
    expected = {"reason": "nobody of the group was hired", "sentence": "Denied North candidates"}
    assert told == row | expected
    own = {**spec, "decision": {**spec["decision"], "words": {"unit": "people"}}}
    assert rephrase_of(own)("approved applicants") == "approved people"
    assert rephrase_of({})("approved applicants") == "approved applicants"


REPLACED = (
    *("too little to say", "inside limit", "outside limit[^s]", "described only", "equals treated alike"),
    *("Do approvals differ", r"by the assumed graph\?", "Is the way to approval longer", "Limits of this spec"),
)


def test_the_glossary_is_written_from_the_table_alone():
    text = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert glossary() == text, "run `make docs`"
    assert "| `similar_applicants` | Were similar applicants approved equally often? |" in text
    assert "| `missing_covariate` | A feature has no value. |" in text


SECOND = re.compile("|".join([*(re.escape(question.words) for question in QUESTIONS.values()), *REPLACED]))
"""Words of the table, and those that it took the place of."""


TABLE = [REPOSITORY / "schemas" / name for name in ("questions.py", "sentences.yaml", "glossary.yaml")]


def test_no_file_but_the_table_words_a_question_or_a_state_again():
    files = [
        file
        for top in ("flows", "tasks", "schemas")
        for file in sorted((REPOSITORY / top).rglob("*"))
        if file.suffix in (".py", ".yaml", ".j2", ".css") and file not in TABLE
    ]
    assert len(files) > 300
    assert {str(file.relative_to(REPOSITORY)): found for file in files if (found := _second(file))} == {}


def _second(file: Path) -> list[str]:
    return SECOND.findall(file.read_text(encoding="utf-8"))


PAGES = {"league": ("league",), "years": ("trends", "trend_pages"), "data_page": ("data_page",)}
"""Part of the table -> the modules of tasks/reporting that take their sentences from it."""


def _paths(patterns, before=""):
    """Dotted names of all sentences of a part."""
    for name, of in patterns.items():
        yield from _paths(of, f"{before}{name}.") if isinstance(of, dict) else [f"{before}{name}"]


def _pattern(node):
    """A name as a regular expression: what is filled in stands for anything."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts)


@pytest.mark.parametrize("part", PAGES)
def test_pages_take_every_sentence_from_the_table_and_use_all_of_it(part):
    used, written = set(), []
    for name in PAGES[part]:
        tree = ast.parse((REPOSITORY / "tasks" / "reporting" / f"{name}.py").read_text(encoding="utf-8"))
        notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        written += [text.value for text in texts if id(text) not in notes and re.search(r"\w \w.*\.(\s|$)", text.value)]
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "_said":
                first = call.args[0]
                ends = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                used |= {_pattern(end) for end in ends}
        # Lists and groups of sentences: sentences("years")["cannot"].
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.Subscript)):
            keys, inner = [], node
            while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
                keys, inner = [inner.slice.value, *keys], inner.value
            if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "sentences":
                used.add(re.escape(".".join(keys)) + r"(\..+)?")
    paths = list(_paths(sentences(part)))
    assert [path for path in paths if not any(re.fullmatch(pattern, path) for pattern in used)] == [], "not used"
    assert [p for p in used if not any(re.fullmatch(p, path) for path in paths)] == [], "not in the table"
    assert written == [], "sentences outside the table"
