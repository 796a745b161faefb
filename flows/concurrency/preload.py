"""Loads what stages need, once, in the process that workers are forked from.

The fork server imports this module by its name and nothing calls it. No thread may be started here: a fork does not
take threads along.
"""

import atexit
import gc

gc.disable()  # libraries that load leave nothing to collect: a sixth of the time

from tasks import plan  # noqa: E402, F401 the stages
from tasks.pipeline.validation import prepare_engine  # noqa: E402

prepare_engine()
gc.enable()
gc.freeze()  # workers collect what they make, and not what is loaded: a fifth of the time of the stage measure
atexit.register(gc.unfreeze)  # what is frozen at the end counts as leaked, and bindings print forty lines about it
