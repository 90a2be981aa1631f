"""REST under /api/v1/: the same services and rules as the pages."""
