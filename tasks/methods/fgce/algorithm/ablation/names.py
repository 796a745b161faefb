"""Names of the ablations that lift no constraint of a single feature."""

NOTHING, EPSILON = "nothing", "epsilon"
EVERY, EVERY_AND_EPSILON = "every constraint", "every constraint and epsilon"
NAMES = (NOTHING, EPSILON, EVERY, EVERY_AND_EPSILON)
