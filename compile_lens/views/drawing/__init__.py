"""Graphs, rooflines and timelines as SVG and DOT."""
