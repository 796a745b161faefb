"""The sign-off on the first page and in report.json: what a draft, an approved and a rejected run say."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from decide_runs import boston, texas
from report_tables import material

from schemas.report import Report
from tasks.reporting.exports.single_file import budget_lines
from tasks.reporting.material import Signature, Signed
from tasks.reporting.pages import short

MANIFEST, HEAD = "ab" * 32, f"12:{'cd' * 32}"
ANN = Signature("Ann <b>Lee</b>", "prepared", "2026-11-20", MANIFEST)
BOB = Signature("Bob Ray", "approved", "2026-11-23", MANIFEST, key="3f9c000000000000")
NO = Signature("Bob Ray", "rejected", "2026-11-23", MANIFEST, "wrong year " * 200)


def made(signed: Signed) -> dict[str, bytes]:
    return short(replace(material(texas()), signed=signed))


def said(files: dict[str, bytes]) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", files["report.html"].decode())).split())


@pytest.mark.parametrize(
    ("signed", "kicker", "words"),
    [
        (Signed(), "not signed yet", "not signed yet"),
        (
            Signed("prepared", (ANN,), head=HEAD),
            "draft, prepared",
            "Draft, prepared. Prepared by: Ann <b>Lee</b>, 2026-11-20. Reviewed by: open. Approved by: open. Names as "
            f"given, not verified. Signed manifest: {MANIFEST}. Log: {HEAD}.",
        ),
        (
            Signed("approved", (ANN, BOB), head=HEAD),
            "approved",
            "Approved. Prepared by: Ann <b>Lee</b>, 2026-11-20. Reviewed by: open. Approved by: Bob Ray, 2026-11-23 "
            f"(key 3f9c000000000000). Names without a key are as given, not verified. Signed manifest: {MANIFEST}.",
        ),
        (Signed("rejected", (NO,), head=HEAD), "rejected", "Rejected by Bob Ray, 2026-11-23: wrong year wrong year"),
        (
            Signed(before="The run before, r-1, was approved by Bob Ray, on other data."),
            "not signed yet",
            "Approved by: open. The run before, r-1, was approved by Bob Ray, on other data.",
        ),
    ],
    ids=["draft", "prepared", "approved", "rejected", "the run before"],
)
def test_the_first_page_and_report_json_say_who_signed(signed: Signed, kicker: str, words: str) -> None:
    files = made(signed)
    assert f"audited 27 November 2026 · {kicker} " in said(files)
    assert words in said(files)
    found = Report.model_validate(json.loads(files["report.json"])).signatures
    assert [(each.name, each.role, each.key) for each in found] == [(s.by, s.role, s.key) for s in signed.signatures]
    assert [line.path for line in budget_lines(files) if line.over] == []


@pytest.mark.parametrize(("signature", "is_claim"), [(ANN, False), (BOB, True)], ids=["no key", "key"])
def test_a_page_says_that_a_key_that_nobody_trusts_makes_names_no_more_than_claims(
    signature: Signature, is_claim: bool
) -> None:
    claims = "No key is trusted here: names are claims."
    assert (claims in said(made(Signed("reviewed", (signature,), trusted=False)))) == is_claim
    assert claims not in said(made(Signed("reviewed", (signature,))))


def test_a_name_is_text_and_many_of_a_role_are_counted() -> None:
    files = made(Signed("reviewed", (ANN, *(replace(BOB, role="reviewed", by=f"Cy {i}") for i in range(9)))))
    assert b"Ann &lt;b&gt;Lee&lt;/b&gt;" in files["report.html"]
    assert "Cy 8, 2026-11-23 (key 3f9c000000000000); 6 more. Approved by: open" in said(files)
    assert [line.path for line in budget_lines(files) if line.over] == []


def test_a_draft_has_the_bytes_that_a_run_itself_writes() -> None:
    assert made(Signed()) == short(material(texas())) != short(material(boston()))
