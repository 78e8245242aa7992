"""Observers of Dynamo: the capture that a compile belongs to, ends of graphs, and lines that run eagerly."""
