"""Files of a run's report as the run made them: a list with digests, each file, and a zip of all."""

import hashlib
import io
import mimetypes
import zipfile
from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from flows.runs.manifest import report_named
from flows.serving.guard.headers import policy, styles_in
from flows.serving.pages.cells import table
from flows.serving.rendering import made, run_path
from flows.serving.site import Site, missing
from schemas.errors import IntegrityError
from tasks.reporting.section import Cell, Link, Section

_SHOWN = {"html": "text/html; charset=utf-8", "json": "application/json"}
"""Kinds of files that a browser shows; others it saves."""


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/files")
    def files(run: str) -> Response:
        manifest = site.manifest(run)
        return made(site.page(run, "Files", ("files",), section=_section(run, manifest["exported"])))

    @router.get("/runs/{run}/files.zip")
    def bundle(run: str) -> Response:
        names = _exported(site, run)
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made_of:
            for name in names:
                made_of.writestr(f"{run}/{name}", _content(site, run, name, names[name]))
        return Response(sink.getvalue(), media_type="application/zip", headers=_saved(f"{run}.zip"))

    @router.get("/runs/{run}/files/{name:path}")
    def file(run: str, name: str) -> Response:
        names = _exported(site, run)
        if name not in names:  # looked up, and never joined into a path
            missing("The manifest of this run names no such file.")
        return _answer(name, _content(site, run, name, names[name]))

    return router


def _exported(site: Site, run: str) -> Mapping[str, str]:
    """Name -> sha256 of the files that the manifest names."""
    names: Mapping[str, str] = site.manifest(run)["exported"]
    return names


def _content(site: Site, run: str, name: str, digest: str) -> bytes:
    """A file, once its digest agrees.

    Raises:
        IntegrityError: it is missing or altered.
    """
    lake = site.known().lake
    storage, folder = report_named(lake, run, site.manifest(run))
    content = storage.read(f"{folder}/{name}")
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise IntegrityError(f"{name} of {run} is not the file that was written; `evenhand verify {run}` says more")
    return content


def _answer(name: str, content: bytes) -> Response:
    kind = _SHOWN.get(name.rpartition(".")[2])
    if kind is None:
        guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(content, media_type=guessed, headers=_saved(name.rpartition("/")[2]))
    headers = {"content-security-policy": policy(styles_in(content))}
    return Response(content, media_type=kind, headers=headers)


def _saved(name: str) -> dict[str, str]:
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "_" for each in name)
    return {"content-disposition": f'attachment; filename="{plain}"'}


def _section(run: str, exported: Mapping[str, str]) -> Section:
    rows = [(Cell(name, address=run_path(run, "files", *name.split("/"))), Cell(sha)) for name, sha in exported.items()]
    words = "The files of the report as the run made them, each held against its digest before it is given."
    shown = table("Files of the report", ("File", "sha256"), rows)
    return Section(
        "Files", "files", (words,), links=(Link("All of them as a zip", f"{run_path(run)}/files.zip"),), tables=(shown,)
    )
