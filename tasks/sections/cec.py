"""The chapter of CEC."""
