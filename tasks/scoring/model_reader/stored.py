"""The models that the stage ``score`` left: those fitted here are read, a stranger's is asked in its own process."""

import pyarrow as pa

from schemas.audit.model import Model
from schemas.errors import IntegrityError, SpecError
from tasks.scoring.model_reader.confined import opened
from tasks.scoring.models import ModelFile, Readable, read


def stored(models: pa.Table, model: Model) -> dict[int, Readable]:
    """The models of an audit, by fold.

    Raises:
        IntegrityError: One is not what the stage would have left.
    """
    make = read if model.file is None else opened
    try:
        return {row["fold"]: make(ModelFile.of(model, row["content"])) for row in models.sort_by("fold").to_pylist()}
    except SpecError as error:
        raise IntegrityError(
            f"a stored model cannot be read again, so that it is not what was stored: {error}"
        ) from error
