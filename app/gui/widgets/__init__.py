"""Small painted or composed controls without knowledge of records."""
