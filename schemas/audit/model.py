"""Parts ``model`` and ``leakage``: the model audited in addition to the lender's decisions, and what it may know.

The model is fitted to these decisions, or given as a rule in the spec or as a file.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from schemas.bounds import Strict

TakenAs = Literal["one_hot", "codes", "encoded"]
"""As what a model takes its inputs: an input for each category, its number, or what models fitted here see."""


class Rule(Strict):
    """A rule that decides: favourable where a weighted sum of columns, as handed in, passes the limit."""

    weights: dict[str, float] = Field(min_length=1, description="column (continuous) -> its weight")
    limit: float = Field(description="the sum from which on the decision is favourable")
    above: bool = Field(False, description="whether the sum has to lie above the limit, and not just reach it")
    decimals: int | None = Field(
        None, ge=0, le=15, description="digits to which the sum is rounded before it is compared"
    )


class GivenModel(Strict):
    """A model that a user gives as a file, with what it takes and what it gives."""

    path: str = Field(min_length=1, description="the file: ONNX, safetensors, skops, or TorchScript with its sha256")
    sha256: str | None = Field(
        None, pattern="^[0-9A-Fa-f]{64}$", description="digest that the file must have; TorchScript is not read without"
    )
    output: Literal["logit", "probability"] = Field(
        "logit", description="what a TorchScript module gives for a row; other formats state it themselves"
    )
    inputs: TakenAs = Field(
        "one_hot",
        description="how categories are passed: one input each, the number of the category, or encoded as for models "
        "fitted here",
    )


class Model(Strict):
    """The model audited in addition to the lender's decisions: fitted to them, or given as a rule or a file."""

    kind: Literal[
        "none", "rule", "file", "object", "logistic_regression", "random_forest", "gradient_boosting", "net"
    ] = Field(
        "logistic_regression",
        description="the last four are fitted to the lender's decisions; `rule` and `file` are supplied; `none`: the "
        "lender's decisions alone",
    )
    rule: Rule | None = Field(None, description="the rule of the kind `rule`")
    file: GivenModel | None = Field(None, description="the file of the kind `file`")
    split: Literal["crossfit", "holdout"] = Field(
        "crossfit",
        description="`crossfit`: each row is scored by a model fitted without it; `holdout`: only held-out rows are "
        "explained",
    )
    folds: int = Field(10, ge=2, le=1_000, description="folds of `crossfit`")
    holdout: float = Field(0.3, gt=0, lt=1, description="share held out")
    threshold: float | Literal["rate_matched"] = Field(
        "rate_matched",
        description="score from which a decision is favourable; `rate_matched` denies as many as the lender does; 0.5 "
        "for the kind `file`",
    )
    refits: int = Field(
        200,
        ge=0,
        le=10_000,
        description="resamples of rows on which a logistic regression and its threshold are refitted, for intervals "
        "about the model; 0: none, as for other kinds",
    )

    _object: Any = PrivateAttr(None)

    @classmethod
    def of_object(cls, model: Any, threshold: float = 0.5) -> Self:
        """A model in memory that answers questions as a model from a file does."""
        instance = cls(kind="object", threshold=threshold, refits=0)
        instance._object = model
        return instance

    @property
    def instance(self) -> Any:
        """The model of the kind `object`; None where the spec was read from a file."""
        return self._object

    def identifying(self) -> dict[str, Any]:
        """What identifies the model in addition to the digest of its file: the file name, and not the folder."""
        said: dict[str, Any] = self.model_dump(mode="json")
        if self.file is not None:
            said["file"]["path"] = PurePath(self.file.path.replace("\\", "/")).name
        return said

    @classmethod
    def paper(cls, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a spec under the profile `paper`; how a model is split off is nothing that a file has."""
        split = {} if overrides.get("kind") == "file" else {"split": "holdout"}
        return {**split, "threshold": 0.5, "refits": 0, **overrides}

    @model_validator(mode="before")
    @classmethod
    def _default_threshold(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping) and raw.get("kind") == "file":
            return {"threshold": 0.5, **raw}
        return raw

    @field_validator("threshold")
    @classmethod
    def _is_a_probability(cls, value: float | str) -> float | str:
        if isinstance(value, float) and not 0 < value < 1:
            raise ValueError(f"a probability lies between 0 and 1, and {value:g} does not")
        return value

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        for name, keys in (("rule", "{weights: ..., limit: ...}"), ("file", "{path: ...}")):
            if (self.kind == name) != (getattr(self, name) is not None):
                raise ValueError(f"a model of kind `{name}` needs `{name}: {keys}`, and no other kind has one")
        return self

    @model_validator(mode="after")
    def _is_not_fitted_from_a_file(self) -> Self:
        fields = type(self).model_fields
        fit_keys = [name for name in ("split", "folds", "holdout") if getattr(self, name) != fields[name].default]
        if self.kind == "file" and fit_keys:
            keys = " and ".join(f"`{name}`" for name in fit_keys)
            raise ValueError(f"{keys}: how a model is fitted here; a model from a file is fitted already, leave it out")
        return self

    @property
    def is_given(self) -> bool:
        """Whether it is a rule, a file or an object, so that nothing of it was estimated from the rows of the audit."""
        return self.rule is not None or self.file is not None or self.kind == "object"

    def takes(self, features: Iterable[str]) -> tuple[str, ...]:
        """The columns that it decides by: of a rule those with a weight, of every other model all features."""
        if self.rule is None:
            return tuple(features)
        return tuple(name for name, weight in self.rule.weights.items() if weight)

    @property
    def taken_as(self) -> TakenAs:
        """As what the model takes its inputs; a rule takes columns by name."""
        if self.kind == "object":
            return "codes"
        return "encoded" if self.file is None else self.file.inputs


class Leakage(Strict):
    """Columns that may predict the decision without any other column."""

    allow: tuple[str, ...] = Field(
        (), description="features that are known before the decision, although they predict it; others stop the audit"
    )
