"""Observers of Inductor from lowering to codegen: loops, fusion, and the origin of each generated line."""
