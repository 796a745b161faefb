"""Each rule by which cells are read, switched off, fails a test of ours, and most fail a table of the corpus."""

import pytest
from benches.rule_mutation import CORPUS, RULES, mutated
from conftest import SHARED

NOT_HELD = frozenset(switch.rule for switch in RULES if switch.first is None)
"""Rules that no table of the corpus needs: tests of our own hold them."""


@pytest.mark.long
@pytest.mark.data(str(CORPUS))
def test_the_corpus_misses_every_rule_that_is_switched_off() -> None:
    first, *rows = mutated(SHARED / CORPUS, enough=1)
    assert first["fail"] == "", "all tables pass with every rule"
    assert [row["rule"] for row in rows] == [switch.rule for switch in RULES]
    assert {row["rule"] for row in rows if not row["test"]} == set()
    assert {row["rule"] for row in rows if not row["tables"]} <= NOT_HELD
