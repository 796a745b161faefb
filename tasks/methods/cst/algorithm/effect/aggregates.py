"""Aggregates of the effects on every group: values, intervals at 95 %, and what verdicts rest on."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import norm

from tasks.methods.cst.algorithm.comparisons import CST
from tasks.methods.cst.algorithm.effect.deep_lists import DeepLists
from tasks.methods.cst.algorithm.effect.effects import EffectOf
from tasks.methods.cst.algorithm.effect.excess import ADJUSTED, RAW, ExcessShare, excess_share
from tasks.methods.cst.algorithm.effect.groups import Frame, GroupEffects, with_refits
from tasks.methods.cst.algorithm.effect.relabelling import TOO_MANY_ROWS, Ground, randomization_p
from tasks.methods.cst.algorithm.null import strata_of
from tasks.numerics.arrays import Longs
from tasks.numerics.results import Aggregate, Inference
from tasks.numerics.statistics.propensity import propensity, strata

LEVEL = 0.95

FEW = 300
"""Complainants below which an excess share whose interval holds 0 says nothing (spread between twins 0.05 to 0.1)."""

LEFT_OUT = {
    "nearest": "its interval leaves out how matches were chosen, by the decision among others",
    "gan": "no interval: the generator is not fitted again",
    "quantile": "no interval: the generator is not fitted again",
}
"""By generator, what the error of CST leaves out; it has no entry where nothing is left out."""


def aggregates(frame: Frame, effects: Sequence[GroupEffects], rng: np.random.Generator) -> list[Aggregate]:
    """All effects of an audit: of every group, without parameters, at ``settings.k``.

    Args:
        frame: Rows, labels and counterfactuals.
        effects: The groups.
        rng: Draws resamples and permutes labels.
    """
    refits, permutations = rng.spawn(2)
    out: list[Aggregate] = []
    for found in with_refits(frame, effects, refits):
        out += _effects(frame, found)
        out += _excess(frame, found)
        out += _randomized(frame, found, permutations.spawn(1)[0])
    return out


def _effects(frame: Frame, found: GroupEffects) -> Iterator[Aggregate]:
    """The effect of each variant, and their difference: what goes through the mediators of the graph."""
    if found.sides is None:
        names = [f"{variant}_effect" for variant in found.variants]
        for name in (*names, *["mediated_effect"] * (CST in found.variants)):
            yield _aggregate(frame, found, name, EffectOf.refused(found.complainants, found.reason))
        return
    variance = found.sides.variance(len(frame.denied))
    for variant, each in zip(found.variants, found.contrasts, strict=True):
        yield _aggregate(frame, found, f"{variant}_effect", EffectOf.of(each, frame.denied, variance))
    if CST in found.variants:
        st, cst = found.contrasts
        yield _aggregate(frame, found, "mediated_effect", EffectOf.of(cst.less(st), frame.denied, variance))


def _excess(frame: Frame, found: GroupEffects) -> Iterator[Aggregate]:
    for place, variant in enumerate(found.variants):
        for numerator in (RAW, ADJUSTED):
            share = ExcessShare(reason=found.reason)
            if found.sides is not None:
                variance = found.sides.variance(len(frame.denied))
                share = excess_share(found.contrasts[place], found.rows[0], frame.denied, variance, numerator, LEVEL)
            yield _of_share(frame, found, variant, numerator, share)


def _of_share(frame: Frame, found: GroupEffects, variant: str, numerator: str, share: ExcessShare) -> Aggregate:
    """An excess share, about which no verdict is made; few complainants whose interval holds 0 are named."""
    left_out = LEFT_OUT.get(frame.settings.generator, "") if variant == CST and np.isfinite(share.value) else ""
    interval = None if left_out.startswith("no interval") else share.interval
    few = interval is not None and interval[0] < 0 < interval[1] and found.complainants < FEW
    notes = (share.reason, left_out, f"fewer than {FEW} complainants" * few)
    return Aggregate(
        group=found.group,
        subgroup=0,
        measure="excess_share_of_denials",
        parameters={"numerator": numerator, "variant": variant},
        value=share.value,
        n=found.complainants,
        compared=False,
        reason="; ".join(note for note in notes if note),
        interval=interval,
    )


def _aggregate(frame: Frame, found: GroupEffects, measure: str, effect: EffectOf) -> Aggregate:
    """An effect with its interval; without one where its error is not known, and then no verdict rests on it."""
    left_out = LEFT_OUT.get(frame.settings.generator, "") if measure in ("cst_effect", "mediated_effect") else ""
    half = float(norm.ppf((1 + LEVEL) / 2)) * effect.se
    known = effect.se > 0 and not left_out.startswith("no interval")
    notes = (effect.reason, left_out if np.isfinite(effect.value) else "")
    return Aggregate(
        group=found.group,
        subgroup=0,
        measure=measure,
        parameters={},
        value=effect.value,
        n=effect.complainants,
        compared=False,
        reason="; ".join(note for note in notes if note),
        interval=(effect.value - half, effect.value + half) if known else None,
        inference=Inference(se=effect.se, counted=_counted(frame, found)) if known and not left_out else None,
    )


def _counted(frame: Frame, found: GroupEffects) -> tuple[int, int, int, int]:
    """Applications and denials on either side."""
    of = [(len(rows), int(frame.denied[rows].sum())) for rows in found.rows]
    return (*of[0], *of[1])


def _randomized(frame: Frame, found: GroupEffects, rng: np.random.Generator) -> Iterator[Aggregate]:
    """The p of situation testing with labels permuted; every decision maker sees the same permutations."""
    settings, rows = frame.settings, np.sort(np.concatenate(found.rows))
    if not settings.null_draws:
        return
    p, reason = float("nan"), found.reason
    if not reason and len(rows) > settings.null_rows:
        reason = TOO_MANY_ROWS
    if not reason:
        p = _p(frame, found, rows, rng)
    n = found.complainants
    yield Aggregate(found.group, 0, "st_effect_p", {}, p, n, compared=False, reason=reason)


def _p(frame: Frame, found: GroupEffects, rows: Longs, rng: np.random.Generator) -> float:
    settings, sides = frame.settings, found.sides
    if sides is None or sides.unchanging:
        return float("nan")
    member = frame.ground.group[rows] == found.group
    z = sides.own.design.of(frame.columns.values[rows])
    stratum = strata(propensity(z, member))
    if settings.null == "labels":
        stratum = strata_of(frame.columns, frame.ground.applicants.reached)[rows]
    lists = DeepLists.of(frame.ground.space.rows(rows), int(member.sum()), settings)
    return randomization_p(Ground(lists, z, frame.denied[rows]), member, stratum, settings.null_draws, rng)
