"""The planted lenders of ``evenhand bench verdicts`` at fixed seeds, held against what each must give."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from research.bench.lenders import OPEN, OUTSIDE, SHAPES, WITHIN, Lender, Shape
from research.bench.verdicts import BENCH, KINDS, QUIET, answer_to, answers, line_of

SEEDS = 10
MOST_WRONG = int(binom.ppf(0.99, SEEDS, QUIET))
"""Of so many lenders at the target, which is exceeded with a probability of 1 %."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_state_and_findings_of_a_planted_lender(shape: Shape) -> None:
    seen = answers(shape, SEEDS)
    states, kinds = Counter(answer.state for answer in seen), Counter(k for answer in seen for k in answer.kinds)
    assert sum(states[state] for state in shape.states) >= SEEDS - MOST_WRONG
    assert {kind: kinds[kind] for kind in shape.finds if kinds[kind] < SEEDS - MOST_WRONG} == {}
    quiet = set(KINDS) - {*shape.finds, *shape.may_find}
    assert {kind: kinds[kind] for kind in quiet if kinds[kind] > MOST_WRONG} == {}
    # what a mean hides is never within, and an emptied reference file never outside
    assert not (shape.harms and states[WITHIN])
    assert not (shape.name == "reference files lack money" and states[OUTSIDE])
    if shape.part:
        assert sum(shape.part in answer.part for answer in seen) >= SEEDS - MOST_WRONG


def test_copies_give_the_state_effect_and_interval_of_the_file_without_them() -> None:
    shape = next(shape for shape in SHAPES if shape.name == "copied")
    lender = shape.draw(np.random.default_rng([4, 1]), shape.rows)
    alone = Lender(lender.files.taken(np.arange(shape.rows)), lender.effect)
    copied, once = answer_to(lender, 0), answer_to(alone, 0)
    assert copied.kinds == ("copies",)
    assert once.kinds == ()
    same = ("value", "low", "high", "p_breach", "state", "reason")
    read = [{name: getattr(answer.verdict, name, None) for name in same} for answer in (copied, once)]
    assert read[0] == read[1]
    assert copied.facts == once.facts


def test_a_line_says_how_often_and_whether_the_target_is_met() -> None:
    shape = SHAPES[0]
    line = line_of(shape, answers(shape, 2))
    assert (line["data"], line["rows"], line["ratio"], line["met"]) == (shape.name, 2, 1.0, "met")
    assert "power 1.00" in line["found"]
    wrong = line_of(Shape(shape.name, shape.rows, shape.draw, (OPEN,)), answers(shape, 2))
    assert (wrong["ratio"], wrong["met"]) == (0.0, "missed")


def test_the_bench_has_a_row_for_each_shape_and_takes_repetitions() -> None:
    assert "--reps" in BENCH.options
    rows = BENCH.run(rows=400, reps=1)
    assert [row["data"] for row in rows] == [shape.name for shape in SHAPES]
