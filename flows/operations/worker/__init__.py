"""The worker of a lake: Prefect's worker as a child process, and beside it a watch on runs whose process dies.

Commands of operators: ``flows.cli.operations``. What is done with a dead run: ``flows.supervision.zombies``.
"""
