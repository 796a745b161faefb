"""Names of searches: what is lifted, where it is not the constraint of one feature."""

NOTHING, EPSILON = "nothing", "epsilon"
EVERY, EVERY_AND_EPSILON = "every constraint", "every constraint and epsilon"
NAMES = (NOTHING, EPSILON, EVERY, EVERY_AND_EPSILON)
