"""The command ``evenhand``: options, tables in the terminal, exit codes; a file for each group of commands.

What a command does is in the folders below it (``launch``, ``operations``, ``runs``).
"""
