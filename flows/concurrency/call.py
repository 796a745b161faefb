"""Call of a stage as plain values, which a flow's task and a worker process take alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.concurrency.disk import telling_full_disk
from flows.supervision.file_modes import restrict
from schemas.artifact import Artifact, Partition
from tasks.lake.store import Lake
from tasks.pipeline.specs import validated
from tasks.plan import STAGES, Inputs, Step

Given = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class StageCall:
    """One stage on its artifacts."""

    stage: str
    given: Mapping[str, Sequence[Mapping[str, Any]]]
    """Table -> its artifacts, as ``Artifact`` dumps them."""
    settings: Mapping[str, Any]
    modules: Sequence[str]
    lake: str

    @classmethod
    def of(cls, step: Step, given: Inputs, lake: str) -> "StageCall":
        """The call of a step."""
        artifacts = {table: [each.model_dump() for each in entries] for table, entries in given.items()}
        return cls(step.stage.name, artifacts, step.settings.model_dump(mode="json"), list(step.modules), lake)

    def restored(self) -> tuple[Any, Inputs, Any]:
        """The stage, its artifacts and its settings."""
        stage = STAGES[self.stage]
        artifacts = {
            table: [Artifact.model_validate(each) for each in entries] for table, entries in self.given.items()
        }
        return stage, artifacts, validated(stage.settings, self.settings)

    def run(self) -> Partition:
        """Run the stage in this process.

        Raises:
            EvenhandError: as the stage says.
        """
        restrict()  # a worker of Dask has the umask of its shell
        stage, artifacts, settings = self.restored()
        with telling_full_disk(Lake(self.lake), f"stage {self.stage}"):
            partition: Partition = stage.run(Lake(self.lake), artifacts, settings, self.modules)
        return partition
