"""Draws the figures for which the paper prints no numbers: from what was obtained, and from the blocks of a list."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tasks.methods.raguel.reproduction import example, grid, lists, series
from tasks.methods.raguel.reproduction.lists import Ranked
from tasks.numerics.arrays import Longs
from tasks.proof.drawings import Curve, Drawing, curves
from tasks.proof.lines import Cell, Value

FIGURE_3: Final = (20, 1 / 5)
"""Blocks and tolerance of the paper's Figure 3."""


def worked_example(found: Mapping[Cell, Value]) -> Drawing:
    """Figure 1: the four applicants, the way from each to its counterfactual point, and the boundary."""
    ways = [
        Curve(name, (amount, _at(found, "counterfactual_loan_amount", name)), (duration, _at(found, _DURATION, name)))
        for name, (amount, duration) in zip(example.NAMES, example.APPLICANTS, strict=True)
    ]
    line = Curve("boundary", (0.0, 5.0), (0.0, 10.0))
    title = "Worked example: the way of each applicant to the boundary"
    return Drawing(
        "worked-example", "Figure 1", title, "loan amount (1,000 dollars)", "loan duration (years)", (*ways, line)
    )


_DURATION: Final = "counterfactual_loan_duration"


def ratio_by_blocks(found: Mapping[Cell, Value]) -> Drawing:
    """Figure 2: the ratio of the whole list against the number of blocks, for each tolerance and list."""
    drawn = {
        f"t = 1/{round(1 / t)}, {words}": [_at(found, "overall_ratio", f"{who}, blocks", t, n) for n in grid.BLOCKS]
        for who, words in ((lists.UNFAVOURABLE, "refused"), (lists.ALL, "everybody"))
        for t in grid.TOLERANCES
    }
    title = "Recourse ratio after RAGUEL-Block by number of blocks and tolerance"
    return Drawing("ratio-by-blocks", "Figure 2", title, "blocks", "recourse ratio", curves(grid.BLOCKS, drawn))


def block_shares(ranked: Ranked) -> Drawing:
    """Figure 3: the protected group's share of each block before and after, between what is allowed."""
    blocks, tolerance = FIGURE_3
    held = ranked.held(tolerance)
    ended = grid.in_blocks(ranked, held, blocks)
    if ended.block is None or ended.block_before is None:
        raise ValueError("the list was not cut into blocks")
    share = float((ranked.records.group != ranked.reference).mean())
    before, after = (_shares(ranked, block) for block in (ended.block_before, ended.block))
    drawn = {
        "before": before,
        "after": after,
        "least allowed": [(1 - tolerance) * share] * len(before),
        "most allowed": [(1 + tolerance) * share] * len(before),
    }
    title = "Share of the protected group in each block before and after RAGUEL-Block, t = 1/5"
    return Drawing("block-shares", "Figure 3", title, "block", "share", curves(range(1, len(before) + 1), drawn))


def by_records(found: Mapping[Cell, Value], most: int) -> tuple[Drawing, Drawing]:
    """Figure 4: ratios, and ranking quality, against the number of records of the list."""
    lengths = series.lengths(most)
    after = series.ONE_BORDER
    of_ratios = {
        "initial, of the whole list": [_at(found, "initial_ratio", "all", n) for n in lengths],
        "mean of the blocks": [_at(found, "mean_block_ratio", after, n) for n in lengths],
        "of the whole list": [_at(found, "overall_ratio_after", after, n) for n in lengths],
    }
    of_quality = {
        f"{words}, {name}": [_at(found, f"{metric}_by_records", group, n) for n in lengths]
        for metric, words in (("rkl", "rKL"), ("rnd", "rND"), ("rrd", "rRD"))
        for group, name in ((series.BEFORE, "before"), (after, "after"))
    }
    said = "Drawn lists in blocks of 100, t = 1/3: "
    x = "records (logarithm to base 10)"
    places = np.log10(lengths).tolist()
    return (
        Drawing("ratio-by-records", "Figure 4", said + "recourse ratios", x, "ratio", curves(places, of_ratios)),
        Drawing("quality-by-records", "Figure 4", said + "ranking quality", x, "metric", curves(places, of_quality)),
    )


def _shares(ranked: Ranked, block: Longs) -> list[float]:
    protected = ranked.records.group != ranked.reference
    found: list[float] = (np.bincount(block, weights=protected) / np.bincount(block)).tolist()
    return found


def _at(found: Mapping[Cell, Value], quantity: str, group: str, *at: float) -> float:
    value = found.get(Cell(quantity, group, tuple(map(float, at))))
    return value if isinstance(value, float) else float("nan")
