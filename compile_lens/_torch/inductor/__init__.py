"""Inductor from lowering to codegen: loops, fusion, and the node of each generated line."""
