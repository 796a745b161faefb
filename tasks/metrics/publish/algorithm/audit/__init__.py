"""What a reader can tell of a withheld count from all that is published: counts as sums of cells, and their bounds.

Here belong the constraints and the programmes over them. What is withheld for it: the folder above.
"""
