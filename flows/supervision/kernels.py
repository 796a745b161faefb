"""Set-up step: compiles the kernels of numba by small audits, so that a user's first audit compiles none.

Numba keeps compiled code in the folder NUMBA_CACHE_DIR, else beside the code, else in the user's own cache. It compiles
again for other argument types, so the stages themselves call the kernels here, on rows of the Boston data.
"""

import logging
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tasks.pipeline.specs import read_spec
from tasks.plan import plan
from tasks.proof.plain import call_plainly

RECORD = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).with_name("__pycache__")) / "kernels.txt"
"""The index files of compiled kernels, a line each; it goes when they go."""
log = logging.getLogger("evenhand")

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
    }""",
    f"{{fgce: null, raguel: {{steps: false, {_FEW}}}}}",
)
"""What an audit has by default, then what it has by settings that call other kernels."""
_ENDS = ("measure", "report")
"""Stages without kernels."""


def compile_kernels() -> None:
    """Compile the kernels of all methods and record where they are; what is compiled already is left as it is.

    An audit compiles what it lacks, so that a failure here is told, and is none of the set-up.
    """
    log.info("compiling numerical kernels: one to two minutes, once")
    free = _SPEC.replace(", constraint: up", "").replace(", constraint: down", "")  # a kernel for what nothing bounds
    specs = [f"{spec}methods: {asked}" for spec, asked in [*((_SPEC, each) for each in _METHODS), (free, _METHODS[-1])]]
    try:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            folders = set[str]().union(*pool.map(_audit, specs))
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text("".join(f"{file}\n" for folder in sorted(folders) for file in Path(folder).glob("*.nbi")))
    except Exception as error:  # a folder that cannot be written, too little memory: the first audit takes longer
        log.warning("kernels could not be kept (%s); the first audit takes a minute more", error)


def compiled_kernels() -> tuple[int, int]:
    """Index files of compiled kernels that are there, of how many that the set-up recorded."""
    recorded = [Path(line) for line in RECORD.read_text().splitlines()] if RECORD.is_file() else []
    return sum(file.is_file() for file in recorded), len(recorded)


def _audit(spec: str) -> set[str]:
    """Call the stages of a small audit as functions; the folders of the kernels that were loaded."""
    call_plainly([step for step in plan(read_spec(spec, "kernels", {}).spec).steps if step.name not in _ENDS])
    from numba.core.registry import CPUDispatcher  # the stages load it

    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("tasks.")]
    kernels = [each for module in loaded for each in vars(module).values() if isinstance(each, CPUDispatcher)]
    return {str(kernel.stats.cache_path) for kernel in kernels}
