"""Exit codes, and what they mean."""

from __future__ import annotations

OK, FAILED, USAGE, NOT_INSTALLED, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES = """exit codes:
  0  it worked
  1  the function raised or the compiler rejected it; what was seen before is still shown and written
  2  bad usage or input: an unknown option, a name, an expression or a file that cannot be used
  3  something needed is not installed, or `doctor` found that the main job cannot run
  4  `check`: something is not as expected; `--fail-on`: what it names got worse, or differs
130  interrupted (Ctrl-C); `what-if` first says and writes what it has
"""
