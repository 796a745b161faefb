"""Definitions, glossary and declarations of tables: the same for every run of one version."""

from dataclasses import replace
from functools import cache

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.lake import tables
from flows.serving.rendering import Page
from flows.serving.site import Site
from tasks.reporting.section import Section


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()
    router.include_router(tables.routes(site))

    @router.get("/method")
    def method() -> Response:
        return site.pages.page(("method",), _definitions)

    @router.get("/glossary")
    def glossary() -> Response:
        return site.pages.page(("glossary",), _glossary)

    return router


def _definitions() -> Page:
    return Page("Definitions", Section("Definitions", "definitions", parts=_parts()), here="/method")


def _glossary() -> Page:
    [section] = [replace(part, parts=()) for part in _parts() if part.anchor == "glossary"]
    return Page("Glossary", replace(section, title="Glossary"), here="/glossary")


@cache
def _parts() -> tuple[Section, ...]:
    from tasks.reporting.chapters.method import definitions  # loads what reports are made with

    return definitions()
