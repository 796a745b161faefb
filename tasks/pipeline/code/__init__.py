"""The digest of first-party code, which is part of every key: what a module does, wherever it lies.

``shape`` reads one file, ``sources`` joins files by their imports, ``kept`` keeps shapes from one process to the next.
"""
