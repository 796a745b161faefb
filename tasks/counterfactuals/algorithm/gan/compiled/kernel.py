"""Turns of one network as compiled code: gradients of both sides written out, and the steps of Adam.

A network is computed by itself and in one order, so that its weights do not depend on threads. The same in torch, by
automatic differentiation: ``gan.autograd``.

Scope: arithmetic of one network, in the precision of its arrays. The ensemble: ``game``.
"""

import numpy as np

from tasks.counterfactuals.algorithm.gan.compiled.passes import (
    Discriminator,
    Generator,
    Pass,
    Reals,
    Rules,
    compiled,
    discriminator,
    generate,
    generator,
    judge,
    kept,
    take,
)
from tasks.counterfactuals.algorithm.gan.settings import LOOKED_AT, SLOPE
from tasks.numerics.arrays import Longs

_FIRST_DECAY, _SECOND_DECAY, _LEAST_ROOT = 0.9, 0.999, 1e-8
"""Adam's, as torch has them."""

WEIGHTS, MEAN, SQUARE = 0, 1, 2
"""Rows of a side ``(3, p)``: its weights, and Adam's moving means of gradients and of their squares."""

_AT_ONCE = 256
_NONE = -1


@compiled
def _shares(shares: Reals, logits: Reals, row: int, without: int) -> None:
    """Fill in a row's shares of categories by its logits; the one to leave out, if any, has 0."""
    kind = logits.dtype.type
    greatest, total = kind(-np.inf), kind(0)
    for place in range(logits.shape[1]):
        if place != without:
            greatest = max(greatest, logits[row, place])
    for place in range(logits.shape[1]):
        share = kind(0) if place == without else np.exp(logits[row, place] - greatest)
        shares[row, place] = share
        total += share
    for place in range(logits.shape[1]):
        shares[row, place] /= total


@compiled
def _sums(total: Reals, values: Reals) -> None:
    """Fill in the sums over rows."""
    total[:] = 0
    for row in range(values.shape[0]):
        for place in range(values.shape[1]):
            total[place] += values[row, place]


@compiled
def _through(slopes: Reals, active: Reals) -> None:
    """Derivatives before LeakyReLU by those behind it, in place."""
    kind = active.dtype.type
    for row in range(active.shape[0]):
        for unit in range(active.shape[1]):
            if not active[row, unit] > kind(0):
                slopes[row, unit] *= kind(SLOPE)


@compiled
def _judge_slopes(at: Pass, of: Discriminator) -> None:
    """Derivatives of a discriminator's hidden units, by those of its logits."""
    np.dot(at.of_logits, of.last, at.slopes)
    _through(at.slopes, at.judged)


@compiled
def discriminator_gradients(at: Pass, of: Discriminator, found: Discriminator, own: Longs) -> None:
    """Gradients of the mean of -log D_A (equation 7 with its sign turned).

    Args:
        at: A batch after both passes.
        of: Weights.
        found: Filled in.
        own: ``(r,)`` category of each row.
    """
    kind = at.logits.dtype.type
    rows = own.shape[0]
    for row in range(rows):
        _shares(at.of_logits, at.logits, row, _NONE)
        at.of_logits[row, own[row]] -= kind(1)
        for place in range(at.of_logits.shape[1]):
            at.of_logits[row, place] /= kind(rows)
    _judge_slopes(at, of)
    np.dot(at.of_logits.T, at.judged, found.last)
    _sums(found.last_bias, at.of_logits)
    np.dot(at.slopes.T, at.shown, found.first)
    _sums(found.first_bias, at.slopes)


@compiled
def _adversarial_slopes(at: Pass, own: Longs, saturating: float) -> None:
    """Derivatives of the generators' adversarial loss by the logits (equation 8, Algorithm 1, or non-saturating)."""
    kind = at.logits.dtype.type
    rows, categories = at.logits.shape
    weight = kind((-saturating if saturating > 0 else 1.0) / rows)
    for row in range(rows):
        _shares(at.of_logits, at.logits, row, _NONE)
        if saturating > 0:
            at.of_logits[row, own[row]] -= kind(1)
        else:
            _shares(at.others, at.logits, row, own[row])
            for place in range(categories):
                at.of_logits[row, place] -= at.others[row, place]
        for place in range(categories):
            at.of_logits[row, place] *= weight


@compiled
def _made_slopes(at: Pass, rules: Rules, own: Longs) -> None:
    """Derivatives by what is made: of the reconstruction in the own category, of what is shown in the others."""
    kind = at.soft.dtype.type
    c, k, d = rules.covariates, rules.categories, rules.mediators
    weight = kind(2 * rules.alpha / own.shape[0])
    for row in range(own.shape[0]):
        for category in range(k):
            first = category * d
            for place in range(d):
                if category == own[row]:
                    missed = at.soft[row, first + place] - at.inputs[row, c + k + place]
                    at.of_made[row, first + place] = weight * missed
                else:
                    at.of_made[row, first + place] = at.of_shown[row, c + first + place]
            for head in range(rules.heads.shape[0]):
                begin, end = first + rules.heads[head, 0], first + rules.heads[head, 1]
                mean = kind(0)
                for place in range(begin, end):
                    mean += at.of_made[row, place] * at.soft[row, place]
                for place in range(begin, end):
                    at.of_made[row, place] = at.soft[row, place] * (at.of_made[row, place] - mean)


@compiled
def _normal_slopes(at: Pass, of: Generator, found: Generator) -> None:
    """Derivatives before batch normalisation by those behind it, in place, and those of its gain and shift."""
    kind = at.normal.dtype.type
    rows, units = at.normal.shape
    _sums(found.shift, at.slopes)
    found.gain[:] = 0
    for row in range(rows):
        for unit in range(units):
            found.gain[unit] += at.slopes[row, unit] * at.normal[row, unit]
    share = kind(1) / kind(rows)
    for row in range(rows):
        for unit in range(units):
            left = at.slopes[row, unit] - share * (found.shift[unit] + at.normal[row, unit] * found.gain[unit])
            at.slopes[row, unit] = left * of.gain[unit] * at.inverse[unit]


@compiled
def generator_gradients(
    at: Pass, of: Generator, against: Discriminator, found: Generator, own: Longs, rules: Rules
) -> None:
    """Gradients of the adversarial loss and alpha times the reconstruction (equation 8).

    Args:
        at: A batch after both passes.
        of: Weights of the generator.
        against: Weights of the discriminator.
        found: Filled in.
        own: ``(r,)`` category of each row.
        rules: Loss and alpha.
    """
    _adversarial_slopes(at, own, rules.saturating)
    _judge_slopes(at, against)
    np.dot(at.slopes, against.first, at.of_shown)
    _made_slopes(at, rules, own)
    np.dot(at.of_made.T, at.active, found.last)
    _sums(found.bias, at.of_made)
    np.dot(at.of_made, of.last, at.slopes)
    _through(at.slopes, at.active)
    _normal_slopes(at, of, found)
    np.dot(at.slopes.T, at.inputs, found.first)


@compiled
def _step(side: Reals, gradients: Reals, rate: float, number: int) -> None:
    """Adam's step, the first of which is number 1."""
    kind = side.dtype.type
    size = kind(rate / (1 - _FIRST_DECAY**number))
    root = kind(np.sqrt(1 - _SECOND_DECAY**number))
    first, second, least = kind(1 - _FIRST_DECAY), kind(1 - _SECOND_DECAY), kind(_LEAST_ROOT)
    weights, mean, square = side[WEIGHTS], side[MEAN], side[SQUARE]
    for place in range(gradients.shape[0]):
        gradient = gradients[place]
        mean[place] += first * (gradient - mean[place])
        square[place] += second * (gradient * gradient - square[place])
        weights[place] -= size * mean[place] / (np.sqrt(square[place]) / root + least)


@compiled
def epoch(
    table: Reals, category: Longs, order: Longs, sides: tuple[Reals, Reals], running: Reals, rules: Rules, done: int
) -> None:
    """One pass over the rows: in each batch a step of the discriminator, then one of the generator.

    Args:
        table: ``(n, c + k + d)`` covariates, one-hot category, mediators.
        category: ``(n,)``.
        order: ``(n,)`` in which rows are taken; an incomplete last batch is left.
        sides: Generator and discriminator, ``(3, p)`` each, changed in place.
        running: ``(2, h)`` mean and variance of batch normalisation, changed in place.
        rules: Sizes and settings.
        done: Steps before these.
    """
    made, told = sides
    of, against = generator(made[WEIGHTS], rules), discriminator(told[WEIGHTS], rules)
    of_made, of_told = np.empty_like(made[WEIGHTS]), np.empty_like(told[WEIGHTS])
    at = kept(rules, rules.batch, table)
    for turn in range(order.shape[0] // rules.batch):
        rows = order[turn * rules.batch : (turn + 1) * rules.batch]
        own = category[rows]
        take(at, table, rows)
        generate(at, of, rules, running, True)
        judge(at, against)
        discriminator_gradients(at, against, discriminator(of_told, rules), own)
        _step(told, of_told, rules.rate, done + turn + 1)
        judge(at, against)
        generator_gradients(at, of, against, generator(of_made, rules), own, rules)
        _step(made, of_made, rules.rate, done + turn + 1)


@compiled
def standing(
    table: Reals, category: Longs, order: Longs, sides: tuple[Reals, Reals], running: Reals, rules: Rules
) -> tuple[float, float, float]:
    """What a history keeps of an epoch, by its first rows: mean reconstruction and log loss, share told right.

    Args: as of ``epoch``; nothing is changed.
    """
    of, against = generator(sides[0][WEIGHTS], rules), discriminator(sides[1][WEIGHTS], rules)
    total = min(LOOKED_AT, order.shape[0])
    missed = loss = right = 0.0
    for first in range(0, total, _AT_ONCE):
        rows = order[first : min(first + _AT_ONCE, total)]
        at = kept(rules, rows.shape[0], table)
        take(at, table, rows)
        generate(at, of, rules, running, False)
        judge(at, against)
        missed += _missed(at, rules, category[rows])
        for row in range(rows.shape[0]):
            _shares(at.of_logits, at.logits, row, _NONE)
            own = category[rows[row]]
            loss -= np.log(at.of_logits[row, own])
            right += np.argmax(at.logits[row]) == own
    return missed / total, loss / total, right / total


@compiled
def _missed(at: Pass, rules: Rules, own: Longs) -> float:
    """Sum over rows of the squared error of the observed mediators (equation 4)."""
    first, missed = rules.covariates + rules.categories, 0.0
    for row in range(own.shape[0]):
        for place in range(rules.mediators):
            apart = at.soft[row, own[row] * rules.mediators + place] - at.inputs[row, first + place]
            missed += apart * apart
    return missed
