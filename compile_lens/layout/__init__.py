"""Graph → positioned boxes and edges, with Graphviz' ``dot`` in a child process.

Coordinates are in pixels, x to the right and y down, from the top left corner of the drawing. ``Layout.notes``
describe in words what a drawing leaves out (collapsed nodes, cut edges).
"""

from .nest import Nest, nest_all
from .placement import Box, Edge, Layout, OverBudget, Stub, place, place_all
from .plan import Line

__all__ = ["Box", "Edge", "Layout", "Line", "Nest", "OverBudget", "Stub", "nest_all", "place", "place_all"]
