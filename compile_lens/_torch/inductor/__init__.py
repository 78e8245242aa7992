"""Inductor from lowering to the code it writes: loops, fusion, and the node that each line was written for."""
