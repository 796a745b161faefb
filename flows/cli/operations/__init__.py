"""Commands of operators: worker, retention, replay, schedules."""
