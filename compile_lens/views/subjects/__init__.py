"""A record in, a Document out: one file for each subject."""
