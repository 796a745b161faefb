"""CEC as a whole: a clear loop, Principle 1, the matching floor, refusals, several groups, findings and evidence."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from conftest import examples, fingerprint
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from schemas.errors import DataQualityError
from schemas.terms import Note
from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import Matching
from tasks.methods.cec.algorithm import detection as cec
from tasks.methods.cec.algorithm import pairs
from tasks.methods.cec.algorithm.detection import Audited
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.problem import FeasibilityGraph, ModelView, Problem

QUICK = hypothesis_settings(deadline=None, max_examples=examples(20))
PLAIN = CecSettings(winsorise=None, theta_steps=10)
AS_THEY_ARE = Matching(winsorise=None)


@dataclass(frozen=True)
class Quadratic:
    """f(x) = w x + x Q x / 2: its gradient is linear on any path, and its integral is the gradient in the middle."""

    weights: np.ndarray
    products: np.ndarray
    bias: float = 0.0
    name: str = "quadratic"
    exact: bool = True

    def logit(self, x):
        return x @ self.weights + ((x @ self.products) * x).sum(axis=1) / 2 + self.bias

    def attribute(self, x, baseline):
        return (x - baseline) * (self.weights + (x + baseline) / 2 @ self.products)


def quadratic(rng, inputs):
    half = rng.normal(size=(inputs, inputs))
    return Quadratic(rng.normal(size=inputs), half + half.T)


def linear(weights):
    return Quadratic(np.array(weights, float), np.zeros((len(weights), len(weights))))


def explained_of(x, label, models, **options):
    """All inputs are financial features unless told otherwise; everybody learns and is explained by the first model."""
    x, n = np.array(x, float), len(x)
    given = {
        "feature_of_column": np.arange(x.shape[1], dtype=np.int32),
        "features": tuple(f"x{j}" for j in range(x.shape[1])),
        "financial": x,
        "financial_names": tuple(f"x{j}" for j in range(x.shape[1])),
        "explainer": np.zeros(n, np.int32),
        "pools": tuple(np.ones(n, bool) for _ in models),
    } | options
    return ModelView(x, label=np.array(label, bool), models=tuple(models), **given)


def audited_of(explained, group, groups=("a", "b"), resamples=0):
    return Audited(explained, np.array(group, np.int32), groups, 0, resamples)


def scored_of(explained, group, asked=1, to=0, matching=AS_THEY_ARE):
    group = np.array(group, np.int32)
    return pairs.score_pairs(explained, pairs.views(explained, group, matching), np.flatnonzero(group == asked), to)


def random_audit(seed, n=60, groups=2):
    """Two models, each of which learnt from the rows that the other explains."""
    rng = np.random.default_rng(seed)
    x, fold = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    explained = explained_of(
        x,
        rng.random(n) < 0.6,
        [quadratic(rng, 4), quadratic(rng, 4)],
        financial=x[:, :2] * [3, 100],
        financial_names=("term", "income"),
        explainer=fold.astype(np.int32),
        pools=(fold == 1, fold == 0),
        feature_of_column=np.array([0, 1, 1, 2], np.int32),
        features=("term", "purpose", "group"),
        cuts=(0.2, -0.1),
    )
    return audited_of(explained, rng.integers(0, groups, n), tuple("abc")[:groups])


def direction(v):
    return v / (np.linalg.norm(v) + 1e-8)


def floors_by_hand(audited):
    """For each model standardised financial features, and the weights of a regression on them."""
    e = audited.explained
    for pool in e.pools:
        z = (e.financial - e.financial[pool].mean(axis=0)) / e.financial[pool].std(axis=0)
        yield z, LogisticRegression(solver="newton-cholesky").fit(z[pool], e.label[pool]).coef_[0]


def by_hand(audited, row, to, floors):
    """Of one row its match, score and floor, whether the prediction flips, where reasons part, and how far apart.

    Or the reason why there is none of it.
    """
    e, group = audited.explained, audited.group
    model, pool, cut = e.models[e.explainer[row]], e.pools[e.explainer[row]], e.cuts[e.explainer[row]]
    z, w = floors[e.explainer[row]]
    cell = [j for j in np.flatnonzero(pool) if group[j] == to and e.label[j] == e.label[row]]
    own = [j for j in np.flatnonzero(pool) if group[j] == group[row] and e.label[j] == e.label[row]]
    if not cell or not own:
        return "no_candidate" if not cell else "no_baseline"
    match = min(cell, key=lambda j: np.linalg.norm(z[j] - z[row]))
    baseline = e.x[own].mean(axis=0)
    g, h = (direction(model.attribute(e.x[[i]], baseline[None])[0]) for i in (row, match))
    r, s = (direction(w * (z[i] - z[own].mean(axis=0))) for i in (row, match))
    flip = (model.logit(e.x[[row]])[0] >= cut) != (model.logit(e.x[[match]])[0] >= cut)
    gap = np.abs(g - h)
    parted = [gap[0], gap[1] + gap[2], gap[3]]
    return match, np.linalg.norm(g - h) / 2, np.linalg.norm(r - s) / 2, flip, parted, np.linalg.norm(z[match] - z[row])


@QUICK
@given(seed=st.integers(0, 10**6))
def test_scores_are_those_of_the_loop(seed):
    audited = random_audit(seed)
    scored = scored_of(audited.explained, audited.group)
    told, floors = scored.compared, list(floors_by_hand(audited))
    for i, row in enumerate(scored.matches.row):
        expected = by_hand(audited, row, 0, floors)
        if isinstance(expected, str):
            assert scored.reason[i] == expected
            assert np.isnan(told.cec[i])
            continue
        match, score, floor, flip, parted, away = expected
        assert (scored.matches.match[i], scored.reason[i]) == (match, "")
        assert scored.matches.distance[i] == pytest.approx(away)
        assert told.cec[i] == pytest.approx(score)
        assert told.floor[i] == pytest.approx(floor)
        assert told.flip[i] == flip
        assert told.parted[i] == pytest.approx(parted)
        assert told.incompleteness[i] < 1e-9


def test_with_several_matches_score_and_floor_are_their_mean():
    audited = random_audit(3)
    one = scored_of(audited.explained, audited.group)
    few = scored_of(audited.explained, audited.group, matching=Matching(None, k=4))
    floors, e = list(floors_by_hand(audited)), audited.explained
    assert few.matches.match.tolist() == one.matches.match.tolist()
    assert few.compared.flip == pytest.approx(one.compared.flip, nan_ok=True)
    compared = 0
    for i, row in enumerate(few.matches.row):
        if few.reason[i]:
            continue
        pool, (z, w) = e.pools[e.explainer[row]], floors[e.explainer[row]]
        cell = [j for j in np.flatnonzero(pool) if audited.group[j] == 0 and e.label[j] == e.label[row]]
        own = [j for j in np.flatnonzero(pool) if audited.group[j] == audited.group[row] and e.label[j] == e.label[row]]
        near, model = sorted(cell, key=lambda j: np.linalg.norm(z[j] - z[row]))[:4], e.models[e.explainer[row]]
        baseline = e.x[own].mean(axis=0)[None]
        g, *others = (direction(model.attribute(e.x[[j]], baseline)[0]) for j in (row, *near))
        assert few.compared.cec[i] == pytest.approx(np.mean([np.linalg.norm(g - h) / 2 for h in others]))
        r, *lines = (direction(w * (z[j] - z[own].mean(axis=0))) for j in (row, *near))
        assert few.compared.floor[i] == pytest.approx(np.mean([np.linalg.norm(r - s) / 2 for s in lines]))
        compared += len(near) > 1
    assert compared > 5


def test_batches_make_no_difference(monkeypatch):
    audited = random_audit(1)
    whole = scored_of(audited.explained, audited.group).compared
    monkeypatch.setattr(pairs, "BATCH", 3)
    parts = scored_of(audited.explained, audited.group).compared
    assert parts.cec == pytest.approx(whole.cec)
    assert parts.parted == pytest.approx(whole.parted)


def test_principle_1_one_baseline_for_the_two_members_of_a_pair():
    # incomes in $1,000: group 0 has 50 on average and group 1 has 55; the model weighs every dollar alike
    income = np.array([60.0, 40, 62, 48, 0, 1])[:, None]
    group, label = np.array([0, 0, 1, 1, 0, 1]), np.array([True] * 4 + [False] * 2)
    told = []

    class Told(Quadratic):
        def attribute(self, x, baseline):
            told.append(super().attribute(x, baseline).ravel().tolist())
            return super().attribute(x, baseline)

    scored = scored_of(explained_of(income, label, [Told(np.ones(1), np.zeros((1, 1)))]), group, asked=0, to=1)
    assert scored.matches.match.tolist() == [2, 3, 5]
    (sixty, _, sixty_two, _) = next(each for each in told if len(each) == 4)
    assert (sixty, sixty_two) == (10, 12)
    # a baseline for each group would make it 10 and 7, for no reason of the model's
    mean = [income[(group == g) & label].mean(axis=0) for g in (0, 1)]
    assert [linear([1.0]).attribute(income[[i]], mean[g][None])[0, 0] for g, i in ((0, 0), (1, 2))] == [10, 7]


def financial_data(seed=0, n=3000, gap=0.5):
    """A group, and two financial features that differ a little between groups; labels depend on these alone."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n).astype(np.int32)
    financial = rng.normal(size=(n, 3)) - gap * group[:, None] * [1, 0, 0]
    label = financial @ [1.0, -0.7, 0.4] + rng.logistic(size=n) > 0
    return group, financial, label


def test_a_linear_model_on_financial_features_sits_at_its_floor():
    group, financial, label = financial_data()
    z = (financial - financial.mean(axis=0)) / financial.std(axis=0)
    fitted = LogisticRegression(solver="newton-cholesky").fit(z, label)
    same = scored_of(explained_of(z, label, [linear(fitted.coef_[0])], financial=financial), group)
    assert same.compared.floor.mean() > 0.02  # pairs differ, and so does every explanation of them
    assert same.above_floor == pytest.approx(np.zeros(len(same.above_floor)), abs=1e-9)
    free = LogisticRegression(C=np.inf, max_iter=1000).fit(financial, label)
    other = scored_of(explained_of(financial, label, [linear(free.coef_[0])]), group)
    assert abs(other.above_floor.mean()) < 0.001


def halves(n):
    """Two models, each of which learnt from the rows that the other explains."""
    odd = np.arange(n) % 2 == 1
    return {"explainer": odd.astype(np.int32), "pools": (odd, ~odd)}


@pytest.mark.parametrize(("planted", "least", "most"), [(0.0, -0.02, 0.02), (1.0, 0.04, 1.0)])
def test_within_the_group_explanations_part_as_far_unless_the_group_counts(planted, least, most):
    group, financial, label = financial_data(gap=0.0)
    further = np.random.default_rng(5).normal(size=(len(group), 2))  # no match is alike in these
    x = np.column_stack([financial, further, group])
    products = np.zeros((6, 6))
    products[5, :3] = products[:3, 5] = np.array([-1.0, 1.0, 0.0]) * planted
    model = Quadratic(np.array([1.0, -0.7, 0.4, 1.0, -1.0, 0.0]), products)
    names = {"financial": financial, "financial_names": ("f", "g", "h")}
    explained = explained_of(x, label, [model, model], **names, **halves(len(group)))
    told = assess(audited_of(explained, group))
    assert tally(told, "cec_above_floor") > 0.1, "the floor knows nothing of features that are not financial"
    assert least < tally(told, "cec_above_within_group") < most


def test_of_a_rule_that_learnt_from_nobody_there_is_no_score_within_the_group():
    group, financial, label = financial_data(n=200)
    told = assess(audited_of(explained_of(financial, label, [linear([1.0, -0.7, 0.4])]), group))
    assert not {"cec_within_group", "cec_above_within_group"} & {t.measure for t in told.tallies}


def test_planted_weights_that_depend_on_the_group_score_above_the_floor_and_more_the_larger_they_are():
    group, financial, label = financial_data()
    x = np.column_stack([financial, group])
    means = []
    for planted in (0.0, 0.25, 0.5, 1.0):
        products = np.zeros((4, 4))
        products[3, :3] = products[:3, 3] = np.array([-1.0, 1.0, 0.0]) * planted
        model = Quadratic(np.array([1.0, -0.7, 0.4, 0.0]), products)
        scored = scored_of(explained_of(x, label, [model], financial=financial, financial_names=("f", "g", "h")), group)
        above = scored.above_floor
        means.append((above.mean(), above.std() / np.sqrt(len(above))))
    at_floor, *above = means
    assert abs(at_floor[0]) < 0.005
    assert all(mean > 5 * error and mean > 0.05 for mean, error in above)
    assert [mean for mean, _ in means] == sorted(mean for mean, _ in means)


def test_on_the_synthetic_data_of_the_paper_the_true_rule_itself_is_told_as_hidden_bias():
    # a trial of our own found 0.272 and a quarter in regime B at 0.3 for the rule that made the labels
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 10_000).astype(np.int32)
    x = rng.normal(size=(10_000, 20))
    x[:, 10:15] += 0.5 * group[:, None]
    weights = np.append(rng.uniform(0.5, 1.5, 10), np.zeros(10))
    noisy = x @ weights + rng.normal(scale=0.5, size=10_000)
    names = tuple(f"f{j}" for j in range(10))
    explained = explained_of(
        x,
        noisy > np.median(noisy),
        [linear(weights)],
        financial=x[:, :10],
        financial_names=names,
        cuts=(float(np.median(noisy)),),
    )
    told = scored_of(explained, group).compared
    assert told.cec.mean() == pytest.approx(0.272, abs=0.01)
    assert ((told.cec > 0.3) & (told.flip == 0)).mean() == pytest.approx(0.245, abs=0.05)
    assert (told.cec - told.floor).mean() == pytest.approx(0, abs=0.003)


def test_given_decisions_flip_and_the_logit_does_not_speak():
    audited = random_audit(2)
    decided = np.random.default_rng(0).random(60) < 0.5
    scored = scored_of(replace(audited.explained, favourable=decided), audited.group)
    m = scored.matches
    assert scored.compared.flip.tolist() == (decided[m.row] != decided[m.match]).astype(float).tolist()


def refused(**options):
    """Six favourable rows of each of two groups, and unfavourable ones of both; one row of group 1 is spoilt."""
    x = np.concatenate([np.arange(6.0), np.arange(6) + 0.25, [9.0, 8.0, 7.0, 6.5]])[:, None]
    label = [True] * 12 + [False] * 4
    group = np.array([0] * 6 + [1] * 6 + [0, 0, 1, 1], np.int32)
    return explained_of(x, options.pop("label", label), [linear([1.0])], **options), group


def reasons(explained, group, matching=AS_THEY_ARE):
    scored = scored_of(explained, group, matching=matching)
    return dict(zip(scored.matches.row.tolist(), scored.reason.tolist(), strict=True)), scored


def test_a_row_that_no_model_explains():
    explained, group = refused(explainer=np.where(np.arange(16) == 7, -1, 0).astype(np.int32))
    told, scored = reasons(explained, group)
    assert {row for row, reason in told.items() if reason} == {7}
    assert told[7] == "no_model"
    assert tally(assess(audited_of(explained, group)), "unmatched_share") == 0
    assert np.isnan(scored.compared.cec[1])
    assert np.isnan(scored.compared.parted[1]).all()


def test_nobody_of_the_other_group_has_the_label():
    pool = ~np.isin(np.arange(16), [12, 13])
    explained, group = refused(pools=(pool,))
    told, _ = reasons(explained, group)
    (share,) = [
        t for t in assess(audited_of(explained, group)).tallies if (t.group, t.measure) == (1, "no_direction_share")
    ]
    assert share.counts.tolist() == [6, 0, 2]  # of those who were matched
    assert {row for row, reason in told.items() if reason == "no_candidate"} == {14, 15}
    assert set(told.values()) == {"", "no_candidate"}


def test_beyond_the_limit_there_is_no_score():
    explained, group = refused()
    told, scored = reasons(explained, group, Matching(None, maximum_distance=0.1))
    far = scored.matches.distance > 0.1
    assert set(scored.reason[far]) == {"too_far"}
    assert np.isnan(scored.compared.flip[far]).all()
    assert {told[row] for row in scored.matches.row[~far]} == {""}


def test_the_only_member_of_its_cell_is_its_own_baseline():
    label = [True] * 12 + [False, False, False, True]
    told, scored = reasons(*refused(label=label))
    assert told[14] == "no_direction"
    assert [row for row, reason in told.items() if reason] == [14]
    at = scored.matches.row.tolist().index(14)
    assert scored.matches.matched[at]
    assert np.isnan(scored.compared.cec[at])
    assert scored.compared.flip[at] in (0, 1)


def test_a_model_that_learnt_from_nobody_of_a_cell_has_no_baseline_for_it():
    told, _ = reasons(*refused(pools=(~np.isin(np.arange(16), [14, 15]),)))
    assert {row for row, reason in told.items() if reason == "no_baseline"} == {14, 15}


def test_without_replacement_those_left_over_are_told_so():
    told, _ = reasons(*refused(pools=(~np.isin(np.arange(16), [0, 1]),)), Matching(None, replacement=False))
    assert sorted(told.values()).count("candidates_taken") == 2


def test_one_label_alone_is_refused():
    explained, group = refused(label=[True] * 16)
    with pytest.raises(DataQualityError, match="have the same label"):
        pairs.views(explained, group, Matching(None))


def test_attributions_that_are_no_numbers_are_refused():
    explained, group = refused()
    broken = replace(explained, models=(Quadratic(np.array([np.nan]), np.zeros((1, 1))),))
    with pytest.raises(DataQualityError, match="quadratic gives attributions that are no finite numbers"):
        scored_of(broken, group)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"label": np.ones(3, bool)}, "label has 3 rows; expected 60"),
        ({"pools": (np.ones(60, bool),)}, "2 models, 1 pools"),
        ({"cuts": (0.0,)}, "1 cuts"),
        ({"explainer": np.full(60, 2)}, "outside -1 to 1"),
        ({"feature_of_column": np.zeros(3, np.int32)}, "x has 4 columns"),
        ({"financial_names": ("income",)}, "for 1 names"),
    ],
)
def test_shapes_that_do_not_belong_together_are_refused(broken, told):
    with pytest.raises(ValueError, match=told):
        replace(random_audit(0).explained, **broken)


def assess(audited, settings=PLAIN, seed=0):
    return cec.assess(audited, settings, np.random.default_rng(seed))


def tally(detected, measure, group=1, **parameters):
    (found,) = [t for t in detected.tallies if (t.group, t.measure, dict(t.parameters)) == (group, measure, parameters)]
    known = ~np.isnan(found.values)
    return found.counts[known] @ found.values[known] / found.counts[known].sum()


def test_tallies_are_means_over_rows():
    audited = random_audit(3)
    detected, scored = assess(audited), scored_of(audited.explained, audited.group)
    told = scored.compared
    assert tally(detected, "cec") == pytest.approx(told.cec.mean())
    assert tally(detected, "cec_floor") == pytest.approx(told.floor.mean())
    assert tally(detected, "cec_above_floor") == pytest.approx((told.cec - told.floor).mean())
    assert tally(detected, "flip_share") == told.flip.mean()
    assert tally(detected, "match_distance") == pytest.approx(scored.matches.distance.mean())
    assert tally(detected, "unmatched_share") == 0
    hidden = (told.flip == 0) & (told.cec > 0.3)
    assert tally(detected, "regime_share", regime="B") == hidden.mean()
    assert tally(detected, "regime_share_at", regime="B", theta=0.3) == hidden.mean()
    for theta in (0.0, 0.5, 1.0):
        shares = [tally(detected, "regime_share_at", regime=r, theta=theta) for r in "ABCD"]
        assert sum(shares) == pytest.approx(1)
    assert tally(detected, "attribution_divergence", feature="purpose") == pytest.approx(told.parted[:, 1].mean())
    assert [t.measure for t in detected.tallies if t.headline] == ["cec"]
    assert not any(t.compared for t in detected.tallies)


def test_the_reference_group_is_looked_at_from_its_side():
    audited = random_audit(4, groups=3)
    detected = assess(audited)
    for group, name in ((1, "b"), (2, "c")):
        back = scored_of(audited.explained, audited.group, asked=0, to=group)
        assert tally(detected, "cec", group=0, matched_with=name) == pytest.approx(np.nanmean(back.compared.cec))
        there = scored_of(audited.explained, audited.group, asked=group, to=0)
        assert tally(detected, "cec", group=group) == pytest.approx(np.nanmean(there.compared.cec))
    once = assess(audited, PLAIN.model_copy(update={"pairs": "reference", "theta_steps": 0}))
    assert {t.group for t in once.tallies} == {1, 2}
    every = assess(audited, PLAIN.model_copy(update={"pairs": "all"}))
    told = {(t.group, t.parameters.get("matched_with", "a")) for t in every.tallies if t.measure == "cec"}
    assert told == {(0, "b"), (0, "c"), (1, "a"), (1, "c"), (2, "a"), (2, "b")}
    assert every.findings.row.tolist() == detected.findings.row.tolist()
    assert "regime_share_at" not in {t.measure for t in once.tallies}


def test_aggregates_tell_the_matches_and_the_features():
    audited = replace(random_audit(5), resamples=50)
    detected, scored = assess(audited), scored_of(audited.explained, audited.group)
    told = {(a.measure, *a.parameters.values()): a for a in detected.aggregates}
    shares = [told["attribution_share", name] for name in audited.explained.features]
    assert sum(a.value for a in shares) == pytest.approx(1)
    assert all(a.replicates.shape == (50,) for a in shares)
    assert told["match_distance_quantile", 0.5].value == np.median(scored.matches.distance)
    times = [scored.matches.match.tolist().count(m) for m in set(scored.matches.match.tolist())]
    assert told["match_reuse",].value == pytest.approx(np.mean(times))
    assert (told["match_reuse_largest",].value, told["match_reuse_largest",].events) == (max(times), max(times))


def test_findings_hold_score_and_regime_and_evidence_the_match_and_where_reasons_part():
    audited = random_audit(6, groups=3)
    detected = assess(audited)
    found, evidence, floors = detected.findings, detected.evidence, list(floors_by_hand(audited))
    assert found.row.tolist() == np.flatnonzero(audited.group != 0).tolist()
    for i, row in enumerate(found.row):
        match, score, _, flip, parted, away = by_hand(audited, row, 0, floors)
        assert found.statistic[i] == pytest.approx(score)
        assert found.verdict[i] == "flipped_" * bool(flip) + ("same" if score <= 0.3 else "different") + "_reasons"
        mine = np.flatnonzero(evidence.row == row)
        largest = sorted(range(3), key=lambda j: -parted[j])
        names = [f"parts_in: {('term', 'purpose', 'group')[j]}" for j in largest]
        assert evidence.role[mine].tolist() == ["match", *names]
        assert evidence.rank[mine].tolist() == [1, 1, 2, 3]
        assert (evidence.other[mine] == match).all()
        assert evidence.value[mine] == pytest.approx([away, *(parted[j] for j in largest)])


def test_a_feature_in_which_a_pair_does_not_part_is_no_evidence():
    audited = random_audit(6)
    scored = scored_of(audited.explained, audited.group)
    parted = scored.compared.parted * np.array([1.0, 0.0, 0.0])
    alike = replace(scored, compared=replace(scored.compared, parted=parted))
    found = cec.evidence([alike], audited.explained.features)
    assert sorted(set(found.role)) == ["match", "parts_in: term"]
    assert (found.value[found.role != "match"] > 0).all()


def test_who_has_no_score_is_not_tested():
    explained, group = refused(label=[True] * 12 + [False, False, False, True])
    found = assess(audited_of(explained, group)).findings
    at = found.row.tolist().index(14)
    assert (found.verdict[at], found.refusal[at]) == ("not_tested", "no_direction")
    assert np.isnan(found.statistic[at])
    told = assess(audited_of(explained, group))
    assert tally(told, "no_direction_share") == 1 / 8
    (score,) = [t for t in told.tallies if (t.group, t.measure) == (1, "cec")]
    assert np.isnan(score.values[-1])
    assert score.counts[-1] == 1


def problem_of(audited, explained):
    n = len(audited.group)
    nothing = np.zeros(n, bool)
    return Problem(
        encoded=np.zeros((n, 0)),
        feature_of_column=np.zeros(0, np.int32),
        features=(),
        group=audited.group,
        groups=audited.groups,
        reference=0,
        factual=nothing,
        candidate=nothing,
        node=np.zeros(n, np.int32),
        graph=FeasibilityGraph(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)),
        look_into=None if explained is None else (lambda substitute: explained),
    )


def test_a_problem_is_assessed_where_a_model_can_be_looked_into_and_says_nothing_elsewhere():
    audited = random_audit(7)
    problem = problem_of(audited, audited.explained)
    detected = cec.detect(problem, PLAIN, np.random.default_rng(0))
    assert detected.findings.row.tolist() == np.flatnonzero(cec.units(problem)).tolist()
    assert np.array_equal(detected.findings.statistic, assess(audited).findings.statistic)
    closed = problem_of(audited, None)
    detected = cec.detect(closed, PLAIN, np.random.default_rng(0))
    assert not cec.units(closed).any()
    assert (len(detected.findings.row), len(detected.evidence.row)) == (0, 0)
    assert (detected.tallies, detected.aggregates, detected.draws) == ((), (), ())


def test_the_order_of_rows_makes_no_difference():
    audited = random_audit(8)
    order = np.random.default_rng(0).permutation(60)
    e = audited.explained
    moved = replace(
        e,
        x=e.x[order],
        label=e.label[order],
        financial=e.financial[order],
        explainer=e.explainer[order],
        pools=tuple(pool[order] for pool in e.pools),
    )
    there = assess(audited_of(moved, audited.group[order]))
    here = assess(audited)
    back = dict(zip(order[there.findings.row].tolist(), there.findings.statistic, strict=True))
    assert [back[row] for row in here.findings.row.tolist()] == pytest.approx(here.findings.statistic)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="the lower first"):
        CecSettings(winsorise=(0.9, 0.1))
    for kept in ({}, {"relabelled_draws": 0, "refits": 2}, {"relabelled_draws": 0, "replacement": False}):
        with pytest.raises(ValueError, match="the nearest applicant alone"):
            CecSettings(k=2, **kept)
    assert Matching.of(CecSettings(k=2, relabelled_draws=0)).k == 2
    assert Matching.of(CecSettings(**CecSettings.paper)) == Matching(None)
    assert nearest.Matching() == Matching.of(CecSettings())


def test_a_group_with_nobody_like_it_in_the_other_is_not_judged():
    rng = np.random.default_rng(0)
    group, x = np.repeat([0, 1], 200), rng.normal(size=(400, 2))
    for apart, supported in ((0.0, True), (20.0, False)):
        at = x + apart * group[:, None] * [1, 0]
        audited = audited_of(explained_of(at, rng.random(400) < 0.5, [quadratic(rng, 2)]), group)
        aggregates = {a.measure: a for a in assess(audited).aggregates}
        share = aggregates["matching_support"].value
        assert (share > 0.9) if supported else (share < 0.1)
        assert (Note.POOR_SUPPORT in aggregates["cec_above_own_group"].reason) is not supported


def of_audit(seed=7, groups=3, **options):
    audited = replace(random_audit(seed, n=90, groups=groups), resamples=5)
    return vars(cec.assess(audited, CecSettings(**{"theta_steps": 5, **options}), np.random.default_rng(2)))


RESULTS = {
    "by default": of_audit,
    "two groups": lambda: of_audit(8, 2, winsorise=None, theta_steps=3),
    "all pairs": lambda: of_audit(9, 3, pairs="all", theta_steps=0),
    "relabelled": lambda: of_audit(10, 2, relabelled_draws=5),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """All measures of quadratic models, kept from an earlier run: a number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "by default": {
        "findings": 3317.918899,
        "evidence": 16680.561365,
        "tallies": 38852.272449,
        "draws": 0.0,
        "aggregates": 3583.95041,
    },
    "two groups": {
        "findings": 2835.042785,
        "evidence": 14188.847041,
        "tallies": 23033.407724,
        "draws": 0.0,
        "aggregates": 1779.544517,
    },
    "all pairs": {
        "findings": 4140.846871,
        "evidence": 20915.691504,
        "tallies": 41501.124371,
        "draws": 0.0,
        "aggregates": 3600.192061,
    },
    "relabelled": {
        "findings": 2405.745733,
        "evidence": 12077.171748,
        "tallies": 23855.550413,
        "draws": 0.0,
        "aggregates": 1785.389915,
    },
}
