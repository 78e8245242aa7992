"""A watched program in text, in Markdown and on a page: one outline, which every view shows."""
