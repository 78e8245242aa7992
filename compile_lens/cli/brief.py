"""The command ``brief``: facts, evidence and follow-up commands in few tokens."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from .names import call_words, captured_or_opened, is_record
from .output import FAILED, OK, document, say

if TYPE_CHECKING:
    from ..views.brief import Question


def brief(args: argparse.Namespace) -> int:
    """Print the brief of a record, or of a function after capturing it."""
    from ..views.brief import check_budget
    from ..views.summaries.capture_summary import summary
    from ..views.summaries.short_text import brief as brief_of

    check_budget(args.max_tokens)
    capture, failure, _ = captured_or_opened(args)
    answer = brief_of(summary(capture), _commands(args))
    if capture.failure is None:
        answer = replace(answer, ask_next=_questions(args, bool(capture.kernels)))
    if args.json:
        say(document({"command": args.command, "brief": answer.to_dict(args.max_tokens)}))
    else:
        say(answer.text(args.max_tokens))
    return OK if failure is None else FAILED


def _commands(args: argparse.Namespace) -> dict[str, str]:
    """Return the commands that replace the Python calls for omitted details."""
    from ..views.summaries.capture_summary import COST_CALL, MEMORY_CALL

    words = shlex.join(call_words(args))
    return {
        COST_CALL: f"compile-lens cost {words} --json",
        MEMORY_CALL: f"compile-lens memory {words} --by=name --json",
    }


def _questions(args: argparse.Namespace, has_kernels: bool) -> tuple[Question, ...]:
    """Return the commands for follow-up questions. They read a record, which saves each of them a capture."""
    from ..views.brief import Question

    words = shlex.join(call_words(args))
    record = words if is_record(args) else "record.json"
    questions = [("Everything", f"open {record} --full")]
    if has_kernels:
        questions = [
            ("Which kernels and library calls?", f"cost {record} --by=kernel"),
            ("Where is the memory?", f"memory {record}"),
            *questions,
        ]
    if not is_record(args):
        questions.insert(
            0,
            (
                "Keep the record, which cost, memory and open read",
                f"show {words} --quiet --out={record}",
            ),
        )
        questions += [] if args.target else [("Are the values right?", f"divergence {words}")]
    return tuple(Question(text, f"compile-lens {command}") for text, command in questions)
