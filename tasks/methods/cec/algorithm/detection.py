"""Counterfactual explanation consistency (CEC; Popoola and Sheppard 2026)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from schemas.terms import Note
from tasks.counterfactuals.algorithm.nearest import Matching
from tasks.methods.cec.algorithm import own_group
from tasks.methods.cec.algorithm import pairs as cec_pairs
from tasks.methods.cec.algorithm.own_group import Reasons, without
from tasks.methods.cec.algorithm.pairs import Scored, View
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.arrays import Bools, Ints, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import ModelView, Problem, Refit
from tasks.numerics.results import Aggregate, Detected, Draws, Evidence, Findings, Tally
from tasks.numerics.statistics.regression import is_poor, support
from tasks.numerics.statistics.sampling import Asked

# --------------------------------------------------------------------------------------------------------------------
# Findings of CEC: score, verdict and match of each row, and the features with different attributions.
#
# Scope: rows of findings and evidence. Means over them: ``tallies``.


SUPPORT = "matching_support"
"""Share of a group with comparable applicants in the reference group."""
CLIPPED = (0.01, 0.99)
"""Quantiles at which financial columns are clipped for it."""

VERDICTS = ("same_reasons", "different_reasons", "flipped_same_reasons", "flipped_different_reasons")
"""Of the regimes A to D; B, ``different_reasons``, is what the paper calls hidden bias."""

NOT_TESTED = "not_tested"
"""Verdict on a row without a score."""

MATCH, PARTED = "match", "parts_in"
"""Roles in the evidence: the match, its value a distance; and, with the feature after a colon, where reasons part."""

FEATURES = 3
"""Features in the evidence of each pair."""


def findings(of_groups: Sequence[Scored], settings: CecSettings) -> Findings:
    """One entry per row of any group, ascending: its score and regime, or why it has none."""
    row = np.concatenate([np.zeros(0, np.int64), *(scored.matches.row for scored in of_groups)])
    cec = np.concatenate([np.zeros(0), *(scored.compared.cec for scored in of_groups)])
    flip = np.concatenate([np.zeros(0), *(scored.compared.flip for scored in of_groups)])
    refusal = np.concatenate([np.zeros(0, dtype=str), *(scored.reason for scored in of_groups)])
    regime = cec_pairs.regimes(cec, flip, settings.theta)
    order = np.argsort(row)
    return Findings(
        row=row[order],
        subgroup=np.zeros(len(row), np.int32),
        verdict=np.array((*VERDICTS, NOT_TESTED))[regime][order],  # no regime is -1, and so the last
        statistic=cec[order],
        refusal=refusal[order],
    )


def evidence(of_groups: Sequence[Scored], names: tuple[str, ...]) -> Evidence:
    """The match of every matched row, then the features in which a scored pair differs most, if it differs at all."""
    empty = np.zeros(0, np.int64), np.zeros(0, dtype=str), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0)
    parts = [empty]
    for scored in of_groups:
        matches, matched = scored.matches, np.flatnonzero(scored.matches.matched)
        ones = np.ones(len(matched), np.int32)
        parts.append(
            (
                matches.row[matched],
                np.full(len(matched), MATCH),
                ones,
                matches.match[matched],
                matches.distance[matched],
            )
        )
        parted = np.nan_to_num(scored.compared.parted)
        largest = cec_pairs.largest(parted, FEATURES)
        distance = np.take_along_axis(parted, largest, axis=1)
        at, place = np.nonzero(distance > 0)
        features = np.array([f"{PARTED}: {name}" for name in names])[largest[at, place]]
        ranks = (place + 1).astype(np.int32)
        parts.append((matches.row[at], features, ranks, matches.match[at], distance[at, place]))
    row, role, rank, other, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((rank, role != MATCH, row))
    return Evidence(row[order], role[order], rank[order], other[order], value[order])


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual explanation consistency (CEC; Popoola and Sheppard 2026): the method.
#
# A model may give two comparable applicants of different groups the same answer for different reasons. Every row
# outside the reference group is matched with the most comparable member of the reference group with the same outcome.
# The model's attributions for both, from one baseline, are reduced to directions and compared. The score is printed
# with its matching floor: the score of a model of the financial features alone on the same pairs.
#
# Scope: the order of the method. Steps: ``pairs``, ``score``, ``tallies`` by group, ``findings`` by row, and
# ``training`` for consistency. Matching: ``tasks.counterfactuals.algorithm.nearest``.


@dataclass(frozen=True)
class Audited:
    """Models and the groups with compared explanations."""

    explained: ModelView
    group: Ints
    """``(n,)`` index into ``groups``."""
    groups: tuple[str, ...]
    reference: int
    resamples: int = 0
    """Bootstrap replicates that every aggregate is to carry."""
    columns: Columns | None = None
    """What all applicants handed in, but for columns that the groups are made of."""
    refit: Refit | None = None
    sample: Asked | None = None
    """The rows of a sample that are matched; None: all."""

    def rows(self, group: int) -> Longs:
        """Queried members of a group, ascending."""
        member = np.equal(self.group, group)
        return np.flatnonzero(member if self.sample is None else member & self.sample.drawn)


def detect(problem: Problem, settings: CecSettings, rng: np.random.Generator) -> Detected:
    """Compare the reasons of every row outside the reference group with those of its match in it.

    Args:
        problem: One decision maker and one protected attribute; ``explained`` is needed. A decision maker that cannot
            be looked into, as a lender's own decisions cannot, has no findings.
        settings: All of the method.
        rng: Draws pairs anew for the intervals of shares of features, then labels and rows for CEC above the own group;
            nothing else is left to chance.

    Returns:
        Findings and evidence by ascending row. Groups of whom nobody has a score have findings (refusals) and no score.

    Raises:
        DataQualityError: If a financial feature is constant or not finite, a model learnt from one label alone, or an
            attribution is not a finite number.
    """
    if problem.look_into is None:
        return Detected(findings([], settings), evidence([], ()), (), ())
    explained = problem.look_into(settings.substitute)
    applicants = problem.applicants
    audited = Audited(
        explained,
        problem.group,
        problem.groups,
        problem.reference,
        problem.resamples,
        columns=None if applicants is None else without(applicants.columns, applicants.attribute_columns),
        refit=problem.refit,
        sample=problem.sample,
    )
    return assess(audited, settings, rng)


def units(problem: Problem) -> Bools:
    """Rows with a finding, ``(n,)``: outside the reference group and in the sample; none without model explanations."""
    outside: Bools = (problem.group != problem.reference) & problem.drawn
    return outside if problem.look_into is not None else np.zeros(len(problem.group), np.bool_)


def assess(audited: Audited, settings: CecSettings, rng: np.random.Generator) -> Detected:
    """As ``detect``, of models and groups alone."""
    model_views = cec_pairs.views(audited.explained, audited.group, Matching.of(settings))
    other_groups = [int(g) for g in np.unique(audited.group) if g != audited.reference]
    scored = {group: pairs(audited, model_views, group, audited.reference) for group in other_groups}
    tallies: list[Tally] = []
    aggregates: list[Aggregate] = []
    within = {group: _within(audited, model_views, group) for group in other_groups}
    for group, group_scores in scored.items():
        group_tallies = list(cec_pairs.scores(group_scores, settings, {}, headline=True))
        own_scores = within[group]
        if own_scores is not None:
            group_tallies += cec_pairs.within(group_scores, own_scores)
        group_tallies += cec_pairs.theta_curve(group_scores, settings)
        group_tallies += cec_pairs.features(group_scores, audited.explained.features)
        tallies += [replace(t, group=group) for t in group_tallies]
        group_aggregates = cec_pairs.aggregates(group_scores, audited.explained.features, audited.resamples, rng)
        aggregates += [replace(a, group=group) for a in group_aggregates]
    tallies += _of_other_pairs(audited, model_views, settings)
    own_aggregates, draws = _above_own_group(audited, model_views, scored, within, settings, rng)
    of_groups = list(scored.values())
    group_findings = findings(of_groups, settings), evidence(of_groups, audited.explained.features)
    return Detected(*group_findings, tuple(tallies), tuple(draws), (*aggregates, *own_aggregates))


def pairs(audited: Audited, model_views: tuple[View, ...], group: int, to: int) -> Scored:
    """The rows of one group matched with another group and scored."""
    return cec_pairs.score_pairs(audited.explained, model_views, audited.rows(group), to)


def _within(audited: Audited, model_views: tuple[View, ...], group: int) -> Scored | None:
    """The rows of a group matched with their own group; None where they would find themselves, as under a rule."""
    rows = audited.rows(group)
    explainer = audited.explained.explainer[rows]
    if any(pool[rows[explainer == model]].any() for model, pool in enumerate(audited.explained.pools)):
        return None
    return cec_pairs.score_pairs(audited.explained, model_views, rows, group)


def _above_own_group(
    audited: Audited,
    model_views: tuple[View, ...],
    scored: Mapping[int, Scored],
    within: Mapping[int, Scored | None],
    settings: CecSettings,
    rng: np.random.Generator,
) -> tuple[list[Aggregate], list[Draws]]:
    """What a verdict on reasons rests on, of every group outside the reference group."""
    of = Reasons(
        audited.explained, model_views, audited.group, audited.reference, audited.columns, audited.refit, audited.sample
    )
    measured = [group for group, own_scores in within.items() if own_scores is not None]
    resampled = of.resampled(measured, settings, rng)
    aggregates: list[Aggregate] = []
    draws: list[Draws] = []
    for group, own_scores in within.items():
        null_draws = of.draws(group, settings.relabelled_draws if own_scores is not None else 0, rng)
        aggregate, against = own_group.above_own_group(
            group, scored[group], own_scores, null_draws, resampled.get(group)
        )
        share = _support(audited, group)
        poor = "; ".join(filter(None, (aggregate.reason, Note.POOR_SUPPORT * is_poor(share))))
        n = len(audited.rows(group))
        aggregates += [replace(aggregate, reason=poor), Aggregate(group, 0, SUPPORT, {}, share, n, compared=False)]
        draws += against
    return aggregates, draws


def _support(audited: Audited, group: int) -> float:
    """Share of a group with comparable applicants in the reference group, by financial columns and outcome."""
    explained, pair_rows = audited.explained, np.isin(audited.group, (group, audited.reference))
    low, high = np.quantile(explained.financial[pair_rows], CLIPPED, axis=0)
    numbers = np.column_stack([np.clip(explained.financial[pair_rows], low, high), explained.label[pair_rows]])
    numbers = numbers[:, numbers.std(axis=0) > 0]
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    return support(np.column_stack([np.ones(len(numbers)), numbers]), audited.group[pair_rows] == group)


def _of_other_pairs(audited: Audited, model_views: tuple[View, ...], settings: CecSettings) -> Iterator[Tally]:
    """Pairs of groups that no finding is about. Seen from the other side a pair of groups has other matches."""
    present = np.unique(audited.group).tolist()
    for group, to in permutations(present, 2):
        is_requested = settings.pairs == "all" or (settings.pairs == "both_ways" and group == audited.reference)
        if is_requested and to != audited.reference:
            scored = pairs(audited, model_views, group, to)
            for t in cec_pairs.scores(scored, settings, {"matched_with": audited.groups[to]}, headline=False):
                yield replace(t, group=group)
