"""The overlap-weighted difference: compares the groups where both are.

Members are weighted by 1 - e and reference applicants by e. With a logit for e the weighted means of its columns are
equal exactly (Li, Morgan and Zaslavsky 2018, theorem 3).
"""

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.propensity.score import Propensity
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.influence import Estimate, estimate, standard_error


def overlap_weights(propensity: Propensity) -> Floats:
    """``(m,)`` 1 - e for members and e for reference applicants."""
    return np.where(propensity.pair.member, 1 - propensity.e, propensity.e)


def overlap_effect(propensity: Propensity, level: float) -> Estimate:
    """Difference of weighted denial rates, group minus reference.

    Its influence function has a term for the estimated propensity: with sums A of a (1 - e) and B of (1 - a) e, and
    D = - sum of e (1 - e) [a (y - mu1) / A + (1 - a) (y - mu0) / B] x, that term is D' H^-1 x_i (a_i - e_i)
    (Li, Thomas and Li 2019, appendix).
    """
    pair, e = propensity.pair, propensity.e
    member = pair.member.astype(np.float64)
    weights = overlap_weights(propensity)
    shares = [member * weights / (member @ weights), (1 - member) * weights / ((1 - member) @ weights)]
    means = [float(share @ pair.y) for share in shares]
    residuals = [pair.y - mean for mean in means]
    influence = shares[0] * residuals[0] - shares[1] * residuals[1]
    inside = [each / np.where(weights > 0, weights, 1.0) for each in shares]  # a / A and (1 - a) / B
    slope = -(e * (1 - e) * (inside[0] * residuals[0] + inside[1] * residuals[1])) @ pair.x
    influence = influence + (pair.x @ (propensity.fit.inverse @ slope)) * (member - e)
    se = standard_error(influence, pair.cluster)
    reason = f"propensity penalised: {propensity.separated}" if propensity.separated else ""
    return estimate(means[0] - means[1], se, level, pair.cluster, reason)
