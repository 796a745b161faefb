"""What the ladder obtains of Boston 1990: every rung against the white applicants, in the textbooks' linear form."""

from collections.abc import Iterator, Mapping

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Block, Control
from tasks.methods.adjusted.algorithm.ladder.effect import Effect
from tasks.methods.adjusted.algorithm.ladder.rungs import Ladder, climb
from tasks.methods.adjusted.reproduction.samples import Sample, loanapp
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.proof.lines import Cell, Value

GROUPS = ("white", "Black", "Hispanic")
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "terms": ("loanamt", "loanprc", "term", "multi", "cosign"),
    "finances": ("appinc", "hrat", "obrat", "unem", "dep", "self", "sch"),
    "history": ("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
}
SETTINGS = AdjustedSettings(form="linear")
LEVEL, SEED = 0.95, 0


def boston() -> Applications:
    """The applications with blocks of numbers, missing values among them."""
    sample = loanapp()
    group = np.where(sample.column("black") == 1, 1, np.where(sample.column("hispan") == 1, 2, 0)).astype(np.int32)
    blocks = tuple(Block(name, tuple(_number(sample, each) for each in names)) for name, names in BLOCKS.items())
    return Applications(sample.column("reject") == 1, group, GROUPS, 0, blocks)


def _number(sample: Sample, name: str) -> Control:
    return Control(name, "number", sample.column(name))


def cells() -> Iterator[tuple[Cell, Value]]:
    """The effects of every rung and group, and support on the last."""
    found = climb(boston(), SETTINGS, LEVEL, np.random.default_rng(SEED))
    yield Cell("rows", "all"), float(found.used)
    for effect in found.effects:
        for quantity, value in _told(effect).items():
            yield Cell(quantity, GROUPS[effect.group], (f"rung {effect.rung}",)), value
    yield from _support(found)


def _told(effect: Effect) -> dict[str, float]:
    of = (effect.estimator, effect.average_over)
    if of == ("logit", "own"):
        figures = {"odds_ratio": effect.odds_ratio, "e_value": effect.e_value}
        return {"own_effect": effect.value, "own_error": effect.se, **figures}
    if of == ("logit", "all"):
        return {"all_effect": effect.value}
    if effect.estimator == "lpm":
        return {"lpm": effect.value, "lpm_error": effect.se, "robustness_value": effect.rv}
    return {effect.estimator: effect.value, f"{effect.estimator}_error": effect.se}


def _support(found: Ladder) -> Iterator[tuple[Cell, Value]]:
    for each in found.support:
        figures = {
            "on_support": each.inside,
            "difference_raw": each.difference_raw,
            "difference_weighted": each.difference_weighted,
        }
        for quantity, value in figures.items():
            yield Cell(quantity, GROUPS[each.group], (f"rung {each.rung}",)), value
