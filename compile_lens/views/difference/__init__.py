"""The difference of two captures as text, Markdown, HTML and JSON: the cause first, then what follows."""
