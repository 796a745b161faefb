"""Opens the file system behind a URI: pyarrow's own (``s3://``, ``gs://``, ``abfs://``, ...), or else one of fsspec.

Credentials come from the environment, as the libraries document: for S3 AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_REGION, and AWS_ENDPOINT_URL for a server other than Amazon's.
"""

from functools import lru_cache
from urllib.parse import urlsplit

import pyarrow as pa
from fsspec.core import url_to_fs
from pyarrow import fs

from schemas.errors import InfrastructureError, SpecError


def filesystem_at(uri: str) -> tuple[fs.FileSystem, str]:
    """A file system, and the place on it.

    Raises:
        SpecError: the URI names no folder, holds a password, or is of a kind that no library here opens.
        InfrastructureError: it cannot be reached.
    """
    parts = urlsplit(uri)
    if parts.password is not None:
        raise SpecError("the URI of a lake is kept in records: give credentials in the environment, not in it")
    if not parts.path.strip("/"):
        folder = f"{uri.rstrip('/')}/lake"
        raise SpecError(f"{uri!r} names no folder: a lake has a folder of its own, such as {folder!r}")
    system, root = _connection(uri)
    return system, root.rstrip("/")


@lru_cache(maxsize=16)
def _connection(uri: str) -> tuple[fs.FileSystem, str]:
    """One connection serves all lakes of a process at that URI."""
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise SpecError(f"{uri!r} cannot be read as the URI of a lake: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"{uri} could not be reached: {error}") from error
    else:
        return found
    try:
        system, root = url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise SpecError(
            f"{uri!r}: no library here opens such a lake ({error}); use a path, file:// or s3://"
        ) from error
    except OSError as error:
        raise InfrastructureError(f"{uri} could not be reached: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(system)), root
