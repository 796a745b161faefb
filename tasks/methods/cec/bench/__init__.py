"""Times CEC: ``bench`` declares runs and targets, ``work`` has the timed work."""
