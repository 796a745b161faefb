"""Compiled turns against automatic differentiation: gradients, weights, states; and threads that change nothing."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from conftest import REPOSITORY
from test_gan import SMALL, applicants, mixed, same

from tasks.counterfactuals.algorithm.gan import compiled
from tasks.counterfactuals.algorithm.gan.autograd import AutogradGame, adversarial, mixed_in, reconstruction, told_apart
from tasks.counterfactuals.algorithm.gan.compiled import (
    CompiledGame,
    discriminator,
    generate,
    generator,
    judge,
    kept,
    take,
)
from tasks.counterfactuals.algorithm.gan.networks import Encoded, GanSettings, Shape, chosen, fresh, softened
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.numerics.networks.perceptron import one_thread

FOLDER = Path(__file__).parent
LOSSES = ("non_saturating", "equation_8", "algorithm_1")
NUMBERS = Shape(covariates=2, categories=3, mediators=2, heads=(), hidden=5)
HEADS = Shape(covariates=1, categories=2, mediators=6, heads=((1, 3), (3, 6)), hidden=7)


def encoded(shape, rows, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, shape.heads[0][0] if shape.heads else shape.mediators))
    heads = [np.eye(end - first)[rng.integers(end - first, size=rows)] for first, end in shape.heads]
    category = rng.permutation(np.arange(rows) % shape.categories)
    return Encoded(rng.normal(size=(rows, shape.covariates)), category, np.hstack([numbers, *heads]))


def by_autograd(rows, shape, modules, settings):
    """Gradients of one network by both losses, in the order of its parameters."""
    generators, discriminators = modules
    covariates, mediators = (torch.from_numpy(part.T)[None] for part in (rows.covariates, rows.mediators))
    category = torch.from_numpy(rows.category)[None]
    member = torch.nn.functional.one_hot(category, shape.categories).transpose(1, 2) > 0
    soft = softened(generators(covariates, member.double(), mediators), shape.heads)
    shown = mixed_in(chosen(soft, shape.heads), member, mediators)
    logits = discriminators(covariates, shown)
    played = adversarial(logits, member, category, settings.adversarial)
    whole = played + settings.alpha * reconstruction(soft, member, mediators).sum()
    made = torch.autograd.grad(whole, list(generators.parameters()), retain_graph=True)
    told = torch.autograd.grad(told_apart(logits, category).mean(), list(discriminators.parameters()))
    return (torch.cat([each.flatten() for each in part]).numpy() for part in (made, told))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [NUMBERS, HEADS], ids=["numbers", "heads"])
def test_gradients_are_those_of_automatic_differentiation(shape, loss):
    rows, settings = encoded(shape, 12), GanSettings(networks=1, batch=12, device="cpu", adversarial=loss, alpha=3.0)
    modules = [each.double() for each in fresh(shape, settings)]
    with torch.no_grad():
        for number, each in enumerate(p for module in modules for p in module.parameters()):
            each += torch.randn(each.shape, generator=torch.Generator().manual_seed(number)).double() / 4
    rules = CompiledGame.begin(rows, shape, settings)._rules(1e-3)
    vectors = [torch.cat([p.detach().flatten() for p in module.parameters()]).numpy() for module in modules]
    table = np.hstack([rows.covariates, np.eye(shape.categories)[rows.category], rows.mediators])
    at, running = kept(rules, 12, table), np.stack([np.zeros(shape.hidden), np.ones(shape.hidden)])
    of, against = generator(vectors[0], rules), discriminator(vectors[1], rules)
    take(at, table, np.arange(12))
    generate(at, of, rules, running, True)
    judge(at, against)
    made, told = (np.full_like(vector, np.nan) for vector in vectors)
    compiled.discriminator_gradients(at, against, discriminator(told, rules), rows.category)
    compiled.generator_gradients(at, of, against, generator(made, rules), rows.category, rules)
    expected = list(by_autograd(rows, shape, modules, settings))
    for found, known in zip((made, told), expected, strict=True):
        assert abs(known).max() > 0.01
        np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(running[0], modules[0].mean.numpy(), rtol=1e-6)
    np.testing.assert_allclose(running[1], modules[0].variance.numpy(), rtol=1e-6)


@pytest.mark.parametrize("rows", [applicants().mediation(), mixed()], ids=["numbers", "heads"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_training_follows_the_one_by_automatic_differentiation(rows, loss):
    """The same draws, state by name and shape; weights part by last digits alone while an epoch is young."""
    settings = replace(SMALL, epochs=1, adversarial=loss)
    found, known = (train(rows, settings, begin=game.begin).checkpoint for game in (CompiledGame, AutogradGame))
    assert found.fingerprint == known.fingerprint
    assert found.tensors.keys() == known.tensors.keys()
    for name, value in known.tensors.items():
        assert found.tensors[name].dtype == value.dtype
        torch.testing.assert_close(found.tensors[name], value, rtol=1e-3, atol=2e-6, msg=name)


def test_a_game_goes_on_from_the_state_of_the_other():
    rows, states = mixed(), []
    whole = train(rows, SMALL, states.append, begin=AutogradGame.begin).checkpoint
    gone_on = train(rows, SMALL, resume=states[1], begin=CompiledGame.begin).checkpoint
    for name, value in whole.tensors.items():
        torch.testing.assert_close(gone_on.tensors[name], value, rtol=0.01, atol=1e-4, msg=name)


def test_bits_do_not_depend_on_threads(monkeypatch):
    rows, found = mixed(), []
    for threads in (1, 3):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append(train(rows, replace(SMALL, networks=5)).checkpoint.tensors)
    assert same(*found)


def test_a_network_has_the_same_bits_alone_as_among_others():
    rows = mixed()
    together = train(rows, replace(SMALL, networks=3)).checkpoint.tensors
    alone = train(rows, replace(SMALL, networks=1, first=1)).checkpoint.tensors
    for name in ("generators.first", "generators.last", "discriminators.first", "discriminators.adam.0.exp_avg"):
        assert torch.equal(together[name][1], alone[name][0])
    assert torch.equal(together["history"][:, 1], alone["history"][:, 0])


def test_torch_has_its_threads_again_after_a_game_of_its_own():
    before = torch.get_num_threads()
    train(mixed(), replace(SMALL, epochs=1), begin=AutogradGame.begin)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


_TRAINING = """
import hashlib
from test_gan import SMALL, mixed
from tasks.counterfactuals.algorithm.gan.training import train

tensors = train(mixed(), SMALL).checkpoint.tensors
print(hashlib.sha256(b"".join(tensors[name].contiguous().numpy().tobytes() for name in sorted(tensors))).hexdigest())
"""


@pytest.mark.long
def test_a_run_that_compiles_gives_the_bytes_of_one_that_loads_what_was_compiled(tmp_path):
    """Both are processes of their own: what one has compiled is in its memory, too."""
    places = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "tests" / "material", REPOSITORY / "tests", FOLDER)))
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": places}
    digests, files = [], []
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", _TRAINING], env=variables, capture_output=True, text=True, check=True
        )
        digests.append(ended.stdout)
        files.append({file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb[ic]")})
    assert digests[0] == digests[1]
    assert any("run_epoch" in file.name for file in files[0])
    assert files[0] == files[1], "the second compiled something itself"
