"""The command line: ``compile-lens demo | show | run | compare | what-if | check | diff | upgrade | support | open |
import | merge | mcp | skill | doctor``.

Results go to stdout, progress and errors to stderr. With ``--json`` stdout holds exactly one JSON document,
``{"error": {...}}`` included. Exit codes:

=====  ====================================================================================
0      it worked
1      the function raised or the compiler rejected it; everything observed before that is still shown and written
2      bad usage or input: an unknown option, a name, an expression or a file that cannot be used
3      something needed is not installed, or ``doctor`` found that the main job cannot run
4      ``check``: an expectation failed; ``--fail-on``: a named figure got worse, or differs
=====  ====================================================================================
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from .output import DIFFERS as DIFFERS
from .output import EXIT_CODES as EXIT_CODES
from .output import FAILED as FAILED
from .output import INTERRUPTED as INTERRUPTED
from .output import NOT_INSTALLED as NOT_INSTALLED
from .output import OK as OK
from .output import USAGE as USAGE
from .output import fail, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. ``argv`` defaults to ``sys.argv[1:]``."""
    words = list(sys.argv[1:] if argv is None else argv)
    from .arguments import parser as make_parser
    from .arguments import program_start

    parser = make_parser()
    start = program_start(words)
    words, program_words = words[:start], words[start:]
    args = argparse.Namespace(json="--json" in words, traceback="--traceback" in words, left=program_words)
    try:
        if not words:
            say(parser.format_help())
            return OK
        parser.parse_args(words, namespace=args)
        command: Callable[[argparse.Namespace], int] = args.run
        answer = command(args)
    except BrokenPipeError:
        # The reader of stdout is gone (`| head`): report nothing, and leave nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("compile-lens: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return fail(args, error)
    # Run the program outside the try: its errors and exits must propagate.
    program: Callable[[], None] | None = getattr(args, "program", None)
    if program is not None:
        program()
    return answer
