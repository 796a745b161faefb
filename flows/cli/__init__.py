"""The command ``evenhand``: options, tables in the terminal, exit codes; a file for each group of commands.

The work of a command is in the folders below: ``flows.launch``, ``flows.operations``, ``flows.runs``.
"""
