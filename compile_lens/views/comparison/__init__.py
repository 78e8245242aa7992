"""A comparison of targets as text, HTML, Markdown and JSON."""
