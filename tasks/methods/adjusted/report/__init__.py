"""The chapter of adjusted disparities."""
