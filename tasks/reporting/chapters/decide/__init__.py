"""The first page of a report, by rule: what the verdicts of a run say, how sure that is, and what to do next.

Input: published rows and facts of the run (``facts``, found by ``reading``). Output: strings and numbers (``result``)
that templates, JSON and the terminal print. Sentences are data, in sentences.yaml.
"""
