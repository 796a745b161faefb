"""Loads what stages need, once, in the process that workers are forked from.

The fork server imports this module by its name and nothing calls it. No thread may be started here: a fork does not
take threads along.
"""

from tasks import plan  # noqa: F401 the stages
from tasks.pipeline.validation.boundary import prepare_engine

prepare_engine()
