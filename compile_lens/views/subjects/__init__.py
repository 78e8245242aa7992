"""Makers of Documents from records, one file for each subject."""
