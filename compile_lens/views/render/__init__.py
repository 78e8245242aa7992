"""Renderers of Documents to text or bytes, one for each format."""
