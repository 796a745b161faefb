"""Checkers of deployment files, and what these files have containers do, to hold against what was run."""

import subprocess
import sys
from pathlib import Path

from deployed import SERVICES, image_words

Words = tuple[str, ...]
PROGRAMS = Path(sys.executable).parent


def lint(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a checker of this environment."""
    return subprocess.run([PROGRAMS / words[0], *words[1:]], capture_output=True, text=True, timeout=60)


def words_of_containers() -> set[Words]:
    """Every command and health check; an image's own where a service names none."""
    ours = {name: service for name, service in SERVICES.items() if service["image"].startswith("evenhand:")}
    commands = {tuple(service.get("command") or image_words("CMD")) for service in ours.values()}
    checks = {
        tuple(service["healthcheck"]["test"])
        for service in SERVICES.values()
        if "test" in service.get("healthcheck", {})
    }
    return commands | checks | {tuple(image_words("CMD")), tuple(image_words("HEALTHCHECK"))}
