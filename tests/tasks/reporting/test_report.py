"""The report escapes what it is given, asks nothing of the network, and lets too little evidence read as no pass."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import report_cst
import report_tables
from report_tables import HOSTILE, REFERENCE

from schemas.audit.model import Model
from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec, Disclosure
from schemas.tables.report import REPORT_INDEX
from schemas.tables.source import SOURCE_READ
from tasks.metrics.algorithm.disclosure import POLICIES, withhold_table
from tasks.pipeline.registry import METHODS
from tasks.pipeline.specs import validated
from tasks.pipeline.validation import validate
from tasks.reporting.chapters.appendix import quality
from tasks.reporting.chapters.cover import cover
from tasks.reporting.chapters.waterfall import _giving_away, waterfall
from tasks.reporting.material import Material
from tasks.reporting.methods import section_modules
from tasks.reporting.stage import _json, report


@pytest.fixture(scope="module")
def produced():
    return report.function(*report_tables.tables(), settings=report_tables.settings())


@pytest.fixture(scope="module")
def page(produced):
    return produced.files["report.html"].decode()


class Reader(HTMLParser):
    """Collects what a browser would see: tags, the text of tables, and scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.rows, self._inside = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)
        if tag == "script":
            self.scripts.append([dict(attrs).get("type"), ""])
        if tag == "tr":
            self.rows.append("")

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self._inside:
            self.scripts[-1][1] += data
        elif "tr" in self._inside:
            self.rows[-1] += data + " "


def unscripted(text):
    """The page as it is where scripts are off."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def test_the_index_names_the_files_and_their_sizes(produced):
    index = produced.tables["report_index"]
    assert index.to_pydict() == {"file": list(produced.files), "bytes": [len(b) for b in produced.files.values()]}
    assert set(produced.files) == {"report.html", "quality.html", "report.json"}
    assert all(outcome.success for outcome in validate(index, REPORT_INDEX))


def test_each_file_is_small(produced):
    assert all(len(content) < 5_000_000 for content in produced.files.values())
    assert len(produced.files["report.html"]) < 2_500_000


def test_a_hostile_group_name_is_text_everywhere(page, read):
    assert HOSTILE[0] not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert any(HOSTILE[0] in row for row in read.rows)
    assert any(HOSTILE[1] in row for row in read.rows)
    kinds = [kind for kind, _ in read.scripts]
    assert kinds.count(None) == 2, "the bundle and our own script, and no third one"
    assert set(kinds) == {None, "application/json"}


def test_chart_specs_survive_their_inlining(read):
    specs = [json.loads(text) for kind, text in read.scripts if kind == "application/json"]
    assert specs
    groups = {row["group"] for spec in specs for rows in [spec.get("data", {}).get("values", [])] for row in rows}
    groups |= {row["group"] for spec in specs for rows in spec.get("datasets", {}).values() for row in rows}
    assert set(HOSTILE) <= groups


def test_a_hostile_title_and_column_are_text_too(produced):
    raw = report_tables.spec().model_dump(mode="json")
    raw["title"] = "</title><script>alert(2)</script>"
    raw["columns"]["income"]["label"] = "<img src=x onerror=alert(3)>"
    audit = validated(AuditSpec, raw)
    files = report.function(*report_tables.tables(), settings=report_tables.settings(audit)).files
    for name in ("report.html", "quality.html"):
        text = files[name].decode()
        assert "<script>alert" not in text
        assert "<img" not in unscripted(text)


@pytest.mark.parametrize("name", ["report.html", "quality.html"])
def test_nothing_is_fetched(produced, name):
    text = produced.files[name].decode()
    read = Reader(text)
    for tag, attrs in read.tags:
        for key in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            target = attrs.get(key) or ""
            assert not re.match(r"(https?:)?//", target), f"<{tag} {key}={target}>"
    assert not re.search(r"url\(\s*['\"]?(?!#)", unscripted(text))
    assert "@import" not in unscripted(text)
    policy = next(attrs["content"] for tag, attrs in read.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_figures_are_there_without_scripts(page):
    bare = unscripted(page)
    panels = bare.count('class="chart"')
    assert panels >= 10
    charts = re.findall(r'<div class="chart" role="img" aria-label="[^"]+"><svg', bare)
    assert len(charts) == panels
    ids = re.findall(r'\bid="([^"]+)"', bare)
    assert len(set(ids)) == len(ids)


def test_too_few_never_reads_as_a_pass(page, read):
    rows = [row for row in read.rows if "Asian" in row and "approval rate" in row and "that a verdict needs" in row]
    assert len(rows) == 2, "against the limit, and against the watch level"
    assert all("too little to say" in row and "within" not in row for row in rows)
    badges = re.findall(r'<span class="badge (\w+)">([^<]+)</span>', page)
    assert ("insufficient_evidence", "too little to say") in badges
    assert all(words != "inside limit" for state, words in badges if state != "within")


def test_the_overall_state_is_the_worst(page):
    assert re.search(r'class="overall breach"', page)


def test_without_a_limit_nothing_was_checked():
    raw = report_tables.spec().model_dump(mode="json") | {"thresholds": [], "verdicts": {"limits": None}}
    audit = validated(AuditSpec, raw)
    tables = list(report_tables.tables())
    tables[1] = report_tables.verdicts(audit)
    text = report.function(*tables, settings=report_tables.settings(audit)).files["report.html"].decode()
    assert 'class="overall not_run"' in text
    assert "inside limit" not in text
    assert "no limit set" in text


def test_limits_stand_before_results(page):
    assert page.index('<section id="limits">') < page.index('<section id="status">') < page.index('<section id="fgce">')
    assert "Missingness is related to the decision" in page
    assert "no credit score is among them" in page


def all_methods(**changes):
    """The page of an audit by all methods."""
    settings = report_cst.settings(report_cst.of_all(**changes))
    return report.function(*report_cst.tables_of_all(), settings=settings).files["report.html"].decode()


def between(page, start, end):
    return page[page.index(start) : page.index(end)]


DEFAULT = ("adjusted", "fgce")
"""Methods that run where a spec names none."""


def test_the_first_page_follows_the_methods_that_ran(page):
    alone, full = (between(text, "<h1>", '<section id="status">') for text in (page, all_methods()))
    for method in METHODS.values():
        module = section_modules([method.name])[method.name]
        assert (module.QUESTION in alone, module.QUESTION in full) == (method.name in DEFAULT, True)
        assert (f"<h3>{method.title}</h3>" in alone, f"<h3>{method.title}</h3>" in full) == (
            method.name in DEFAULT,
            True,
        )
        for title in method.headline.values():
            assert (title.capitalize()[:9] in alone.replace("cst", "CST")) == (method.name in DEFAULT)
            assert title[1:] in full


def test_every_question_leads_to_its_chapter(page):
    for text in (page, all_methods()):
        linked = re.findall(r'<a href="#(\w+)">', between(text, '<ul class="questions">', '<section id="limits">'))
        assert linked[:3] == ["outcomes", *DEFAULT]
        assert all(f'<section id="{anchor}">' in text for anchor in linked)


def test_a_headline_on_few_people_is_marked_and_a_dash_is_no_number(page):
    rows = Reader(between(page, '<section id="glance">', '<section id="status">')).rows
    assert len(rows) == 1 + 2 * (len(report_tables.SIZES) + 1), "and a group without factuals"
    mine = [row for row in rows if HOSTILE[1] in row]
    assert all("(few)" in row for row in mine), "26 factuals"
    assert not any("(few)" in row for row in rows if REFERENCE in row)
    asian = next(row for row in rows if "Asian" in row)
    assert "withheld" in asian


@pytest.mark.parametrize("path", ["/srv/secret place/their model.onnx", "C:\\secret place\\their model.onnx"])
def test_a_model_from_a_file_is_named_as_given_and_not_as_fitted(path):
    spec = report_tables.spec().model_copy(update={"model": Model(kind="file", file={"path": path})})
    measures, *others = report_tables.tables()
    material = Material.of(report_tables.settings(spec), measures, *others[5:])
    front = cover(material, (), section_modules([]))
    assert dict(front.strip)["Model"] == "a given model (their model.onnx)"
    assert "secret place" not in str(front)
    assert b"secret place" not in _json(material, measures, (), ())
    (said,) = [p for each in front.limits for p in each.points if "given as a file" in p]
    for part in ("not fitted here", "learnt from these very rows", "second class or high scores"):
        assert part in said
    assert "was fitted to the lender's decisions" not in str(front)


@pytest.mark.parametrize(("profile", "rows"), [("public", "1,989"), ("strict", "1,990")])
def test_what_was_read_is_told_with_its_rows_as_all_that_is_published(profile, rows):
    spec = report_tables.spec().model_copy(update={"disclosure": Disclosure(profile=profile)})
    read = SOURCE_READ.build(source=["a.csv"], sha256=["ab" * 32], rows=[1989], year=[2022])
    measures, *others = report_tables.with_tables(source_read=read)
    material = Material.of(report_tables.settings(spec), measures, *others[5:])
    strip = dict(cover(material, (), section_modules([])).strip)
    assert (strip["Rows read"], strip["Year by the rows"]) == (rows, "2022")
    said = json.loads(_json(material, measures, (), ()))["read"]
    assert said == {"source": "a.csv", "sha256": "ab" * 6, "rows": int(rows.replace(",", "")), "year": 2022}


@pytest.mark.parametrize(("model", "said"), [("rule", True), ("logistic_regression", False)])
def test_a_given_rule_is_not_called_a_model_of_the_lender(model, said):
    given = {"rule": {"weights": {"income": 1.0}, "limit": 3.0}} if said else {}
    text = all_methods(model={"kind": model, **given}).lower()
    assert ("the rule that is audited" in text) == said
    assert ("fitted to the lender" in text) != said
    assert ("model of the lender" in text) != said
    assert ("approved by the rule" in text) == said


def test_the_policy_for_departures_of_a_file_of_hmda_is_told():
    said = report_tables.settings()
    policy = {"missing_columns": "accept", "unknown_codes": "stop"}
    source = Source.model_validate({"kind": "hmda", "path": "lar.csv", "policy": policy})
    of_hmda = Material(said.model_copy(update={"source": source}), (), (), (), (), ())
    *_, told = quality(of_hmda, []).words
    assert "the file cannot give: accept; a column that the file's layout does not know: accept; a code" in told
    assert "in a column named: stop. Rows" in told
    assert len(quality(Material(said, (), (), (), (), ()), []).words) == 1


def _of(direction, approval=None):
    own = report_tables.with_tables(approval, decision_direction=direction)
    return report.function(*own, settings=report_tables.settings()).files


def test_an_exchanged_decision_is_one_warning_of_the_json():
    files = _of(report_tables.direction(0.31, 0.34))
    [warning] = json.loads(files["report.json"])["warnings"]
    assert warning.startswith("columns_swapped: ")
    assert "favourable ['1', '2'] and unfavourable ['3']" in warning
    assert "AUC of 0.31" in files["report.html"].decode()
    assert "swapped" not in files["report.html"].decode()


def test_a_reference_group_that_fares_worst_is_a_plain_sentence():
    worse = {REFERENCE: 0.2, HOSTILE[0]: 0.6, HOSTILE[1]: 0.7, "Asian": 0.8}
    files = _of(report_tables.direction(), worse)
    assert json.loads(files["report.json"])["warnings"] == []
    assert "has the lowest approval rate of all groups: 20.0\u00a0%." in files["report.html"].decode()
    assert not any("swapped" in content.decode() for content in files.values())


def test_a_decision_without_directed_columns_reads_as_not_checked(page):
    assert "AUC of 0.70" in page
    assert "not checked" in _of(report_tables.direction(None, None))["report.html"].decode()


def test_machine_paths_stay_out(produced):
    for content in produced.files.values():
        assert b"secret place" not in content
        assert b"/srv" not in content


def test_withheld_and_undefined_are_two_things(read):
    assert any("Asian" in row and "withheld" in row for row in read.rows)
    assert any("undefined" in row for row in read.rows)


def test_small_counts_of_the_waterfall_are_withheld(read):
    line = next(row for row in read.rows if "malformed line" in row)
    assert "3" not in line
    assert "withheld" in line


def test_headings_do_not_skip_levels(read):
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_words_that_are_not_ours(page):
    text = unscripted(page).lower()
    assert "unbiased" not in text
    assert "discrimination" not in text


def test_every_table_has_a_caption(page):
    bare = unscripted(page)
    assert bare.count("<table>") == bare.count("<caption>")


def test_the_same_tables_give_the_same_bytes(produced):
    again = report.function(*report_tables.tables(), settings=report_tables.settings())
    assert again.files == produced.files


def test_rows_in_are_rows_refused_and_rows_used():
    _, _, refusals, _, memberships, *_ = report_tables.tables()
    fall = waterfall(refusals, memberships, "race")
    assert fall.source.sum() == memberships.num_rows + 3, "three malformed lines have no group"
    assert fall.refused.sum() == refusals.num_rows
    assert dict(zip(fall.groups, fall.used.tolist(), strict=True)) == report_tables.SIZES | {"(not readable)": 0}
    assert (fall.favourable <= fall.readable).all()
    assert (fall.readable <= fall.refused).all()


def test_a_subtotal_that_gives_a_withheld_cell_away_is_withheld():
    since, left = np.array([1, 2, 0, 0]), np.array([50, 40, 30])
    after = np.array([[True, False, False, False], [True, True, False, False]])
    assert _giving_away(since, after, left).tolist() == [True, True, False, False]
    alone = _giving_away(np.array([1, 0, 0, 0]), after[:0], left)
    assert alone.sum() == 2, "one withheld subtotal would follow from the total of its line"


def test_the_model_is_not_rated_on_a_handful(page):
    table = page[page.index("How well the model follows the lender, by race</span>") :]
    line = next(row for row in Reader(table[: table.index("</table>")]).rows if "Asian" in row)
    assert line.count("too few to say") == 5


def test_a_withheld_cell_among_zeros_is_not_given_away_by_its_total():
    counts = np.array([[900, 0, 3], [40, 0, 2], [5000, 16, 60]])
    hidden = withhold_table(POLICIES["public"], counts)
    assert ((counts > 0) & (counts < 5) <= hidden).all()
    assert (hidden.sum(axis=0) != 1).all()
    assert (hidden.sum(axis=1) != 1).all()
