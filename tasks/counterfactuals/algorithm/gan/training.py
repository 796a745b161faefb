"""Adversarial training, the groups it learns from, and trained generators in use."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

from schemas.errors import DataQualityError, SpecError
from schemas.terms import Refusal
from tasks.counterfactuals.algorithm.diagnostics import TERMS
from tasks.counterfactuals.algorithm.gan.autograd import AutogradGame
from tasks.counterfactuals.algorithm.gan.compiled import CompiledGame
from tasks.counterfactuals.algorithm.gan.networks import (
    Encoded,
    Encoder,
    Epoch,
    GanSettings,
    Generators,
    Shape,
    chosen,
    fit_encoder,
    softened,
)
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.networks.perceptron import chosen_device, digest_of, one_thread
from tasks.numerics.networks.training import Checkpoint, Side, restore, take
from tasks.numerics.problem import Mediation, require_trainable

# --------------------------------------------------------------------------------------------------------------------
# Groups and rows that generators of mediators learn from, and the target groups of each applicant.
#
# A group with fewer rows than a batch, or with a constant mediator, is no category of a generator: its members are
# refused, with the reason. Scope: choices of rows, groups and columns. Generation: ``imaginer``.


@dataclass(frozen=True)
class Categories:
    """The groups of one protected attribute, as a generator takes them."""

    group: Ints
    """``(n,)`` number of each row's group."""
    reference: int
    reasons: tuple[str, ...]
    """Of each group: why it is no category; empty where it is one."""

    @property
    def groups(self) -> Longs:
        """``(k,)`` groups that are categories; none if the reference group is not, or if no other group is."""
        trainable = np.flatnonzero([not reason for reason in self.reasons])
        return trainable if len(trainable) > 1 and self.reference in trainable else trainable[:0]

    @property
    def rows(self) -> Longs:
        """``(r,)`` the rows of the categories."""
        return np.flatnonzero(np.isin(self.group, self.groups))

    @property
    def refused(self) -> tuple[Longs, list[str]]:
        """Rows outside the reference group without a counterfactual in it, and the reasons."""
        is_imaginable: Bools = np.isin(self.group, self.groups) | (self.group == self.reference)
        rows = np.flatnonzero(~is_imaginable)
        reference_reason = self.reasons[self.reference]
        return rows, [self.reasons[number] or reference_reason for number in self.group[rows]]

    def asked(self, to: int) -> Bools:
        """``(n,)`` rows that need a counterfactual in a category: for the reference other groups, else its members."""
        in_reference: Bools = self.group == self.reference
        in_other_groups: Bools = np.isin(self.group, self.groups) & ~in_reference
        return in_other_groups if to == self.reference else in_reference


def categories(group: Ints, groups: int, reference: int, mediators: Floats, learnt: Longs, fewest: int) -> Categories:
    """Separate the groups that can be categories from the other groups.

    Args:
        group: ``(n,)`` number of each row's group.
        groups: Number of groups.
        reference: The reference group.
        mediators: ``(n, p)``.
        learnt: ``(r,)`` the rows that generators are to learn from.
        fewest: Of them, those that a category has to have.
    """
    group_mediators = (mediators[learnt[group[learnt] == number]] for number in range(groups))
    return Categories(group, reference, tuple(_reason(values, fewest) for values in group_mediators))


def _reason(mediators: Floats, fewest: int) -> str:
    if len(mediators) < fewest:
        return Refusal.TOO_FEW_IN_CATEGORY
    return Refusal.CONSTANT_MEDIATOR if (mediators == mediators[:1]).all(axis=0).any() else ""


def drawn(category: Ints | Longs, most: int | None, fewest: int, rng: np.random.Generator) -> Longs:
    """Rows to learn from, ascending: at most so many, by the sizes of the categories.

    Args:
        category: ``(n,)``.
        most: Rows wanted; all if None.
        fewest: Of each category, even where that makes more than ``most``.
        rng: Draws them.
    """
    if most is None or most >= len(category):
        return np.arange(len(category))
    chosen = []
    for number in np.unique(category):
        rows = np.flatnonzero(category == number)
        size = max(fewest, round(most * len(rows) / len(category)))
        chosen.append(rng.permutation(rows)[:size])
    return np.sort(np.concatenate(chosen))


# --------------------------------------------------------------------------------------------------------------------
# Trained generators in use: counterfactual mediators of applicants in every category, once per network.


_AT_ONCE = 8_192
"""Rows; ten networks hold 20 MB of hidden units for as many."""


@dataclass(frozen=True)
class Imaginer:
    """``s`` generators with the scales that they were trained on."""

    encoder: Encoder
    generators: Generators
    """On the CPU, in eval mode."""

    def imagine(self, rows: Mediation) -> Floats:
        """Mediators ``(s, k, n, p)`` laid out as ``Columns.values``, what was observed in a row's own category.

        A row's counterfactuals do not depend on the other rows.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        parts = [np.arange(first, min(first + _AT_ONCE, len(rows))) for first in range(0, len(rows), _AT_ONCE)]
        with torch.no_grad(), one_thread():
            return np.concatenate([self._imagined(rows.rows(part)) for part in parts], axis=2)

    def _imagined(self, rows: Mediation) -> Floats:
        encoded, heads = self.encoder.encode(rows), self.encoder.heads
        member = np.arange(len(rows.categories))[:, None] == encoded.category
        covariates, category, mediators = (
            torch.from_numpy(np.ascontiguousarray(part)).float().expand(len(self.generators.first), -1, -1)
            for part in (encoded.covariates.T, member, encoded.mediators.T)
        )
        outputs = chosen(softened(self.generators(covariates, category, mediators), heads), heads)
        return self.encoder.decode(outputs.double().numpy(), rows)


# --------------------------------------------------------------------------------------------------------------------
# Adversarial training (Algorithm 1), the same on every run and after every interruption.
#
# Seed, network and epoch determine the order of the rows of each network. Discriminator and generator alternate on the
# same batch. An incomplete last batch is left for the next epoch, because batch normalisation of one row is undefined.


class GanDivergedError(DataQualityError):
    """A weight or a loss that is no number; the last good state is kept."""

    def __init__(self, last_good: Checkpoint) -> None:
        """Name the epoch, from 1, and keep the state after the one before."""
        self.epoch, self.last_good = last_good.epoch + 1, last_good
        super().__init__(
            f"training of the generators diverged: a weight or loss is not finite in epoch {self.epoch}; the state "
            f"after epoch {last_good.epoch} is kept; lower learning_rate or alpha, or look for extreme mediators"
        )


class Game(Protocol):
    """An ensemble of generators against its discriminators: ``compiled`` or ``autograd``."""

    @property
    def sides(self) -> Sequence[Side]:
        """Generators and discriminators."""

    def playing(self) -> AbstractContextManager[Epoch]:
        """Holds threads while epochs are played."""

    def generators(self) -> Generators:
        """The generators as they are, on the CPU and in eval mode."""


@dataclass(frozen=True)
class Trained:
    """The trained generators, and the state from which training could go on."""

    imaginer: Imaginer
    checkpoint: Checkpoint


def train(
    rows: Mediation,
    settings: GanSettings,
    on_epoch: Callable[[Checkpoint], None] | None = None,
    resume: Checkpoint | None = None,
    begin: Callable[[Encoded, Shape, GanSettings], Game] | None = None,
) -> Trained:
    """Train an ensemble: min over G, max over D of E log D_A + alpha E||m - G_A||^2 (equation 8).

    Args:
        rows: Training rows.
        settings: Of the run.
        on_epoch: Told the state after each epoch.
        resume: A state that an earlier run told, to go on from.
        begin: Begins the game; by the device if None.

    Raises:
        GanDivergedError: If a weight or loss is no longer finite; it keeps the state of the epoch before.
        SpecError: If a batch has a single row, which batch normalisation cannot scale.
        DataQualityError: If nothing can be learnt from the rows (``mediation.require_trainable``).
        IntegrityError: If ``resume`` is of other rows or settings.
    """
    if settings.batch < 2:
        raise SpecError(f"a batch of {settings.batch} has no spread to normalise by; set batch to 2 or more, as 256")
    require_trainable(rows, settings.batch)
    encoder = fit_encoder(rows, settings.among_alike, settings.seed)
    encoded = encoder.encode(rows)
    inputs = encoded.covariates.shape[1]
    shape = Shape(inputs, len(rows.categories), encoder.width, encoder.heads, settings.hidden)
    game = (begin or _begin)(encoded, shape, settings)
    names = rows.categories, rows.covariates.names, rows.mediators.names
    arrays = rows.covariates.values, rows.category, rows.mediators.values
    mark = digest_of((replace(settings, device="auto"), names), *arrays)
    state = resume or take(game.sides, torch.zeros(0, settings.networks, len(TERMS)), mark)
    restore(state, game.sides, mark)
    with game.playing() as play:
        for epoch in range(state.epoch, settings.epochs):
            epochs, full_rate_share = settings.epochs, settings.decay_from
            share = 1.0 if full_rate_share >= 1 else min(1.0, (epochs - epoch) / (epochs * (1 - full_rate_share)))
            rate = settings.learning_rate * share
            epoch_losses = play(epoch, rate)
            after = take(game.sides, torch.cat([state.history, epoch_losses]), mark)
            if not all(bool(torch.isfinite(tensor).all()) for tensor in after.tensors.values()):
                raise GanDivergedError(state)
            state = after
            if on_epoch is not None:
                on_epoch(state)
    return Trained(Imaginer(encoder, game.generators()), state)


def _begin(encoded: Encoded, shape: Shape, settings: GanSettings) -> Game:
    """A game on the device of the settings: compiled on the CPU, by automatic differentiation on CUDA."""
    on_cpu = chosen_device(settings.device).type == "cpu"
    return (CompiledGame if on_cpu else AutogradGame).begin(encoded, shape, settings)
