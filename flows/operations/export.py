"""Exports a run for researchers: what a release would give, as a RO-Crate or a Frictionless data package.

It is no second door: ``flows.operations.release`` makes the folder, enters it in the log and certifies every file, and
this module adds the published tables as CSV and one file that describes all. Both formats are plain JSON, so that no
library is needed to write them; tests read them with the libraries of the two communities.

Sources: RO-Crate 1.3 with the profile Process Run Crate 0.5; Data Package 2.0.
"""

import csv
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa

from flows.operations.dictionary import TABLES
from flows.operations.release import Released, release
from flows.runs.index import began_at, read_manifest
from flows.runs.released import CERTIFICATE, OPEN, README, Door, require_new
from flows.runs.report_files import read_anew
from schemas.artifact import Partition
from schemas.errors import InfrastructureError, SpecError
from schemas.table import Column, Table
from schemas.tables.verdicts import PREFIX
from tasks.lake.store import Lake, open_lake
from tasks.pipeline.registry import NAMES, citation
from tasks.reporting.text import guarded

Format = Literal["rocrate", "datapackage"]
Files = dict[str, bytes]

CRATE, PACKAGE = "ro-crate-metadata.json", "datapackage.json"
NULL: Final = r"\N"
"""A cell without a value; an empty cell is an empty text."""
_TYPES: Final = {
    "string": "string",
    "double": "number",
    "int64": "integer",
    "int32": "integer",
    "bool": "boolean",
    "doubles": "array",
    "strings": "array",
}
_MEDIA: Final = {
    ".html": "text/html",
    ".json": "application/json",
    ".csv": "text/csv",
    ".bib": "application/x-bibtex",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".parquet": "application/vnd.apache.parquet",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: it is the first that the format knows."""
_STANDARD: Final = "https://w3id.org/ro/crate/1.3"
_PROCESS_RUN: Final = "https://w3id.org/ro/wfrun/process/0.5"
_ABOUT: Final = {
    "report.html": "First page of the report",
    "report.json": "The report as data",
    "measures.parquet": "Measures as published",
    "measures.xlsx": "Measures as published, as a workbook",
    "audit.yaml": "The audit spec with all defaults; of paths only the name",
    "citation.bib": "Papers of the methods that the run used",
    README: "How to check this folder",
    CERTIFICATE: "Digests of the other files, of code and of spec, and the signature",
    CRATE: "RO-Crate metadata",
}


@dataclass(frozen=True)
class Terms:
    """What only the house that exports can say of its results."""

    licence: str = ""
    """URL of their licence; empty: the description says that none is stated."""
    publisher: str = ""
    """Organisation that ran the audit and publishes its results, or ``NAME <URL>``; empty: none is named."""

    def __post_init__(self) -> None:
        """Refuse a licence that is no address of the web."""
        licence = self.licence
        if licence and (
            urlsplit(licence).scheme not in ("http", "https") or not licence.isprintable() or " " in licence
        ):
            raise SpecError(f"--licence is {licence!r}; give the URL of a licence, which begins with https://")

    @property
    def organisation(self) -> tuple[str, str]:
        """Name and URL of the publisher, each empty where it is not given."""
        name, _, url = self.publisher.partition("<")
        return name.strip(), url.strip().removesuffix(">")


UNSTATED: Final = Terms()


def export(
    root: str, run: str, place: Path, form: Format, jobs: int | None = None, terms: Terms = UNSTATED
) -> Released:
    """Release a run as a folder or an archive that a data repository takes.

    Args:
        root: of the lake.
        run: its id.
        place: folder, or archive whose name ends with ``.zip``; it may not be there yet.
        form: ``rocrate`` or ``datapackage``.
        jobs: as of ``release``.
        terms: licence and publisher of the results.

    Raises:
        SpecError, IntegrityError, InfrastructureError: as of ``release``.
    """

    def pack(lake: Lake, released: str, files: Files, door: Door) -> Files:
        return packed(lake, released, files, form, terms, door)

    if place.suffix != ".zip":
        return release(root, run, place, jobs, pack)
    lake = open_lake(root)
    require_new(place, lake)
    draft = place.with_name(f".{place.stem}.{uuid4().hex}")
    folder = draft.with_name(f"{draft.name}.folder")
    try:
        released = release(root, run, folder, jobs, pack)
        try:
            with zipfile.ZipFile(draft, "x", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                    entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EARLIEST)
                    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(entry, path.read_bytes())
            require_new(place, lake)  # it may have come meanwhile
            draft.rename(place)
        except OSError as error:
            raise InfrastructureError(f"{place} cannot be written ({error.strerror}); name another place") from error
    finally:
        draft.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    return replace(released, folder=str(place))


def packed(lake: Lake, run: str, files: Files, form: Format, terms: Terms = UNSTATED, door: Door = OPEN) -> Files:
    """The files of a release with the published tables, the spec, citations and a description of all.

    Args:
        lake: that holds the run.
        run: its id.
        files: of the release: path -> content.
        form: of the description.
        terms: licence and publisher of the results.
        door: what stays in the house; a table that is withheld whole is left out.
    """
    manifest = read_manifest(lake, run)
    _, settings = read_anew(lake, run)
    tables = dict(_tables(lake, manifest, door))
    running = [name for name in NAMES if manifest["spec"]["methods"].get(name) is not None]
    packed_files: Files = {
        **files,
        **{_path(table): content for table, content in tables.values()},
        "audit.yaml": settings.effective_spec.encode(),
        "citation.bib": "\n".join(citation(name) for name in running).encode(),
    }
    packed_files[README] += (
        f"\n`tables/` has the published tables as CSV, described in `{PACKAGE if form == 'datapackage' else CRATE}`. "
        f"A cell `{NULL}` has no value: it was withheld or not measured. An apostrophe is before text like a formula.\n"
    ).encode()
    ordered = dict(sorted(packed_files.items()))
    if form == "datapackage":
        return {**ordered, PACKAGE: _written(data_package(manifest, tables.values(), terms))}
    described = {_path(table): table.description for table, _ in tables.values()} | _ABOUT
    return {**ordered, CRATE: _written(ro_crate(manifest, ordered, described, terms))}


def _written(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _path(table: Table) -> str:
    return f"tables/{table.name.removeprefix(PREFIX)}.csv"


def _tables(lake: Lake, manifest: Mapping[str, Any], door: Door) -> Iterator[tuple[str, tuple[Table, bytes]]]:
    """The tables of a run that are declared as published and may leave, each as CSV, with the columns that it has."""
    declared = {table.name: table for table in TABLES if table.name.startswith(PREFIX) and not table.restricted}
    for entry in manifest["partitions"]:
        for artifact in Partition.model_validate(entry).tables:
            table = declared.get(artifact.table)
            if table is not None and table.name not in door.gone:
                rows = door.through(table.name, lake.read(artifact))
                of_run = replace(table, columns=tuple(c for c in table.columns if c.name in rows.column_names))
                yield table.name, (of_run, csv_of(rows, of_run))


def csv_of(rows: pa.Table, table: Table) -> bytes:
    """The declared columns as CSV in UTF-8."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    columns = [column for column in table.columns if column.type in _TYPES]
    writer.writerow([column.name for column in columns])
    for row in rows.select([column.name for column in columns]).to_pylist():
        writer.writerow([_cell(row[column.name]) for column in columns])
    return sink.getvalue().encode()


def _cell(value: object) -> object:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return json.dumps(value)
    return guarded(value)


# --------------------------------------------------------------------------------------------------------------------
# Data Package 2.0.


def data_package(manifest: Mapping[str, Any], tables: Iterable[tuple[Table, bytes]], terms: Terms) -> dict[str, Any]:
    """The descriptor of a data package of ``tables``: declaration and content of each.

    Files that are no tables are no resources: the certificate has their digests. The standard has no type for them, and
    Frictionless takes a workbook for a table and ``report.json`` for a report of its own.
    """
    name, url = terms.organisation
    contributor = {"title": name, **({"path": url} if url else {}), "roles": ["publisher"]}
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": _slug(manifest["run"]),
        "id": f"urn:evenhand:run:{manifest['run']}",
        "title": _title(manifest),
        "description": "Published results of an audit by Evenhand. No row of a person is in here.",
        "version": version("evenhand"),
        "created": manifest["finished"],
        "keywords": ["audit", "fair lending"],
        **({"licenses": [{"path": terms.licence}]} if terms.licence else {}),
        **({"contributors": [contributor]} if terms.publisher else {}),
        "sources": [{"title": str(manifest["read"]["source"])}] if manifest.get("read") else [],
        "resources": [_resource(table, content) for table, content in tables],
    }


def _resource(table: Table, content: bytes) -> dict[str, Any]:
    path = _path(table)
    schema = {
        "fields": [_field(column) for column in table.columns if column.type in _TYPES],
        "missingValues": [NULL],
        **({"primaryKey": list(table.key)} if table.key else {}),
    }
    return {
        "name": _slug(path),
        "path": path,
        "description": table.description,
        "type": "table",
        "format": "csv",
        "mediatype": _media(path),
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": schema,
    }


def _field(column: Column) -> dict[str, Any]:
    constraints: dict[str, Any] = {} if column.nullable else {"required": True}
    constraints |= {} if column.minimum is None else {"minimum": column.minimum}
    constraints |= {} if column.maximum is None else {"maximum": column.maximum}
    kind = _TYPES[column.type]
    if kind == "integer":
        constraints = {name: value if name == "required" else int(value) for name, value in constraints.items()}
    constraints |= {"enum": [str(guarded(code)) for code in column.codes]} if column.codes else {}
    return {"name": column.name, "type": kind, "description": column.description, "constraints": constraints}


def _slug(text: str) -> str:
    """A name of lower-case letters, digits, points, hyphens and underscores."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-")


def _media(path: str) -> str:
    return _MEDIA.get(Path(path).suffix, "application/octet-stream")


def _title(manifest: Mapping[str, Any]) -> str:
    partition = (manifest.get("partition") or {}).get("value", "")
    return " ".join(filter(None, (f"Audit {manifest['dataset']}", str(manifest["year"]), partition)))


# --------------------------------------------------------------------------------------------------------------------
# RO-Crate 1.3 with the profile Process Run Crate.


def ro_crate(
    manifest: Mapping[str, Any], files: Mapping[str, bytes], described: Mapping[str, str], terms: Terms
) -> dict[str, Any]:
    """The metadata of a RO-Crate: ``files`` by path, ``described`` what each is."""
    parts = [
        {
            "@id": path,
            "@type": "File",
            "name": path,
            "description": described.get(path, "A page of the report, or what one shows"),
            "encodingFormat": _media(path),
            "contentSize": str(len(content)),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for path, content in files.items()
    ]
    certificate = {  # it has the digest of this description, which therefore cannot have its own
        "@id": CERTIFICATE,
        "@type": "File",
        "name": CERTIFICATE,
        "description": _ABOUT[CERTIFICATE],
        "encodingFormat": _media(CERTIFICATE),
    }
    software = f"urn:evenhand:{version('evenhand')}"
    source = str((manifest.get("read") or {}).get("source", "the source"))
    name, url = terms.organisation
    publisher = {"@id": url or "#publisher", "@type": "Organization", "name": name, **({"url": url} if url else {})}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": _title(manifest),
        "description": "Published results of an audit by Evenhand. No row of a person is in here.",
        "identifier": manifest["run"],
        "datePublished": manifest["finished"],
        "license": {"@id": terms.licence or "#licence"},
        **({name: {"@id": publisher["@id"]} for name in ("author", "publisher")} if terms.publisher else {}),
        "conformsTo": {"@id": _PROCESS_RUN},
        "hasPart": [{"@id": part["@id"]} for part in (*parts, certificate)],
        "mentions": {"@id": "#run"},
    }
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run {manifest['run']}",
        "description": "Audit of lending decisions by Evenhand, as audit.yaml says",
        "startTime": _with_offset(began_at(manifest)),
        "endTime": _with_offset(manifest["finished"]),
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "instrument": {"@id": software},
        **({"agent": {"@id": publisher["@id"]}} if terms.publisher else {}),
        "object": [{"@id": "#source"}, {"@id": "audit.yaml"}],
        "result": [{"@id": part["@id"]} for part in parts if str(part["@id"]).startswith(("report", "measures"))],
    }
    about = {"@type": "CreativeWork", "description": "Terms of the results"}
    licence = {"@id": terms.licence, "name": terms.licence, **about}
    if not terms.licence:
        licence = {"@id": "#licence", "name": "No licence of these results is stated", **about}
    graph = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": _STANDARD},
            "about": {"@id": "./"},
        },
        root,
        {"@id": _PROCESS_RUN, "@type": ["CreativeWork", "Profile"], "name": "Process Run Crate", "version": "0.5"},
        action,
        {
            "@id": software,
            "@type": "SoftwareApplication",
            "name": "Evenhand",
            "url": software,
            "version": version("evenhand"),
        },
        {"@id": "#source", "@type": "Dataset", "name": source, "description": "What was audited; it is not in here"},
        licence,
        *([publisher] if terms.publisher else []),
        *parts,
        certificate,
    ]
    return {"@context": f"{_STANDARD}/context", "@graph": graph}


def _with_offset(moment: str) -> str:
    """A time in UTC with its offset in digits, which is the form of the profile."""
    return moment.removesuffix("Z") + "+00:00" * moment.endswith("Z")
