"""Artifacts and partitions: path and digest of a validated table, which stages exchange instead of frames."""

from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict


class Artifact(BaseModel):
    """One validated table of the lake."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    path: str
    """Relative to the lake's root, with forward slashes."""
    sha256: str
    rows: int


class Partition(BaseModel):
    """Output of one stage under one key: tables and files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    key: str
    tables: tuple[Artifact, ...]
    files: dict[str, str]
    """Path relative to the lake's root -> sha256, for what is not a table (models, pages, records)."""
    reused: bool = False
    """Whether the lake already held it."""

    def within(self, path: str) -> str:
        """A path of one of its tables or files as a name below the partition's folder: ``pages/gap.html``."""
        home = PurePosixPath(self.tables[0].path).parent
        return PurePosixPath(path).relative_to(home).as_posix()

    def table(self, name: str) -> Artifact:
        """The artifact of table ``name``.

        Raises:
            KeyError: the stage does not write that table.
        """
        for artifact in self.tables:
            if artifact.table == name:
                return artifact
        raise KeyError(f"stage {self.stage!r} writes no table {name!r}")
