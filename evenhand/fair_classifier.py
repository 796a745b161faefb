"""A classifier that is trained to score applicants as it would in another group (GCFN)."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.base import ClassifierMixin

from evenhand.errors import InputError
from evenhand.frame_rows import Rows, rows_of, sensitive_of
from evenhand.results import Results, checks_frame
from evenhand.runs import Data, Run, calling, given_columns, run, spec_of
from tasks.numerics.arrays import Floats
from tasks.numerics.problem import Mediation


class CounterfactualFairClassifier(ClassifierMixin, Results):  # type: ignore[misc]  # scikit-learn has no types
    """A network with scores that change little when mediators take the values of another group (GCFN).

    Ma, Melnychuk, Frauen and Feuerriegel. Generators learn the mediators of every group given the covariates; the
    classifier then minimises cross-entropy plus `weight` times the worst generator's mean squared change of the score
    (equation 10). `unfairness_` is that change on held-out rows.

    Args:
        mediators: Columns that the sensitive feature may influence; all other columns are covariates. All columns are
            mediators if None.
        weight: Of the change of the score; 0 for none.
        generator: `gan`, or `quantile` where every mediator is a number.
        networks: Generators.
        epochs: Passes of a generator over the rows.
        test: Share of the rows that `unfairness_` is measured on.
        reference: Group that the others are compared with; the largest if None.
        columns: Column -> keys of an audit spec that its values do not show.
        settings: Further keys of `methods.gcfn` of an audit spec. Without `batch`, a batch has 256, 128, 64 or 32 rows:
            the most that every group of enough rows for 32 fills.
        random_state: Seed.
    """

    METHOD, MEASURE, COMPARED = "gcfn", "fair_unfairness", ()

    def __init__(
        self,
        mediators: Sequence[str] | None = None,
        *,
        weight: float = 1.0,
        generator: str = "gan",
        networks: int = 10,
        epochs: int = 300,
        test: float = 0.2,
        reference: Any = None,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.mediators = mediators
        self.weight = weight
        self.generator = generator
        self.networks = networks
        self.epochs = epochs
        self.test = test
        self.reference = reference
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Train the generators, then the classifier, on all rows but a share that it is measured on.

        Args:
            X: ``(n, p)`` frame of mediators and covariates.
            y: ``(n,)`` two classes; the second of their order is the favourable one.
            sensitive_features: ``(n,)`` groups; no generator learns one of fewer rows than a batch.

        Raises:
            InputError: A fault of the frame, the classes or the groups; it names the column.
            MissingExtraError: torch is not installed.
        """
        calling(lambda: import_module("torch"), "GCFN")
        rows = rows_of(X)
        self.classes_, decisions = _classes(y, rows)
        rows.arrays(rows.names, {column.name: column.categories for column in rows.columns})  # refuses a missing value
        data = Data.joined(rows, sensitive_of(sensitive_features, rows), "decision", decisions)
        roles = {name: {"role": ["mediator"]} for name in self._mediators(rows)}
        for name in rows.names:
            roles.setdefault(name, {"role": ["covariate"]})
        for name, keys in (self.columns or {}).items():
            roles[name] = {**roles.get(name, {}), **keys}
        lambdas = [self.weight]
        settings: dict[str, Any] = {
            "generator": self.generator,
            "networks": self.networks,
            "epochs": self.epochs,
            "batch": fitting_batch(next(iter(data.sensitive.values())), 1 - self.test),
            "prediction": {"lambdas": lambdas, "test": self.test},
            **(self.settings or {}),
        }
        spec = spec_of(
            data,
            methods={self.METHOD: settings},
            reference=self.reference,
            columns=roles,
            random_state=self.random_state,
            further={"leakage": {"allow": list(rows.names)}, "verdicts": {"copies": "keep"}},
        )
        audited = run(data, spec, "GCFN")
        self._keep(audited, self.METHOD, "lender")
        self._trained = calling(lambda: _Trained.of(audited, self.weight), "GCFN")
        return self

    def __sklearn_tags__(self) -> Any:
        """Two classes, as fairness is about a favourable and an unfavourable one."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _mediators(self, rows: Rows) -> list[str]:
        return list(rows.names) if self.mediators is None else given_columns(self.mediators, "mediators", rows)

    def _parameters(self) -> dict[str, Any]:
        return {"model": "GCFN" if self.weight > 0 else "unconstrained", "lambda": float(self.weight)}

    @property
    def unfairness_(self) -> pd.DataFrame:
        """Mean squared change of the score in another group, by the worst generator, on held-out rows by group."""
        return self.by_group

    @property
    def checks_(self) -> pd.DataFrame:
        """The checks of the generators, to be read before any other figure.

        A row for each check, network and column: `name`, `network`, `column`, `value`, `limit`, `side` (whether the
        limit is the `least` or the `most` that passes; of an advantage, the amount without its sign), `passed`, `n`. A
        check without a limit, or without a value, neither passes nor fails.
        """
        fitted = self._fitted
        return checks_frame(fitted.run.tables["generator_checks"], fitted.attribute)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 as scikit-learn
        """``(n, 2)`` probabilities of the classes, in the order of `classes_`.

        Raises:
            InputError: A column is missing, or holds a category that was not fitted.
        """
        scores = self._model.scores(self._rows(X))
        return np.column_stack([1 - scores, scores])

    def predict(self, X: Any) -> Any:  # noqa: N803 as scikit-learn
        """``(n,)`` the more probable class."""
        scores = self.predict_proba(X)[:, 1]
        return self.classes_[(scores >= 0.5).astype(int)]

    def counterfactuals(self, X: Any, sensitive_features: Any) -> Any:  # noqa: N803 as scikit-learn
        """The mediators of every row in every other group, by the most typical generator.

        Args:
            X: ``(n, p)`` frame.
            sensitive_features: ``(n,)`` groups, which `fit` has seen.

        Returns:
            A frame with a row for each row of X and other group: its index, `to_group`, and the mediators.
        """
        rows = self._rows(X)
        ((name, text),) = sensitive_of(sensitive_features, rows, several=False).items()
        return rows.native(self._model.counterfactuals(rows, name, np.array(text.to_pylist(), dtype=str)))

    def _rows(self, X: Any) -> Rows:  # noqa: N803 as scikit-learn
        return rows_of(X, self._fitted.run.data.rows)

    @property
    def _model(self) -> "_Trained":
        self._fitted  # noqa: B018 raises where nothing was fitted
        trained: _Trained = self._trained
        return trained


def _classes(y: Any, rows: Rows) -> tuple[Any, Any]:
    """The two classes in order, and whether each row is of the second."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InputError("requires y to be passed, but the target y is None: give two classes")
    if hasattr(y, "index") and rows.namespace == "pandas" and not y.index.equals(rows.index):
        raise InputError("y has another index than X; take both from one frame")
    values = column_or_1d(np.asarray(y), warn=True)
    if len(values) != len(rows):
        raise InputError(f"y has {len(values):,} rows, and X has {len(rows):,}")
    missing = pd.isna(values)
    if missing.any():
        label = rows.label(int(missing.argmax()))
        raise InputError(f"y has no value in {int(missing.sum()):,} rows (the first is {label!r}), it holds NaN")
    check_classification_targets(values)
    classes = np.unique(values)
    if len(classes) != 2:
        kind = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        raise InputError(f"Only binary classification is supported; y has {kind}")
    return classes, values == classes[1]


BATCHES = (256, 128, 64, 32)
"""Rows of a batch that a group may fill, the default first."""


def fitting_batch(groups: pa.Array, share: float) -> int:
    """The largest batch that every group fills with its share of training rows; groups below the smallest count not."""
    sizes = [share * count.as_py() for count in groups.value_counts().field("counts")]
    smallest = min((size for size in sizes if size >= BATCHES[-1]), default=0.0)
    return next((batch for batch in BATCHES if batch <= smallest), BATCHES[0])


class _Trained:
    """Generators and a classifier, after the stages that trained them."""

    def __init__(self, imaginer: Any, case: Any, predictor: Any, scales: Any) -> None:
        """Keep what scores new rows."""
        self.imaginer, self.case, self.predictor, self.scales = imaginer, case, predictor, scales

    @classmethod
    def of(cls, audited: Run, weight: float) -> "_Trained":
        """The generators as the stage stored them, and the classifier that the stage measured, trained again."""
        from tasks.counterfactuals.gan import cases, imaginer_of
        from tasks.methods.gcfn.algorithm import predictors
        from tasks.methods.gcfn.predict_fairly.settings import predict_settings
        from tasks.preprocessing.columns import columns_of

        settings = predict_settings(audited.spec)
        if settings is None:
            raise ValueError("the spec trains no predictor")
        applicants, encodings, memberships = (audited.tables[n] for n in ("applicants", "encodings", "memberships"))
        ids = applicants["row_id"].to_numpy()
        case = next(cases(columns_of(applicants, encodings), memberships, ids, settings))
        if not len(case.categories.groups):
            raise InputError(
                f"{case.protected.name}: every group but one has fewer rows than a batch of the generators; give more "
                "rows, or a smaller settings={'batch': ...}"
            )
        saved = audited.rows("generators", protected_attribute=case.protected.name)
        imaginer = imaginer_of(case, saved["content"].iloc[0] if len(saved) else None)
        outcome = (
            audited.tables["applications"].select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
        )
        label = outcome.loc[ids].to_numpy(dtype=bool)[case.categories.rows]
        lending = predictors.Lending(case.rows, imaginer.imagine(case.rows), label)
        variant = predictors.UNCONSTRAINED
        if weight > 0:
            variant = predictors.Variant(predictors.GCFN, "mediators", weight)
        fitted = predictors.fitted(lending, variant, settings.prediction, settings.gan.device, settings.seed)
        # in double precision: in single precision the last digits of a row depend on the rows it is scored with
        fitted.predictor.net.double()
        return cls(imaginer, case, fitted.predictor, fitted.scales)

    def _mediation(self, rows: Rows, category: Any) -> Mediation:
        from tasks.numerics.encoding import some

        template = self.case.rows
        parts = []
        for columns in (template.covariates, template.mediators):
            chosen = rows.arrays(columns.names, dict(zip(columns.names, columns.categories, strict=True)))
            parts.append(some(chosen, [chosen.names.index(name) for name in columns.names]))
        return Mediation(parts[0], category, template.categories, parts[1])

    def scores(self, rows: Rows) -> Floats:
        """``(n,)`` probabilities of the second class."""
        mediation = self._mediation(rows, np.zeros(len(rows), np.int64))
        k, p = len(mediation.categories), len(mediation.mediators.names)
        nobody = np.zeros((0, k, len(rows), p))
        applicants = self.scales.applicants(mediation, nobody, np.zeros(len(rows), np.bool_))
        scores: Floats = self.predictor.scores(applicants)
        return scores

    def counterfactuals(self, rows: Rows, name: str, groups: Any) -> pd.DataFrame:
        """The mediators of rows in every other group."""
        from tasks.counterfactuals.algorithm.diagnostics import typical

        categories = self.case.rows.categories
        unknown = [group for group in np.unique(groups) if group not in categories]
        if unknown:
            raise InputError(
                f"sensitive feature {name!r} holds {str(unknown[0])!r}, and generators know {', '.join(categories)}"
            )
        category = np.array([categories.index(group) for group in groups], dtype=np.int64)
        mediation = self._mediation(rows, category)
        imagined = self.imaginer.imagine(mediation)
        deviation = self.case.rows.mediators.values.std(axis=0)
        frames = []
        for to, group in enumerate(categories):
            at = np.flatnonzero(category != to)
            values = imagined[:, to, at]
            network = typical(values, mediation.rows(at), deviation)
            chosen = values[network, np.arange(len(at))]
            frame = pd.DataFrame(index=rows.index[at])
            frame["to_group"] = group
            for place, (column, names) in enumerate(
                zip(mediation.mediators.names, mediation.mediators.categories, strict=True)
            ):
                texts = chosen[:, place]
                described = next(c for c in rows.columns if c.name == column)
                frame[column] = [described.value(names[int(v)]) for v in texts] if names else texts
            frames.append(frame)
        return pd.concat(frames)
