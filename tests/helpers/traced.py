"""Runs the programs of ``watched`` under one watch and saves its record; ``TORCH_TRACE`` logs the same run."""

from __future__ import annotations

import sys
import warnings

import watched

import compile_lens

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    with compile_lens.watch() as program:
        for name in watched.PROGRAMS:
            watched.run(name)
    program.save(sys.argv[1])
