"""The stacked networks and their losses against plain modules and plain loops, and mediators of mixed types."""

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.gan.autograd import adversarial, mixed_in, reconstruction, told_apart
from tasks.counterfactuals.algorithm.gan.networks import (
    Discriminators,
    Generators,
    Shape,
    chosen,
    fit_encoder,
    softened,
)
from tasks.numerics.encoding import Columns
from tasks.numerics.networks.perceptron import draws
from tasks.numerics.problem import Mediation

SHAPE = Shape(covariates=2, categories=3, mediators=2, heads=(), hidden=5)


def rngs(*numbers):
    return [draws(7, number) for number in numbers]


def batch(s=2, r=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    category = torch.from_numpy(rng.integers(k, size=(s, r)))
    covariates, mediators = (torch.from_numpy(rng.normal(size=(s, 2, r))).float() for _ in range(2))
    return covariates, nn.functional.one_hot(category, k).transpose(1, 2) > 0, mediators, category


def plain(first, second, first_bias, second_bias, normal=None):
    """The same layers as torch's own modules."""
    one, two = nn.Linear(first.shape[1], len(first)), nn.Linear(second.shape[1], len(second))
    with torch.no_grad():
        one.weight.copy_(first), two.weight.copy_(second)
        one.bias.copy_(first_bias.flatten()), two.bias.copy_(second_bias.flatten())
    return nn.Sequential(one, *([normal] if normal else []), nn.LeakyReLU(0.2), two)


@pytest.mark.parametrize("training", [True, False])
def test_each_generator_is_a_plain_network(training):
    generators = Generators(SHAPE, rngs(0, 1)).train(training)
    covariates, member, mediators, _ = batch()
    nn.init.normal_(generators.mean), nn.init.normal_(generators.shift)
    before, made = generators.mean.clone(), generators(covariates, member.float(), mediators)
    for j in range(2):
        normal = nn.BatchNorm1d(5)
        with torch.no_grad():
            normal.bias.copy_(generators.shift[5 * j : 5 * j + 5])
            normal.running_mean.copy_(before[5 * j : 5 * j + 5])
        one = plain(generators.first[j], generators.last[j], torch.zeros(5), generators.bias[j], normal).train(training)
        found = one(torch.cat([covariates[j], member[j].float(), mediators[j]]).T)
        torch.testing.assert_close(made[j].flatten(0, 1).T, found, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(generators.mean[5 * j : 5 * j + 5], normal.running_mean)


def test_each_discriminator_is_a_plain_network():
    discriminators, (covariates, _, _, _) = Discriminators(SHAPE, rngs(0, 1)), batch()
    shown = torch.randn(2, 3, 2, 6, generator=torch.Generator().manual_seed(0))
    logits = discriminators(covariates, shown)
    for j in range(2):
        one = plain(discriminators.first[j], discriminators.last[j], torch.zeros(5), torch.zeros(3))
        found = one(torch.cat([covariates[j], shown[j].flatten(0, 1)]).T)
        torch.testing.assert_close(logits[j].T, found, atol=1e-5, rtol=1e-5)


def test_weights_are_those_of_a_networks_own_draws():
    together, alone = Generators(SHAPE, rngs(0, 1)), Generators(SHAPE, rngs(1))
    assert torch.equal(together.first[1], alone.first[0])
    assert torch.equal(together.last[1], alone.last[0])


def test_losses_row_by_row():
    _, member, mediators, category = batch()
    made = torch.randn(2, 3, 2, 6, generator=torch.Generator().manual_seed(0))
    logits = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))
    shown, by_row, missed = mixed_in(made, member, mediators), told_apart(logits, category), torch.zeros(2)
    losses = dict.fromkeys(("non_saturating", "equation_8", "algorithm_1"), 0.0)
    for j in range(2):
        for i in range(6):
            own, share = int(category[j, i]), torch.softmax(logits[j, :, i], 0)
            for a in range(3):
                expected = mediators[j, :, i] if a == own else made[j, a, :, i]
                assert torch.equal(shown[j, a, :, i], expected)
            assert float(by_row[j, i]) == pytest.approx(-float(share[own].log()), rel=1e-5)
            missed[j] += (made[j, own, :, i] - mediators[j, :, i]).square().sum() / 6
            losses["non_saturating"] -= float((1 - share[own]).log()) / 6
            losses["equation_8"] += float(share[own].log()) / 6
            losses["algorithm_1"] += 2 * float(share[own].log()) / 6
    torch.testing.assert_close(reconstruction(made, member, mediators), missed)
    for kind, by_hand in losses.items():
        assert float(adversarial(logits, member, category, kind)) == pytest.approx(by_hand, rel=1e-4)


def test_heads_choose_one_category_with_the_derivative_of_shares():
    heads, made = ((1, 3), (3, 6)), torch.randn(2, 3, 6, 4, generator=torch.Generator().manual_seed(0))
    made.requires_grad_()
    soft = softened(made, heads)
    hard = chosen(soft, heads)
    assert torch.equal(hard[:, :, :1], made[:, :, :1])
    for first, end in heads:
        assert torch.allclose(soft[:, :, first:end].sum(2), torch.ones(2, 3, 4))
        assert torch.equal(hard[:, :, first:end].argmax(2), made[:, :, first:end].argmax(2))
        assert torch.allclose(hard[:, :, first:end].sort(2).values[:, :, -1], torch.ones(2, 3, 4))
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
    (through_hard,), (through_soft,) = (
        torch.autograd.grad((out * weights).sum(), made) for out in (hard, softened(made, heads))
    )
    assert torch.allclose(through_hard, through_soft, atol=1e-6)


def mixed(n, k, seed):
    """Income in thousands, a history of three grades, an occupation of four."""
    rng = np.random.default_rng(seed)
    category = rng.permutation(np.arange(n) % k)
    values = np.column_stack([rng.normal(50, 20, n) + 5 * category, rng.integers(3, size=n), rng.integers(4, size=n)])
    kinds, labels = (Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL), ((), tuple("abc"), tuple("wxyz"))
    covariates = Columns(("age",), (Kind.CONTINUOUS,), ((),), rng.normal(40, 10, (n, 1)))
    return Mediation(
        covariates, category, tuple("ABC"[:k]), Columns(("income", "history", "job"), kinds, labels, values)
    )


@settings(max_examples=examples(25), deadline=None)
@given(k=st.integers(2, 3), alike=st.booleans(), seed=st.integers(0, 99))
def test_what_is_encoded_is_decoded(k, alike, seed):
    rows = mixed(60, k, seed)
    encoder = fit_encoder(rows, alike, 0)
    encoded = encoder.encode(rows)
    assert encoder.heads == ((2, 6),)
    assert encoded.mediators[:, :2].std(axis=0) == pytest.approx([1, 1])
    same = np.broadcast_to(encoded.mediators.T, (2, k, 6, 60))
    decoded = encoder.decode(same, rows)
    own = decoded[:, rows.category, np.arange(60)]
    assert (own == rows.mediators.values).all()
    assert (decoded[..., 2] == rows.mediators.values[:, 2]).all()
    assert set(np.unique(decoded[..., 1])) <= {0, 1, 2}
    if not alike:
        assert decoded[..., 0] == pytest.approx(np.broadcast_to(rows.mediators.values[:, 0], (2, k, 60)))


def test_numbers_keep_their_place_among_people_alike():
    rows = mixed(400, 2, 0)
    encoder = fit_encoder(rows, True, 0)
    decoded = encoder.decode(np.broadcast_to(encoder.encode(rows).mediators.T, (1, 2, 6, 400)), rows)[0, ..., 0]
    mean, spread = encoder.moments.potential(rows.covariates)
    places = (decoded - mean[..., 0]) / spread[..., 0]
    assert places[1] == pytest.approx(places[0])


def test_names_of_categories_do_not_matter_to_losses():
    _, member, mediators, category = batch()
    made = torch.randn(2, 3, 2, 6, generator=torch.Generator().manual_seed(0))
    logits = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))
    turned = [2, 0, 1]  # new category a is old category turned[a]
    renamed = torch.argsort(torch.tensor(turned))[category]
    assert torch.allclose(told_apart(logits[:, turned], renamed), told_apart(logits, category))
    new, old = (reconstruction(*each, mediators) for each in ((made[:, turned], member[:, turned]), (made, member)))
    assert torch.allclose(new, old)
    assert torch.equal(
        mixed_in(made[:, turned], member[:, turned], mediators), mixed_in(made, member, mediators)[:, turned]
    )
    for kind in ("non_saturating", "equation_8", "algorithm_1"):
        new = adversarial(logits[:, turned], member[:, turned], renamed, kind)
        assert torch.allclose(new, adversarial(logits, member, category, kind))
