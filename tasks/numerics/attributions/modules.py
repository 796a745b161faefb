"""Logit and gradient, by automatic differentiation, of any torch module that gives one number per row."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Floats

ROWS_AT_ONCE = 65_536
"""Rows that the module sees at the same time."""

CLIP = 1e-6
"""Probabilities that a module gives are held this far from 0 and 1; beyond, the logit is flat."""


@dataclass(frozen=True)
class Module:
    """A torch module ``(n, p) -> (n,)`` or ``(n, 1)``, in the precision of its own parameters."""

    module: Any
    """In evaluation mode from here on."""
    output: Literal["logit", "probability"] = "logit"
    """What the module gives."""

    def __post_init__(self) -> None:
        """Switch dropout off, and batch statistics to those of training."""
        self.module.eval()

    def logit(self, x: Floats) -> Floats:
        """``(n,)`` logits of rows ``(n, p)``.

        Raises:
            SpecError: The module does not give one number per row, or no probability where it should.
        """
        parts = [x[start : start + ROWS_AT_ONCE] for start in range(0, len(x), ROWS_AT_ONCE)]
        logits = [self._logits(self._tensor(part)).detach().cpu().double().numpy() for part in parts]
        return np.concatenate([np.zeros(0), *logits])

    def gradient(self, x: Floats) -> Floats:
        """``(n, p)`` gradients of the logit at rows ``(n, p)``, all at once."""
        import torch  # seconds to import, and whoever has a module has it already

        tensor = self._tensor(x).requires_grad_()
        (gradient,) = torch.autograd.grad(self._logits(tensor).sum(), tensor)
        gradients: Floats = gradient.cpu().double().numpy()
        return gradients

    def _tensor(self, x: Floats) -> Any:
        import torch

        like = next((each for each in self.module.parameters() if each.is_floating_point()), torch.zeros(0))
        return torch.tensor(x, dtype=like.dtype, device=like.device)

    def _logits(self, tensor: Any) -> Any:
        out = self.module(tensor)
        if tuple(out.shape) not in ((len(tensor),), (len(tensor), 1)):
            message = f"a module gives {tuple(out.shape)} for {len(tensor)} rows; expected ({len(tensor)},) or "
            raise SpecError(f"{message}({len(tensor)}, 1), the {self.output} of the favourable decision")
        out = out.reshape(-1)
        if self.output == "logit":
            return out
        if ((out < 0) | (out > 1)).any():
            low, high = float(out.detach().min()), float(out.detach().max())
            message = f"a module gives numbers from {low:g} to {high:g}, which are no probabilities"
            raise SpecError(f"{message}; if they are logits, say so: output: logit")
        return out.logit(CLIP)
