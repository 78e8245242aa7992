"""The story in English. Sentences state only what the record has, with the ledger's words for figures."""

from __future__ import annotations

from compile_lens.measures.fusion_answer import DECISIONS_NOT_SEEN, LIBRARY_CALL_BETWEEN, NOT_PROPOSED
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS
from compile_lens.record.figures import AtLeast, Figure

from ..words.quantities import amount
from .model import Language

SENTENCES: dict[str, str | tuple[str, str]] = {
    # How it ended.
    "title": "The story of {function}",
    "whole": "The whole call was compiled, into {graphs}.",
    "partly": "Not all of the call was compiled. What was became {graphs}.",
    "program": "Of a program, {graphs} reached this backend. What ran eagerly was not seen: {reason}.",
    "as_far": "{graphs} reached the compiler. Whether anything runs eagerly was not seen: {reason}.",
    "nothing": "Nothing was compiled: {reason}.",
    "unsaid": "The record has no compilation, and does not say why.",
    "failed": "It ended in an error, in stage {stage_key}: {type}: {message}.",
    "failed_at": "The program was at {place} then.",
    "advised": "The compiler advises: {hint}.",
    "avoided": "To avoid it: {hint}.",
    "before_it": "What follows was seen before the error.",
    "breaks": (
        "There is {n}: a place that Dynamo could not trace.",
        "There are {n}: places that Dynamo could not trace.",
    ),
    "breaks_seen": (
        "There is at least {n}: a place that Dynamo could not trace.",
        "There are at least {n}: places that Dynamo could not trace.",
    ),
    "breaks_at": (
        "There are {n} at {places} that Dynamo could not trace.",
        "There are {n} at {places} that Dynamo could not trace.",
    ),
    "breaks_seen_at": (
        "There are at least {n} at {places} that Dynamo could not trace.",
        "There are at least {n} at {places} that Dynamo could not trace.",
    ),
    "recompiles": ("There was {n}.", "There were {n}."),
    "target": "The code is for {device}.",
    "modelled_device": "The code is for {device}. That device was absent: a device model stood for it.",
    # What Python did.
    "left": "Dynamo skipped {function}, which runs eagerly ({place}): {reason}.",
    "left_often": "Dynamo skipped {function}, which runs eagerly ({place}), {n}: {reason}.",
    "rest": "The rest of {function} runs eagerly ({place}): {reason}.",
    "limit": "{function} reached its recompile limit ({place}): calls that fit none of its variants ran eagerly.",
    "never": "{function} never ran, compiled or not ({place}): {reason}.",
    "skip": "Something was not compiled, by the record's word “{kind}”: {function} ({place}): {reason}.",
    # Dynamo.
    "read": "Dynamo read the bytecode of {function} ({place}) and recorded {n}.",
    "read_nowhere": "Dynamo read the bytecode of {function} and recorded {n}.",
    "lines": "They come from {n}: {places}.",
    "line": "It comes from {n}: {places}.",
    "lineless": "Of {n} no Python line is known.",
    "functions": "Beside them stand the forward and the backward of each call of an autograd.Function, with {n} more.",
    "checkpoints": "Beside them stands what each checkpoint runs, with {n} more.",
    "bodies": "Beside them stand the bodies of higher-order operators (branches, loops and the like), with {n} more.",
    "again": "It is a recompile.",
    "guard_failed": "This guard of an older variant failed: {guard}.",
    "recompile_remedy": "What keeps it from failing: {clause}.",
    "dynamic": "One dimension is a symbol: {source}, written {symbol}.",
    "dynamic_seen": "One dimension is a symbol: {source}, written {symbol}, which was {n} here.",
    "number": "One number is a symbol: {source}, written {symbol}.",
    "asked": "The guards require of it: {conditions}.",
    "asked_nothing": "No guard requires anything of it.",
    "asked_unknown": "What the guards require of it was not recorded.",
    "guards": (
        "This code is used again only while {n} holds: the guards.",
        "This code is used again only while {n} hold: the guards.",
    ),
    "break": "At {place} the graph breaks, and Python takes over: {reason}.",
    "break_nowhere": "The graph breaks, and Python takes over: {reason}.",
    "ended": "It ended with “{kind}”: {reason}.",
    "empty": "No stage of it was recorded.",
    # Passes.
    "merged": (
        "On the way to stage {stage_key}, {n} that computed what another does already became one with it: {names}.",
        "On the way to stage {stage_key}, {n} that computed what others do already became one with them: {names}.",
    ),
    "rewritten": "On the way to stage {stage_key} the passes of Inductor made {n}.",
    "patterns": "{n} matched: {names}.",
    "miss": "One pattern came close: {miss}.",
    # AOTAutograd.
    "joint": "AOTAutograd traced the forward and its backward as one graph, in smaller operators: {n}.",
    "derivatives": "Autograd made {n} of them, for derivatives.",
    "cut": "The graph was cut in two: {forward} for the forward, {backward} for the backward.",
    "one_graph": "There is one graph, of {n}.",
    "saved": "The forward saves {n} for the backward: {names}.",
    "saved_none": "The forward saves nothing for the backward.",
    "keeps_free": "What it saves lies in inputs and results, and takes no memory of its own.",
    "keeps": "What it saves takes {bytes} besides inputs and results.",
    "default": "AOTAutograd's default partitioner would save {n}: {names}.",
    "recomputed": "Both halves compute {names}: the backward works {n} out again.",
    # Inductor.
    "handed": "Inductor was handed {n}.",
    "eager": "Without a compiler, PyTorch would dispatch {n} here.",
    "idle": "There is nothing in it to compute.",
    "lowered": "Lowering made {n} of it.",
    "externs": (
        "{n} of them is a library call, which the ledger counts as a loop.",
        "{n} of them are library calls, which the ledger counts as loops.",
    ),
    "extern": "It is a library call, which the ledger counts as a loop.",
    "steered": (
        "{n} of them steers which bodies run, which the ledger counts as a loop.",
        "{n} of them steer which bodies run, which the ledger counts as loops.",
    ),
    "inlined": (
        "{n} was inlined, computed where its value is read, with no buffer: {names}.",
        "{n} were inlined, computed where their values are read, with no buffer: {names}.",
    ),
    "buffered": "{n} got a buffer ({names}): {clause}.",
    "parted": "{node} is computed in {n}, a part of it or the result in each: {names}.",
    "one_loop": "One loop alone cannot be fused with anything: it is the only group.",
    "unfused": "Fusion joined none of them: {n} remain.",
    "fused": "Fusion joined {loops} into {n}.",
    "groups": ("After fusion there is {n}.", "After fusion there are {n}."),
    "apart": "{first} and {second} were not fused. {clause}",
    "apart_more": "Nor were {n} more.",
    "to_try": "To try for {names}: {clause}",
    "kernels": "The generated code has {n} in {language}: {names}.",
    "calls": (
        "There is {n}, whose code Inductor did not generate: {names}.",
        "There are {n}, whose code Inductor did not generate: {names}.",
    ),
    "together": "{name} is computed in parts, by {kernels}.",
    "computed_again": "{name} is computed more than once: by {kernels}.",
    "launches": "Launches in one call: {n}.",
    "counts": "{groups}, {kernels}, {launches}: {clause}.",
    "peak": "At most {bytes} are live at once.",
    "reused": ("{n} takes over the memory of another.", "{n} take over the memory of another."),
    "traffic": "Each ATen operator by itself would move {before}; what is left after fusion moves {after}.",
    "traffic_eager": "The operators of eager PyTorch would move {before}; what is left after fusion moves {after}.",
    "moved_before": "Each ATen operator by itself would move {bytes}.",
    "moved_after": "What is left after fusion moves {bytes}.",
    "moved_eager": "The operators of eager PyTorch would move {bytes}.",
    "unknown": "Not known: {note}.",
    "missing": "Stage {names} was not seen: {reason}.",
    "missing_many": "Stages {names} were not seen: {reason}.",
    "none": "There is no stage {names}: {reason}.",
    "none_many": "There are no stages {names}: {reason}.",
    # In all.
    "total": "{n} of eager PyTorch stand against {launches}, each graph called once.",
    "some": "Of {known} of {graphs} what follows is known.",
    "total_bytes_eager": "Bytes of the operators of eager PyTorch: {before}; after fusion: {after}.",
    "total_bytes": "Bytes of the ATen operators, each by itself: {before}; after fusion: {after}.",
    "modelled": "Bytes are modelled from sizes, not measured.",
    "generated only": "The code was only generated: nothing of it was built or run.",
    "built": "The code was built, and not run.",
    "ran": "The code was built and run.",
    "note": "A note of the capture: {note}.",
}


NOUNS = {
    "graph": ("graph", "graphs"),
    "break": ("graph break", "graph breaks"),
    "broken": ("graph break", "graph breaks"),
    "place": ("place", "places"),
    "recompile": ("recompile", "recompiles"),
    "call": ("call", "calls"),
    "line": ("line", "lines"),
    "condition": ("condition", "conditions"),
    "change": ("change", "changes"),
    "pattern": ("pattern", "patterns"),
    "value": ("value", "values"),
    "operator": ("operator", "operators"),
    "aten": ("ATen operator that computes", "ATen operators that compute"),
    "loop": ("loop", "loops"),
    "group": ("group", "groups"),
    "pair": ("pair of groups", "pairs of groups"),
    "kernel": ("kernel", "kernels"),
    "library": ("library call", "library calls"),
    "launch": ("launch", "launches"),
    "buffer": ("buffer", "buffers"),
    "time": ("time", "times"),
    "counts.again": ("kernel is launched more than once", "kernels are launched more than once"),
    "counts.gathered": (
        "kernel computes several groups in one launch",
        "kernels compute several groups in one launch",
    ),
    "counts.parted": ("group is in several kernels", "groups are in several kernels"),
    "counts.beside": ("kernel is of no group", "kernels are of no group"),
    "counts.unseen": ("group is in no known kernel", "groups are in no known kernel"),
}

WORDS = {
    "recompile.mark": "marking the dimension before the first call, by torch._dynamo.mark_dynamic(tensor, dim)",
    "recompile.small": "giving no size of 0 or 1, for which torch makes a variant of its own",
    "recompile.number": "torch.compile(dynamic=True), whose first variant takes other values too",
    "recompile.kind": "giving one kind of tensor at each call",
    "after": "{}, after line {}",
    "dynamo": "Dynamo",
    "autograd": "AOTAutograd",
    "forward": "Forward",
    "backward": "Backward",
    "inference": "Inference",
    "total": "In all",
    "cpp": "C++",
    "triton": "Triton",
    "metal": "Metal",
    "realised.output": "results of the graph have to be in memory",
    "realised.reduction": "what reduces, scans or sorts is not computed again for each reader",
    "realised.extern": "a library call, a template or a Triton kernel of the program reads or writes it in memory",
    "realised.many readers": "read more than once, and too large to be computed again for each reader",
    "realised.heavy": "read more than once, with an operation that Inductor does not compute again",
    "realised.many operations": "the expression has too many operations to be inlined any further",
    "realised.many reads": "the expression reads too many buffers to be inlined any further",
    "realised.concat": "the pieces of a concatenation are written straight to their places",
    "realised.mutation": "memory is overwritten",
    "realised.hint": "the lowering of an operator requires it",
    "realised.layout": "certain strides are required",
    "realised.other": "for a reason that this version does not know",
    **{f"apart.{key}": reason.sentence for key, reason in REASONS.items()},
    **{f"try.{key}": reason.remedy for key, reason in REASONS.items() if reason.remedy},
    "try.custom": CUSTOM_REMEDY,
    "apart.wall": LIBRARY_CALL_BETWEEN,
    "apart.never proposed": NOT_PROPOSED,
    "apart.not seen": DECISIONS_NOT_SEEN,
}
"""Clauses by key: headings, kernel languages, reasons for buffers, reasons why two groups were not fused."""


def _counted(value: int | Figure | AtLeast, one: str, many: str) -> str:
    if isinstance(value, AtLeast):
        return f"{value} {many}".rstrip()
    return f"{int(value):,} {one if value == 1 else many}".rstrip()


def _more(some: str, left: int) -> str:
    return f"{some} and {left:,} more"


ENGLISH = Language("en", SENTENCES, NOUNS, WORDS, _counted, amount, _more)
