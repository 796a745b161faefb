"""Trains the nets of every group but the reference group: tables in, aggregates and nets out, with checkpoints.

The nets learn the lender's outcomes, so that all figures are about the lender's applications, not an audited model.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.errors import DataQualityError, IntegrityError
from schemas.tables.applications import TRAINED_NETS
from schemas.tables.findings import AGGREGATES
from schemas.terms import DecisionMaker
from tasks.methods.cec.algorithm import models as algorithm_models
from tasks.methods.cec.algorithm.mitigations import Population
from tasks.methods.cec.algorithm.models import Lending, Trial
from tasks.methods.cec.train.settings import TrainSettings
from tasks.numerics.networks.network import to_safetensors
from tasks.numerics.networks.training import Checkpoint, DivergedError, of_bytes, to_bytes
from tasks.numerics.results import Aggregate
from tasks.pipeline.method import Origin
from tasks.pipeline.progress import Tell, progress
from tasks.pipeline.stage import Produced, Scratch
from tasks.preprocessing.columns import Grouped, columns_of, groups_of, inputs_of
from tasks.scoring.decider import financial

log = logging.getLogger("evenhand")

METHOD = "cec"


@dataclass(frozen=True)
class States:
    """Checkpoints of training runs as files; the runs of one group have different names."""

    scratch: Scratch
    group: str
    """Told from others in the names of files."""

    def kept(self, run: str) -> Checkpoint | None:
        """Returns the last checkpoint of a run; None without a complete one, so that training starts again."""
        return self.scratch.whole(self.file(run), of_bytes)

    def keep(self, run: str, state: Checkpoint) -> None:
        """Replaces the checkpoint of a run."""
        self.scratch.write(self.file(run), to_bytes(state))

    def file(self, run: str) -> str:
        """Returns the file of a run."""
        return f"{self.group} {run}.safetensors"


@dataclass(frozen=True)
class _Case:
    """One group of one protected attribute, trained together with the reference group."""

    attribute: str
    grouped: Grouped
    group: int
    number: str
    """Number of the attribute and of the group: names may hold what names of files may not."""

    @property
    def said(self) -> str:
        """How messages call it."""
        return f"{self.attribute}: {self.grouped.groups[self.group]}"


def trained(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    *,
    settings: TrainSettings,
    scratch: Scratch,
) -> Produced:
    """Does the work of the stage ``train``."""
    columns = columns_of(applicants, encodings)
    everyone_inputs = inputs_of(columns, encodings, "one_hot")
    outcome = applications.select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    label = outcome.loc[applicants["row_id"].to_numpy()].to_numpy(dtype=bool)
    population = Population(everyone_inputs.x, label, np.zeros(len(label), dtype=bool))
    everyone = Lending(population, everyone_inputs.column, columns.names, *financial(columns, encodings))
    inputs = everyone_inputs.names
    cases = list(_cases(memberships, applicants["row_id"].to_numpy(), settings))
    models = algorithm_models.models(settings.training)
    aggregates, nets = [AGGREGATES.empty()], [TRAINED_NETS.empty()]
    for case in cases:
        rows = algorithm_models.beside(everyone, case.grouped.group, case.group, case.grouped.reference)
        rows = algorithm_models.drawn(rows, settings.training.rows, settings.seed)
        reason = algorithm_models.refusal(rows, settings.training.folds, settings.seed)
        if reason:
            log.info("%s: nothing is trained: %s", case.said, reason)
            n = len(rows.population.favourable)
            aggregates.append(_table(case, list(algorithm_models.refused(models, case.group, n, reason))))
            continue
        with progress(len(models) * settings.training.folds, f"training for {case.said}") as report:
            trials = list(_trials(rows, case, settings, scratch, report))
        aggregates.append(_table(case, list(algorithm_models.aggregates(trials, case.group))))
        nets.append(_nets(case, trials, inputs))
    tables = {AGGREGATES.name: pa.concat_tables(aggregates), TRAINED_NETS.name: pa.concat_tables(nets)}
    return Produced(tables)


def _cases(
    memberships: pa.Table, ids: "np.ndarray[tuple[int], np.dtype[np.object_]]", settings: TrainSettings
) -> Iterator[_Case]:
    grouped = groups_of(memberships, ids, settings.protected)
    for position, (name, of) in enumerate(grouped.items()):
        for group in range(len(of.groups) if of.compared else 0):
            if group != of.reference:
                yield _Case(name, of, group, f"{position}-{group}")


def _trials(rows: Lending, case: _Case, settings: TrainSettings, scratch: Scratch, report: Tell) -> Iterator[Trial]:
    """Trains every model on every fold and logs each one. An error names the folder of the checkpoints."""
    states = States(scratch, case.number)
    try:
        for trial in algorithm_models.trials(rows, settings.cec, settings.seed, states):
            cec = f"CEC {trial.consistency.cec:.3f}" if trial.consistency else "no CEC"
            report(f"fold {trial.fold + 1} of {settings.training.folds}, {trial.model.name}: {cec}")
            yield trial
    except DivergedError as error:
        message = f"{case.said}, {error.run}: {error}{scratch.where(states.file(error.run))}"
        raise DataQualityError(f"{message}. These are settings of methods.cec.training") from error
    except IntegrityError as error:
        home = scratch.path("")
        raise IntegrityError(f"{case.said}: {error}; remove {home} to train from the start") from error


def _table(case: _Case, aggregates: list[Aggregate]) -> pa.Table:
    return Origin(METHOD, DecisionMaker.LENDER, case.attribute, case.grouped.groups).aggregates(aggregates)


def _nets(case: _Case, trials: list[Trial], inputs: tuple[str, ...]) -> pa.Table:
    trials_with_net = [(trial, trial.net) for trial in trials if trial.net is not None]
    return TRAINED_NETS.build(
        protected_attribute=[case.attribute] * len(trials_with_net),
        group=[case.grouped.groups[case.group]] * len(trials_with_net),
        fold=[trial.fold for trial, _ in trials_with_net],
        model=[trial.model.name for trial, _ in trials_with_net],
        inputs=[json.dumps(inputs)] * len(trials_with_net),
        content=[to_safetensors(net) for _, net in trials_with_net],
    )
