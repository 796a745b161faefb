"""Set-up step: compiles the kernels of numba by small audits, so that a user's first audit compiles none.

Numba keeps compiled code in the folder NUMBA_CACHE_DIR, else next to the code, else in the user's cache. It compiles
again for other argument types, so the stages themselves call the kernels here, on rows of the Boston data.
"""

import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tasks.in_memory import call_plainly
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

RECORD = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).with_name("__pycache__")) / "kernels.txt"
"""The compiled kernels, a line each: index file and file of the code; it goes when they go."""
log = logging.getLogger("evenhand")


class Kernel(NamedTuple):
    """Where a compiled kernel is kept."""

    index_file: str
    """The file of numba that lists its compiled forms."""
    source_file: str
    """The file of its code."""

    def is_compiled(self) -> bool:
        """Whether it was compiled after the last change of its code: numba compiles older kernels again."""
        try:
            return Path(self.index_file).stat().st_mtime >= Path(self.source_file).stat().st_mtime
        except OSError:
            return False


_SPEC = """
name: kernels
year: 1990
source: {kind: boston1990, keep: {appinc: {maximum: 60}}}
decision: {column: approve, favourable: [1], unfavourable: [0]}
protected: [{name: race, columns: [race], groups: {white: [white], Black: [black]}, reference: white}]
columns:
  appinc: {type: continuous, role: [financial, mediator], constraint: up, recourse: {weight: 0.9, step: 1}}
  obrat: {type: continuous, role: [financial, mediator], constraint: down, recourse: {weight: 0.5, step: 1}}
  dep: {type: continuous, role: covariate, recourse: {weight: 1, step: 1}}
  chist: {type: binary, role: mediator, order: [0, 1], constraint: up, recourse: {weight: 0.7}}
causal_graph: {edges: [[race, appinc], [race, obrat], [race, chist]]}
model: {folds: 2}
bootstrap: {draws: 100}
"""
_FEW = "blocks: 4, block_counts: [2], tolerances: [0.5], probes: 5, asked: 5"
_METHODS = (
    f"{{fgce: null, raguel: {{reach: any, {_FEW}}}}}",  # takes as long as all others together
    """{
      fgce: {size_matched_draws: 2, ablation_draws: 1, k: 2}, cec: {theta_steps: 4},
      cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 20},
      gcfn: {networks: 2, epochs: 1, batch: 20, hidden: 4},
    }""",
    """{
      fgce: {cost: path, max_edges: 1, ablations: false, size_matched_draws: 0, resolves: 0, k: 2},
      cec: {training: {folds: 2, epochs: 1, hidden: [8, 4], ablation: false, mitigations: []}},
      raguel: {source: mace, blocks: 4, block_counts: [2], tolerances: [0.5], probes: 5, asked: 5},
    }""",
    f"{{fgce: null, raguel: {{steps: false, {_FEW}}}}}",
)
"""What an audit has by default, then what it has by settings that call other kernels."""
_ENDS = ("measure", "report")
"""Stages without kernels."""


def compile_kernels() -> None:
    """Compile the kernels of all methods and record where they are; what is compiled already is left as it is.

    An audit compiles missing kernels, so that a failure here is only logged, and the set-up goes on.
    """
    log.info("compiling numerical kernels: one to two minutes, once")
    began = time.time()
    free = _SPEC.replace(", constraint: up", "").replace(", constraint: down", "")  # a kernel for what nothing bounds
    specs = [
        f"{spec}methods: {methods}"
        for spec, methods in [*((_SPEC, methods) for methods in _METHODS), (free, _METHODS[-1])]
    ]
    try:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.touch()  # what cannot be kept need not be compiled
        workers = min(len(specs), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            kernels = sorted(set[Kernel]().union(*pool.map(_audit, specs)))
        RECORD.write_text("".join(f"{kernel.index_file}\t{kernel.source_file}\n" for kernel in kernels))
    except Exception as error:  # a folder that cannot be written, too little memory: the first audit takes longer
        log.warning("kernels could not be kept (%s); the first audit takes a minute more", error)
        return
    new = sum(Path(kernel.index_file).stat().st_mtime >= began for kernel in kernels)
    log.info("%d kernels are compiled, %d of them now, in %.0f s", len(kernels), new, time.time() - began)


def compiled_kernels() -> tuple[int, int]:
    """Kernels that are compiled as their code is now, of how many that the set-up recorded."""
    lines = RECORD.read_text().splitlines() if RECORD.is_file() else []
    recorded = [Kernel(*line.split("\t")) for line in lines if line.count("\t") == 1]  # a version before had no code
    return sum(kernel.is_compiled() for kernel in recorded), len(recorded)


def _audit(spec: str) -> set[Kernel]:
    """Call the stages of a small audit as functions; the kernels that they called."""
    call_plainly([step for step in plan(read_spec(spec, "kernels", {}).spec).steps if step.name not in _ENDS])
    from numba.core.registry import CPUDispatcher  # the stages load it

    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("tasks.")]
    kernels = [
        dispatcher for module in loaded for dispatcher in vars(module).values() if isinstance(dispatcher, CPUDispatcher)
    ]
    return {kernel for called_kernel in kernels for kernel in _kept(called_kernel)}


def _kept(kernel: Any) -> Iterator[Kernel]:
    """Where numba keeps a kernel that was called, by the name of its function and the line that it begins in."""
    code = kernel.py_func.__code__
    name = f"{Path(code.co_filename).stem}.{kernel.py_func.__qualname__}-{code.co_firstlineno}.*.nbi"
    yield from (Kernel(str(file), code.co_filename) for file in Path(str(kernel.stats.cache_path)).glob(name))
