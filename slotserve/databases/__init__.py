"""Whole databases: copied from one to another and compared, backed up, restored."""
