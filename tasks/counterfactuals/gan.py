"""Ensembles of generators of mediators for the rows of an audit: training rows, and generated mediators.

Every stage that uses generators builds them here, so that all get the same mediators. Importing this loads torch.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pyarrow as pa

from schemas.audit.spec import Protected
from schemas.errors import DataQualityError, IntegrityError
from tasks.counterfactuals.algorithm.conditional import FEWEST_ROWS, QuantileMap, fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics import Convergence, convergence, log_loss_alone
from tasks.counterfactuals.algorithm.gan import training
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.counterfactuals.algorithm.gan.training import Categories, GanDivergedError, Imaginer, train
from tasks.counterfactuals.stage_settings import GeneratorSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.encoding import Columns, some
from tasks.numerics.networks.training import Checkpoint, of_bytes, to_bytes
from tasks.numerics.problem import Mediation
from tasks.pipeline.progress import progress, stop_requested
from tasks.pipeline.stage import Scratch
from tasks.preprocessing.columns import Grouped, groups_of

_REPORTS = 10
"""Times that a training tells how far it has come."""

_KEPT_EVERY_S = 15.0
"""Seconds after which the state of a training is written again: what a killed one repeats at most."""


@dataclass(frozen=True)
class Case:
    """One protected attribute, and its applicants as generators take them."""

    protected: Protected
    number: int
    """Of the attribute: its name may hold what a file's name may not."""
    grouped: Grouped
    columns: Columns
    """All features of all applicants."""
    categories: Categories
    learnt: Longs
    """The rows of all groups that were drawn to be learnt from; only those of categories are."""
    settings: GeneratorSettings

    @property
    def places(self) -> list[int]:
        """The mediators among the columns."""
        return [self.columns.names.index(name) for name in self.settings.mediators_of(self.protected)]

    @cached_property
    def rows(self) -> Mediation:
        """The applicants of all categories, in order."""
        member_columns = self.columns.rows(self.categories.rows)
        covariates = [member_columns.names.index(name) for name in self.settings.covariates_of(self.protected)]
        category_groups = self.categories.groups
        names = tuple(self.grouped.groups[number] for number in category_groups)
        category = np.searchsorted(category_groups, self.grouped.group[self.categories.rows])
        return Mediation(some(member_columns, covariates), category, names, some(member_columns, self.places))

    @property
    def trained(self) -> Longs:
        """Those of ``rows`` that generators learn from."""
        return np.flatnonzero(np.isin(self.categories.rows, self.learnt))


@dataclass(frozen=True)
class Generated:
    """Generated mediators of the applicants of a case."""

    imagined: Floats
    """``(s, k, n, p)``."""
    state: Checkpoint | None = None
    """Of adversarial generators, after the last epoch."""
    convergence: Convergence | None = None


def cases(
    columns: Columns,
    memberships: pa.Table,
    ids: "np.ndarray[tuple[int], np.dtype[np.object_]]",
    settings: GeneratorSettings,
) -> Iterator[Case]:
    """One case for each protected attribute."""
    grouped, least = groups_of(memberships, ids, settings.protected), fewest(settings)
    for number, attribute in enumerate(settings.protected):
        attribute_groups = grouped[attribute.name]
        if not attribute_groups.compared:
            continue
        mediators = columns.values[:, [columns.names.index(name) for name in settings.mediators_of(attribute)]]
        rng = np.random.default_rng([settings.seed, number])
        learnt = training.drawn(attribute_groups.group, settings.gan.rows, least, rng)
        trained_categories = training.categories(
            attribute_groups.group, len(attribute_groups.groups), attribute_groups.reference, mediators, learnt, least
        )
        yield Case(attribute, number, attribute_groups, columns, trained_categories, learnt, settings)


def fewest(settings: GeneratorSettings) -> int:
    """Rows that a category has to have: a batch, and enough for quantiles, which adversarial generators are held to."""
    return max(FEWEST_ROWS, settings.gan.batch if settings.gan.generator == "gan" else 0)


def generate(case: Case, scratch: Scratch) -> Generated:
    """Train or fit generators, and generate mediators.

    Raises:
        DataQualityError: Training diverged; the last good state is kept in ``scratch``.
        IntegrityError: What ``scratch`` holds is of another training run.
    """
    rows, seed = case.rows.rows(case.trained), case.settings.seed
    if case.settings.gan.generator == "quantile":
        return Generated(fit_quantiles(rows, seed).imagine(case.rows))
    gan = gan_settings(case.settings)
    file = f"generators {case.number}.safetensors"
    with progress(_REPORTS, f"generators for {case.protected.name}") as tell:
        saved_at = time.monotonic()

        def on_epoch(state: Checkpoint) -> None:
            nonlocal saved_at
            if stop_requested() or state.epoch == gan.epochs or time.monotonic() - saved_at >= _KEPT_EVERY_S:
                scratch.write(file, to_bytes(state))
                saved_at = time.monotonic()
            if state.epoch * _REPORTS // gan.epochs > (state.epoch - 1) * _REPORTS // gan.epochs:
                missed, _, accuracy = state.history[-1].mean(0).tolist()
                quality = f"reconstruction {missed:.3f}, discriminators right in {accuracy:.2f}"
                tell(f"epoch {state.epoch} of {gan.epochs}: {quality}")

        with _explained(scratch, file, case.protected.name):
            trained = train(rows, gan, on_epoch, scratch.whole(file, of_bytes))
    settled = convergence(trained.checkpoint, trained.imaginer.encoder.width, log_loss_alone(rows, seed))
    return Generated(trained.imaginer.imagine(case.rows), trained.checkpoint, settled)


@contextmanager
def _explained(scratch: Scratch, file: str, name: str) -> Iterator[None]:
    """Add the attribute and the place of the state to errors of a training; keep the last good state."""
    try:
        yield
    except GanDivergedError as error:
        scratch.write(file, to_bytes(error.last_good))
        raise DataQualityError(f"{name}: {error}{scratch.where(file)}. These are settings of methods.gcfn") from error
    except IntegrityError as error:
        raise IntegrityError(f"{name}: {error}; remove {scratch.path(file)} to train from the start") from error


def regenerated(case: Case, content: bytes | None) -> Floats:
    """Counterfactual mediators of a case's generators, ``(s, k, n, p)``, from the state that ``generate`` stored.

    Args:
        case: The same rows and settings.
        content: The state; None for a map of quantiles, which is fitted again.

    Raises:
        IntegrityError: The state is damaged, or of other rows or settings.
    """
    return imaginer_of(case, content).imagine(case.rows)


def imaginer_of(case: Case, content: bytes | None) -> Imaginer | QuantileMap:
    """The generators of a case, which imagine any rows of its columns; arguments and errors as of ``regenerated``."""
    rows = case.rows.rows(case.trained)
    if content is None:
        return fit_quantiles(rows, case.settings.seed)
    return train(rows, gan_settings(case.settings), resume=of_bytes(content)).imaginer


def gan_settings(settings: GeneratorSettings) -> GanSettings:
    """Settings of a training: the fields of the same names."""
    values = {field.name: getattr(settings.gan, field.name, None) for field in fields(GanSettings)}
    return GanSettings(**{name: value for name, value in values.items() if value is not None}, seed=settings.seed)
