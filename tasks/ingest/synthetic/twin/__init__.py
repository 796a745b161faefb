"""The synthetic twin of HMDA as files: rows in published layouts, and the true counterfactuals beside them.

``codes`` says groups and loans in the codes of HMDA, ``modern`` and ``historic`` are the two families of layouts,
``canonical`` is what a loader has to make of either, ``truth`` the counterfactuals, and ``writing`` the files.

Scope: how drawn rows are written down. What is drawn: ``tasks.ingest.synthetic.twin.algorithm``.
"""

from tasks.ingest.synthetic.twin.writing import Written, write

__all__ = ["Written", "write"]
