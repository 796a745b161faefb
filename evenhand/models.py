"""A user's model for the stages: anything with ``predict_proba`` or ``predict``, or a function."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.frame_rows import Rows
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.attributions import Linear, log_odds
from tasks.scoring.models import Facts, linear_form


@dataclass(frozen=True)
class Answering:
    """A model with the frame that it takes; rows come as numbers, and as numbers of categories."""

    model: Any
    rows: Rows
    favourable: Any = None
    """The class that favours the applicant; 1 or true if None, the second where the model names no classes."""
    categories: tuple[tuple[str, ...], ...] = ()
    """Of each column, as the stages number them."""

    def knowing(self, categories: Sequence[Sequence[str]]) -> "Answering":
        """The same, with the categories of the columns."""
        return replace(self, categories=tuple(tuple(names) for names in categories))

    def probability(self, x: Floats) -> Floats:
        """``(r,)`` probabilities of the favourable decision, or 0 and 1, for rows ``(r, p)``."""
        if not len(x):
            return np.zeros(0)
        return self.scores(self.rows.frame_of(x, self.categories), len(x))

    def scores(self, frame: Any, n: int) -> Floats:
        """The same for the ``n`` rows of a frame.

        Raises:
            InputError: The model does not take the frame, or gives something else than a number for a row.
        """
        name = type(self.model).__name__
        try:
            answer, place = self._answer(frame)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"the model ({name}) does not take the frame: {error}") from error
        values = np.asarray(answer)
        if values.ndim == 2 and values.shape[1] > 2:
            raise InputError(f"the model ({name}) has {values.shape[1]} classes; a model of two classes is expected")
        if values.ndim == 2 and values.shape[1] == 2:
            values = values[:, place]
        values = values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values
        if values.shape != (n,):
            raise InputError(f"the model ({name}) gives {values.shape} for {n} rows; one number a row is expected")
        if values.dtype.kind not in "fiub" and self.favourable is None:
            raise InputError(f"the model ({name}) gives {values[0]!r}: say which value favours, favourable=...")
        classes = values.dtype.kind not in "fiub" or self.favourable not in (None, 1, True)
        if classes and not hasattr(self.model, "predict_proba"):
            values = values == (1 if self.favourable is None else self.favourable)
        scores: Floats = values.astype(np.float64)
        if ((scores < 0) | (scores > 1)).any():
            raise InputError(f"the model ({name}) gives {scores.min():g} to {scores.max():g}; give probabilities")
        return scores

    def _answer(self, frame: Any) -> tuple[Any, int]:
        """The answer of the model, and the place of the favourable class in it."""
        if isinstance(self.model, type):
            raise InputError(f"model is the class {self.model.__name__}; give a fitted model of it")
        if hasattr(self.model, "predict_proba"):
            classes = list(getattr(self.model, "classes_", ()))
            if self.favourable is not None and classes and self.favourable not in classes:
                raise InputError(f"the model has the classes {classes}, and not {self.favourable!r}")
            favourable = self.favourable
            if favourable is None and classes:
                favourable = 1
                if favourable not in classes:
                    raise InputError(f"the model has the classes {classes}: say which one favours, favourable=...")
            place = classes.index(favourable) if classes else 1
            return self.model.predict_proba(frame), place
        if hasattr(self.model, "predict"):
            return self.model.predict(frame), 1
        if callable(self.model):
            return self.model(frame), 1
        raise InputError(f"model is a {type(self.model).__name__}, which has neither predict_proba nor predict")

    def decide(self, frame: Any, n: int) -> Bools:
        """Its decisions on the ``n`` rows of a frame."""
        decisions: Bools = self.scores(frame, n) >= 0.5
        return decisions

    @property
    def facts(self) -> Facts:
        """What is known of it: a logistic regression over numbers is linear in the columns."""
        return Facts(type(self.model).__name__, None, (), False, False, self._linear())

    def _linear(self) -> Linear | None:
        plain = (column.is_plain(names) for column, names in zip(self.rows.columns, self.categories, strict=False))
        if not self.categories or not all(plain) or self.favourable not in (None, 1, True):
            return None
        form = linear_form(self.model)
        return form if form is not None and len(form.coefficients) == len(self.rows.columns) else None

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` log odds of the favourable decision."""
        return log_odds(self.probability(x))

    def gradient(self, x: Floats) -> Floats:
        """Not used: a model in memory is linear, or is explained by differences."""
        raise InputError(f"the model ({type(self.model).__name__}) has no gradient for {len(x)} rows")
