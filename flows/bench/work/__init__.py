"""Timed work of benchmarks, each run in a process of its own.

Scope: the work. Runs, rows and targets: the module of the same name beside this folder.
"""
