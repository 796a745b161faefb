"""Released folders: what of a run may leave the house, the public certificate, and its check.

A released folder holds the files of a run's report, ``README.md`` and ``certificate.json``. The certificate names every
other file with its sha256, and digests of code and spec. It has no count of rows of stages, and no digest of the source
or of a table that is restricted: whoever knows all rows but one could try them all against such a digest. Whoever
receives the folder checks it alone; the manifest of the run stays in the house.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flows.runs.index import PUBLIC, Run, published_runs, run_of, shares_rows
from flows.runs.signatures import Demand
from schemas.errors import IntegrityError, SpecError
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS, VALIDATIONS
from schemas.tables.findings import MEASURES
from schemas.tables.readings import VERDICT_FINDINGS
from schemas.tables.verdicts import (
    AGREEMENT,
    PREFIX,
    PRICES,
    PUBLISHED_AGREEMENT_PAIRS,
    PUBLISHED_FINDINGS,
    VERDICTS,
)
from tasks.lake import log
from tasks.lake.local_directory import flush, write_flushed
from tasks.lake.log import Signature, Signer, holds, trusted
from tasks.lake.store import Lake, open_lake

if TYPE_CHECKING:
    import pandas as pd

# --------------------------------------------------------------------------------------------------------------------
# What of a run may leave the house: one decision for releases, exports, the server's pages, alerts and artifacts.


_PRICING: Final = f"{PREFIX}pricing"
_CHECKED: Final = f"{PREFIX}{VALIDATIONS.name}"
UNMATCHED: Final = (
    *(f"{PREFIX}{name}" for name in ("flow", "denial_reasons", "pricing", "disparities", "places", "proxy_outcomes")),
    *(f"{PREFIX}{name}" for name in ("left_out", "adjusted_exchanged", "compared_files", VERDICT_FINDINGS.name)),
    *(PUBLISHED_FINDINGS.name, PUBLISHED_AGREEMENT_PAIRS.name, _CHECKED),
)
"""Tables with counts of people that the disclosure pass does not match with those of earlier releases."""
_WITH_PRICES: Final = (*(f"{PREFIX}{table.name}" for table in (MEASURES, VERDICTS, AGREEMENT)),)
"""Tables with rows about prices, whose counts are those of the table of prices."""
WHOLLY_WITHHELD: Final = (
    "an earlier release has rows of this run, and the disclosure pass matches no counts of these tables: "
    "a few people would follow from both"
)


@dataclass(frozen=True)
class Door:
    """What of a run stays in the house."""

    apart: tuple[str, ...] = ()
    """Releases over its rows that it was not audited together with: none of its figures may leave."""
    withheld: tuple[str, ...] = ()
    """Its tables that are withheld whole, since an earlier release has rows of it: ``UNMATCHED`` with rows."""

    @property
    def gone(self) -> tuple[str, ...]:
        """Those without a row: expectations keep their names and lose their counts."""
        return tuple(name for name in self.withheld if name != _CHECKED)

    @property
    def words(self) -> str:
        """The withheld tables, and why; empty where there are none."""
        names = [f"the counts of {name}" if name == _CHECKED else name for name in self.withheld]
        return f"{', '.join(names)}: {WHOLLY_WITHHELD}" if names else ""

    def through(self, name: str, table: pa.Table) -> pa.Table:
        """What may leave of a published table: nothing of one that is withheld, and nothing about withheld prices."""
        if name in self.gone:
            return table.schema.empty_table()
        if name == _CHECKED and name in self.withheld:
            nothing = pa.nulls(table.num_rows, pa.int64())
            for column in ("elements", "unexpected"):
                table = table.set_column(table.schema.get_field_index(column), table.schema.field(column), nothing)
            return table
        if _PRICING in self.withheld and name in _WITH_PRICES:
            return table.filter(pc.invert(pc.is_in(table["measure"], value_set=pa.array(sorted(PRICES)))))
        return table


OPEN: Final = Door()


def door_of(lake: Lake, name: str) -> Door:
    """What of a run stays in the house, by all that was released until now.

    A run that was released is shown as it was: only releases before its own count. Where nothing is withheld in all of
    them, since their rows are public, nothing follows.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: a manifest or a table is not the one that was written.
    """
    released = log.released(lake)
    published = {path.split("/")[1] for path in lake.storage.glob("runs/*/protected/mark.json")} | {*released}
    present = [run for run in sorted(published - {name}) if run in released or lake.storage.exists(f"runs/{run}")]
    if not present:
        return OPEN
    gone = [run for run in present if not lake.storage.exists(f"runs/{run}/manifest.json")]
    run = run_of(lake, name)
    origins = [_origin(lake.location, other) for other in present if other not in gone]
    alike = [other for other in origins if other.profile != "internal" and _shares(lake, run, other)]
    apart = []
    if name not in released:
        apart = [o.run for o in alike if o.run in released and o.run not in run.beside and name not in o.beside]
        # its rows are not known any more: those of the same audit and year are taken for the same
        apart += [other for other in gone if other in released and other.startswith(f"{run.audit}-{run.year}-")]
    public = run.disclosure.get("profile") == PUBLIC
    if public and all(other.profile == PUBLIC for other in alike):
        apart = [other for other in apart if other in gone]
    number = released.get(name)
    if public or not any(number is None or released.get(other.run, number) <= number for other in alike):
        return Door(tuple(apart))
    rows = {artifact.table: artifact.rows for partition in run.partitions for artifact in partition.tables}
    return Door(tuple(apart), tuple(table for table in UNMATCHED if rows.get(table)))


class _Origin(NamedTuple):
    """Where the rows of a published run come from: it never changes."""

    run: str
    source_sha256: str
    audit: str
    year: int
    partition: Mapping[str, str] | None
    beside: tuple[str, ...]
    profile: str


@lru_cache(maxsize=4096)
def _origin(location: str, name: str) -> _Origin:
    """Kept in memory: a page needs all published runs, and manifests are large."""
    run = run_of(open_lake(location), name)
    whose = (run.source_sha256, run.audit, run.year, run.partition, run.beside)
    return _Origin(name, *whose, str(run.disclosure.get("profile")))


# --------------------------------------------------------------------------------------------------------------------
# Published runs that share rows with a run: by source, by audit and year, or by the content of their rows.


_ALIKE: Final = 0.5
"""Share of the rows of the smaller run, among those whose content is unique, that makes two runs of the same rows."""
_UNIQUE: Final = 5
"""Rows of unique content that are compared at least; of fewer all rows are compared, and nearly all have to agree."""
_NEARLY_ALL: Final = 0.9


def sharing(lake: Lake, run: Run) -> list[Run]:
    """Other published runs that share rows with a run.

    Raises:
        IntegrityError: a manifest or a table is not the one that was written, or a released run is not in the lake.
    """
    gone = [name for name in log.released(lake) if not lake.storage.exists(f"runs/{name}/manifest.json")]
    if gone:
        raise IntegrityError(
            f"{gone[0]} was released and is not in the lake any more, and what follows from it is unknown; "
            "restore its files from a copy"
        )
    return [other for other in published_runs(lake) if other.run != run.run and _shares(lake, run, other)]


def _shares(lake: Lake, run: Run, other: "Run | _Origin") -> bool:
    if run.source_sha256 == other.source_sha256 or (run.audit, run.year) == (other.audit, other.year):
        return shares_rows(run.partition, other.partition)
    return _alike(lake.location, *sorted((run.run, other.run)))


@lru_cache(maxsize=4096)
def _alike(location: str, first: str, second: str) -> bool:
    """Whether most rows of the smaller of two runs are in the other one, by groups, decision and shared features.

    It is asked for every page, and the rows of a run never change.
    """
    import pandas as pd  # loads long, and most lakes never come here

    lake = open_lake(location)
    frames = [_rows(lake, run_of(lake, name)) for name in (first, second)]
    columns = sorted(set(frames[0]) & set(frames[1]))
    if len(columns) < 2 or not all(map(len, frames)):
        return False
    counts_of_rows = [frame[columns].astype(str).agg("\x1f".join, axis=1).value_counts() for frame in frames]
    single = [set(counts.index[counts == 1]) for counts in counts_of_rows]
    fewest = min(map(len, single))
    if fewest >= _UNIQUE:
        return len(single[0] & single[1]) >= _ALIKE * fewest
    alike = counts_of_rows[0].index.intersection(counts_of_rows[1].index)
    common = int(pd.concat([counts[alike] for counts in counts_of_rows], axis=1).min(axis=1).sum())
    return common >= _NEARLY_ALL * min(int(counts.sum()) for counts in counts_of_rows)


def _rows(lake: Lake, run: Run) -> "pd.DataFrame":
    """Group by attribute, decision and features of every application of a run."""
    import pandas as pd

    tables = {artifact.table: artifact for partition in run.partitions for artifact in partition.tables}
    if APPLICATIONS.name not in tables or MEMBERSHIPS.name not in tables:
        return pd.DataFrame()
    rows = lake.read(tables[APPLICATIONS.name])
    rows = rows.drop_columns([name for name in ("source_row", "exempt") if name in rows.column_names])
    frame = rows.to_pandas().set_index("row_id")
    memberships = lake.read(tables[MEMBERSHIPS.name]).to_pandas()
    groups = memberships.pivot(index="row_id", columns="protected_attribute", values="group").add_prefix("group ")
    joined = pd.concat([frame, groups.reindex(frame.index)], axis=1)
    return joined.loc[:, ~joined.columns.duplicated()]


# --------------------------------------------------------------------------------------------------------------------
# The certificate of a released folder, and the folder itself.


CERTIFICATE: Final = "certificate.json"
README: Final = "README.md"
_LARGEST: Final = 4_000_000
"""Bytes of a certificate that are read."""


class Certificate(BaseModel):
    """The content of a released folder, with digests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: Literal["evenhand-release-v1"] = "evenhand-release-v1"
    run: str
    audit: str
    year: int
    partition: str = ""
    """Value of the partition that it is about; empty of an audit without partitions."""
    profile: str
    """Of disclosure control."""
    time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    evenhand: str
    """Version that released it."""
    code: str
    spec_sha256: str
    files: dict[str, str]
    """Path below the folder -> sha256, of every file but this one."""
    signature: Signature | None = None

    def content(self) -> dict[str, Any]:
        """What is signed: all but the signature."""
        return self.model_dump(mode="json", exclude={"signature"})


def certified(manifest: Mapping[str, Any], files: Mapping[str, bytes], time: str, signer: Signer | None) -> Certificate:
    """The certificate of a run's files.

    Args:
        manifest: of the run.
        files: path below the folder -> content.
        time: of the release, in UTC.
        signer: who signs it, if anybody.
    """
    certificate = Certificate(
        run=manifest["run"],
        audit=manifest["dataset"],
        year=manifest["year"],
        partition=(manifest.get("partition") or {}).get("value", ""),
        profile=manifest["spec"]["disclosure"]["profile"],
        time=time,
        evenhand=version("evenhand"),
        code=manifest["code"],
        spec_sha256=manifest["spec_sha256"],
        files={name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    )
    if signer is None:
        return certificate
    return certificate.model_copy(update={"signature": signer.sign("release", certificate.content())})


def readme(run: Run) -> bytes:
    """The text for a receiver: what the folder is and how to check it."""
    return f"""# {run.audit} {run.year}: released audit

Run `{run.run}`, disclosure profile `{run.disclosure.get("profile")}`. Start with `report.html`.

| file | holds |
| --- | --- |
| `report.html` and the folders beside it | the report as pages |
| `report.json` | the same as data |
| `measures.xlsx`, `measures.parquet` | the measures as published |
| `{CERTIFICATE}` | run id, digests of these files, of code and of spec, and the signature |

Check the folder with `evenhand verify FOLDER --key KEY.pub`. Get the public key by another channel: a key that comes
with the files proves nothing. Without evenhand: `sha256sum` of each file against `{CERTIFICATE}`.

Counts of few people are withheld, also against every earlier release of the same rows. No row of a person is in here.
""".encode()


def write_folder(draft: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder that is not there yet, and wait until they are on disk.

    Raises:
        OSError: one cannot be written.
    """
    draft.mkdir(parents=True)
    for name, content in files.items():
        path = draft / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_flushed(path, content)
    for folder in (*(path for path in draft.rglob("*") if path.is_dir()), draft):
        flush(folder)


# --------------------------------------------------------------------------------------------------------------------
# Checks a released folder alone: every file of the certificate, no other, and the signature.


class CheckedFolder(NamedTuple):
    """A released folder without faults."""

    run: str
    files: int
    signed_by: str
    """Fingerprint of the key; empty without a signature."""
    words: str
    """About the signature."""


def is_folder(name: str) -> bool:
    """Whether an argument names a folder rather than a run: a path, or a directory with a certificate in it."""
    return os.path.isdir(name) and (os.sep in name or os.path.lexists(os.path.join(name, CERTIFICATE)))  # noqa: PTH112, PTH118 long names


def check_folder(folder: Path, demand: Demand) -> CheckedFolder:
    """Check a released folder.

    Raises:
        SpecError: a file of a key holds none.
        IntegrityError: it is none, a file is missing, altered or not named, or the signature does not hold.
    """
    certificate = _certificate(folder)
    present = {path: mode for path, mode in _entries(folder) if path != CERTIFICATE}
    problems = []
    for name, digest in sorted(certificate.files.items()):
        mode = present.get(name)
        if mode is None:
            problems.append(f"{folder / name} is missing")
        elif stat.S_ISREG(mode) and _digest(folder / name) != digest:
            problems.append(f"{folder / name} is not the file that was released")
    folders = {parent for name in certificate.files for parent in map(str, Path(name).parents)}
    for name, mode in sorted(present.items()):
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            problems.append(f"{folder / name} is a link, a pipe or a device, and no file")
        elif name not in certificate.files and name not in folders:
            problems.append(f"{folder / name} is not named by {CERTIFICATE}: it was not released")
    keys, signature = trusted(demand.key), certificate.signature
    if signature is not None and not holds(signature, "release", certificate.content()):
        problems.append(f"the signature of {CERTIFICATE} is not one of its content by the key {signature.key}")
    elif signature is None and (keys or demand.signed):
        problems.append(f"{CERTIFICATE} is not signed, and a signature is asked for")
    elif signature is not None and keys and signature.key not in keys:
        problems.append(f"{CERTIFICATE} is signed by {signature.key}, which is none of the trusted keys")
    if problems:
        raise IntegrityError("\n".join([f"{folder} is not as it was released; {len(problems)} problems:", *problems]))
    if signature is None:
        words = "it is NOT SIGNED, so that this shows damage, not forgery"
    elif keys:
        words = f"signed by {signature.key} on {certificate.time[:10]}"
    else:
        words = f"signed by {signature.key} (key not in your trusted keys): give --key, or EVENHAND_TRUSTED_KEYS"
    return CheckedFolder(certificate.run, len(certificate.files) + 1, signature.key if signature else "", words)


def _certificate(folder: Path) -> Certificate:
    path = folder / CERTIFICATE
    try:
        content = _bytes(path, _LARGEST)
        certificate = Certificate.model_validate_json(content)
    except FileNotFoundError as error:
        raise IntegrityError(
            f"{path} is missing: {folder} is no released folder, or it lost its certificate"
        ) from error
    except (OSError, ValidationError, RecursionError) as error:
        raise IntegrityError(f"{path} cannot be read as the certificate of a released folder") from error
    if wrong := [
        name
        for name in certificate.files
        if name == CERTIFICATE or "\\" in name or not name.isprintable() or {"", ".", ".."} & {*name.split("/")}
    ]:
        raise IntegrityError(f"{path} names {wrong[0]!r}, which is no file below the folder")
    if content != written(certificate):
        raise IntegrityError(f"{path} says the same in other bytes than were written")
    return certificate


def written(certificate: Certificate) -> bytes:
    """The bytes of a certificate."""
    return json.dumps(certificate.model_dump(mode="json"), indent=1, ensure_ascii=False).encode()


def _entries(folder: Path, below: str = "") -> Iterator[tuple[str, int]]:
    """Path and mode of everything below a folder; no link is followed.

    Raises:
        IntegrityError: a folder cannot be read.
    """
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            yield f"{below}{entry.name}", mode
            if stat.S_ISDIR(mode):
                yield from _entries(folder, f"{below}{entry.name}/")
    except OSError as error:
        raise IntegrityError(f"{folder / below} cannot be read ({error.strerror})") from error


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(_bytes(path)).hexdigest()
    except OSError:
        return ""


def _bytes(path: Path, most: int = -1) -> bytes:
    """The content of a regular file; a link, a pipe or a device is an OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a file")
        return file.read(most)


def require_new(folder: Path, lake: Lake) -> None:
    """Refuse a place for a released folder that is taken, or lies in the lake.

    Raises:
        SpecError: it is.
    """
    local = lake.storage.local.resolve()
    if local in (folder.resolve(), *folder.resolve().parents):
        raise SpecError(f"{folder} is in the lake; name a directory outside of it")
    if os.path.lexists(folder):
        raise SpecError(f"{folder} exists already; name a folder that is not there yet")
