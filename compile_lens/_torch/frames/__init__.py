"""Dynamo's frames: which capture a compile belongs to, where a graph ends, and which lines run eagerly."""
