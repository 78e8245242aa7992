"""The command ``merge``."""

from __future__ import annotations

import argparse
import json

from ..trials.progress import progress
from .exit_codes import OK
from .output import check_endings, say


def merge(args: argparse.Namespace) -> int:
    """Print what differs between the programs of several ranks, and write it where asked."""
    from ..api.ranks import merge as merged
    from ..views.render.files import RANKS as FORMS

    check_endings(args.out, FORMS)
    with progress(f"comparing {len(args.records)} ranks", quiet=args.quiet):
        ranks = merged(*args.records)
    written = [str(ranks.save(path)) for path in args.out]
    if args.json:
        say(json.dumps({"command": args.command, **ranks.to_dict(), "written": written}, indent=2))
        return OK
    if not written:
        say(str(ranks))
    for path in written:
        say(f"wrote {path}")
    return OK
