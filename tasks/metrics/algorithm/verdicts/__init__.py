"""States of an audit: from measures with honest intervals to one state for each theory of harm.

``evidence`` says what is known of a measure, ``holm`` counts comparisons, ``judgement`` gives a row its state,
``theory`` a theory and the audit theirs, ``agreement`` sets methods beside each other, and ``thresholds`` finds what
the limits of a spec are about. docs/verdicts.md says it in words. Methods declare which measure a theory is judged by.
"""
