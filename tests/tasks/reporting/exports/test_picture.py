"""The picture of a first page: its answers as text, names of groups as text, nothing loaded, and small."""

from xml.etree import ElementTree

import pytest
from decide_runs import boston, texas
from report_tables import HOSTILE, renamed

from tasks.reporting.exports.single_file import WIDTH, picture
from tasks.reporting.first_page.page import decide

NAMED = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("run", [boston(), texas()], ids=["boston", "texas"])
def test_it_says_headline_questions_states_and_advice_and_stays_within_its_frame(run):
    decision = decide(run)
    drawn = ElementTree.fromstring(picture(decision, "An audit"))
    texts = list(drawn.iter(f"{NAMED}text"))
    said = " ".join("".join(each.itertext()) for each in texts)
    for words in (decision.headline.words, *(q.question for q in decision.questions)):
        assert all(word in said for word in words.split()), words
    written = " ".join(each.text for each in texts if each.text)
    assert all(q.against in written and q.reliable in written for q in decision.questions)
    assert all(0 <= float(each.get("x", "0")) < WIDTH for each in texts)
    assert max(float(each.get("y", "0")) for each in texts) < float(drawn.get("height", "0"))


def test_names_are_text_nothing_is_loaded_and_it_is_small():
    names = dict(zip(("Black", "white"), HOSTILE, strict=False))
    content = picture(decide(renamed(boston(), names)), "<script>alert(1)</script>")
    drawn = ElementTree.fromstring(content)
    assert not [each for each in drawn.iter() if each.tag in {f"{NAMED}script", f"{NAMED}image", f"{NAMED}use"}]
    assert b"href" not in content
    assert len(content) < 30_000
