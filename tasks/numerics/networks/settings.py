"""Settings of a training run, frozen. Defaults are the paper's but for two, which are cheaper and train as well.

The paper takes 32 steps along every path and all matched pairs of a batch. Eight steps on half of the pairs reach the
same consistency in a fraction of the time. ``PAPER`` restores the paper's values.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

Activation = Literal["relu", "softplus", "silu"]
Device = Literal["auto", "cpu", "cuda"]

PAPER: Final[dict[str, Any]] = {"steps": 32, "pair_share": 1.0}
"""What the paper does and the defaults do not: ``replace(settings, **PAPER)``."""


@dataclass(frozen=True)
class NetSettings:
    """A multilayer perceptron with one logit (section 5.1)."""

    hidden: tuple[int, ...] = (128, 64)
    activation: Activation = "relu"
    """ReLU has no second derivative almost everywhere; the smooth ones let consistency act on where units switch."""
    dropout: float = 0.2
    """Share of hidden units dropped while the prediction is trained; attributions are always taken without."""


@dataclass(frozen=True)
class TrainingSettings:
    """Algorithm 2 and the settings of section 5.1."""

    net: NetSettings = NetSettings()
    learning_rate: float = 3e-4
    batch: int = 64
    epochs: int = 30
    lambda_eo: float = 1.0
    """Weight of the squared gaps in true and false positive rates; 0 leaves the term out."""
    lambda_cec: float = 1.0
    """Weight of the inconsistency of explanations; 0 leaves the term out."""
    steps: int = 8
    """Midpoints along each path."""
    pair_share: float = 0.5
    """Share of each batch whose pairs are explained, in (0, 1]; rows are shuffled, so it is another share each time."""
    seed: int = 0
    device: Device = "auto"
    """``auto`` takes CUDA where there is a device. What is drawn does not depend on it; the last digits do."""
