"""Views of a record: text, SVG, DOT, HTML. Pure functions of plain data; nothing here imports torch."""
