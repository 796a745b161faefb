"""Identity of the code that computes: what decides a process's results, as one digest."""

import hashlib
from functools import cache
from pathlib import Path

from tasks.pipeline.lineage.digests import versions
from tasks.pipeline.lineage.sources import FIRST_PARTY


@cache
def identity() -> str:
    """What decides a process's results, as one digest: first-party code by its bytes, and versions of libraries."""
    root = Path(__file__).parents[3]
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for path in sorted(path for name in FIRST_PARTY for path in (root / name).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()
