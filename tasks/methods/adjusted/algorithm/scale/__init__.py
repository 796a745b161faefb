"""The regressions of the ladder over batches of rows, for tables that do not fit into memory.

Scope: passes over batches, in memory of one batch and p x p. Reading batches from files: outside of ``algorithm``.
"""
