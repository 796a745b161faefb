"""Declares and compares benchmarks and reproductions: experiments, published figures, lines, processes, plain calls.

Scope: what methods share. Those of one method: ``bench`` and ``reproduction`` in its folder.
"""
