"""Texts and numbers of all views, independent of text, HTML and Markdown."""
