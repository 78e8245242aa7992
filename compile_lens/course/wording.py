"""Texts of the course in English or Chinese, and their display in a notebook."""

from __future__ import annotations

import html
from typing import Any

from ..errors import UsageError
from ..views import language as pages
from ..views.words.sentences import CHINESE
from .exercise import Exercise, Question

ENGLISH: dict[str, str] = {
    "right": "{key}: right. The capture of your function meets every requirement.",
    "wrong": "{key}: not yet.",
    "empty": "There is nothing to check yet: give the function that you wrote.",
    "stub": "There is nothing to check yet: the function is still empty. Write what {key} above asks for.",
    "type": "This is of type {name}. Give the function itself: check captures it again.",
    "failed": "It could not be captured: {why}",
    "device": "x is on an {device} here, and the function creates a tensor on the CPU: create it with "
    "`device=x.device`.",
    "inputs": "it does not take as many inputs as the exercise has ({count}).",
    "not callable": "it returns a {name}, which cannot be called",
    "nothing": "None of it was compiled: {why}.",
    "no operator": "Dynamo found no operator in any of the calls",
    "unused": "It uses none of its inputs.",
    "no work": "it contains no PyTorch operator",
    "unsaid": "the capture has no reason",
    "other": "It does not compute what was required: {how}.",
    "above": "for numbers above 0 {slip}",
    "below": "for numbers below 0 {slip}",
    "mixed": "for numbers above and below 0 {slip}",
    "no tensor": "it returns a {name}, not a tensor",
    "shape": "its result has the shape {got}, not {want}",
    "nan": "its result contains nan, which is not a number",
    "values": "its result has other values (they differ by up to {most})",
    "gradient": "its gradient has other values (they differ by up to {most})",
    "unmet": "Its capture has {has}; required: {relation} {value:,}.",
    "at least": "at least",
    "at most": "at most",
    "exactly": "exactly",
    "cut": "… (what the function prints is cut off here)",
    "not known": "{noun}: not known",
    "no loop": "no loop in a C++ kernel, so no step",
    "no capture": "{key}: give reveal a capture, as compile_lens.capture returns it, not {name}",
    "no answer": "{key}: this capture has no answer: {why}",
    "capture failed": "it failed before it got that far",
    "no backward": "it has no backward; call the function with an input that requires a gradient (requires_grad=True)",
    "no graph": "none of it was compiled",
    "no C++": "it has no kernel in C++; capture it for a CPU",
    "other target": "the question is about {device}; capture with target={target!r}",
    "predicted": "{question}\nYour guess: {said}. It is kept; run the next cells to see.",
    "no guess yet": "{question}\nNo guess yet: put a number in place of each None ({names}), and run this cell again.",
    "no guess": "  {name}: no guess; the capture has {truth}",
    "as said": "  {name}: you guessed {value:,}, and the capture has {truth}",
    "other than said": "  {name}: you guessed {value:,}, but the capture has {truth}",
    "no question": "there is no question {key!r}; {there}",
    "no exercise": "there is no exercise {key!r}; {there}",
    "of lesson": "lesson {lesson} has {keys}",
    "of all": "there are {count}, from {first!r} to {last!r}",
    "answer first": "{key}: answer first: predict({key!r}, {names})",
    "asks for one": "{key} needs one whole number: {names}; this is {answer!r}",
    "asks for": "{key} needs {count} whole numbers: {names}; this is {answer!r}",
    "negative": "{key} needs a count, which is never below 0; this is {answer!r}",
    "broken": "{path} cannot be read ({error}); delete it to start again",
    "no progress": "{path} is not a progress file of the course; delete it to start again",
    "hint": "{key}, hint {number} ({left}): {hint}",
    "more": "{more} more",
    "last": "the last one",
    "try first": "{key}: try it first, with check({key!r}, your_function). A wrong attempt is an attempt.",
    "solution": "{key}, one of several solutions:\n\n{code}",
    "done": "{done} of {all} exercises are right, kept in {file}",
    "not answered": "{key} not answered",
    "answered": "{key} answered {said}",
    "lesson": "  lesson {lesson}: {parts}",
    "tried": "{key} {outcome} (tries {tries}, hints {hints})",
    "untried": "{key} not tried",
    "; ": "; ",
    ", ": ", ",
    "is right": "right",
    "not yet": "not yet",
    "not begun": "  not begun: lessons {lessons}",
    "recorded": "Recorded on {device} with torch {torch}, CUDA {cuda}, by {script} on {date}; not measured here.",
    "recorded with driver": "Recorded on {device} with torch {torch}, CUDA {cuda}, driver {driver}, by {script} "
    "on {date}; not measured here.",
    "clock": "Python's clock, {rounds} runs: {parts} (median [quartiles]).",
    "events": "The device's clock, {rounds} runs: {parts} (median [quartiles]).",
    "under the profiler": "One run under the profiler: Python submits work {asks}, waits {waited} ms; the device works "
    "{working} ms, busy {busy} %.",
    "once": "once",
    "times": "{count} times",
    "at once": "Its streams overlapped for {overlap} ms. Copies are drawn lower.",
    "one at a time": "Copies are drawn lower.",
    "lane part": "Python is in",
    "lane ask": "Python submits",
    "lane wait": "Python waits",
    "lane stream": "stream {stream} works",
    "waits": "waits",
    "copy": "copy",
    "no scene": "there is no scene {name!r}; {meant}there are {there}",
    "meant": "did you mean {close!r}? ",
    "no readings": "{name!r} has no readings of {part!r}; there are {there}",
    "no part": "{name!r} has no part {part!r}; there are {there}",
    "no notebook": "The file is not a notebook: {error}.",
    "not Python": "Cell {cell} is not Python: {error}.",
    "no check": "No cell gives a function to course.check({key!r}, ...).",
    "raised": "The code raises {error}.",
    "altered": "The code replaces {name}, which computes the marks: read the notebook.",
    "too long": "There was no answer within {seconds:g} seconds.",
    "without notebook": "There is no notebook.",
    "several notebooks": "Several notebooks could be lesson {lesson}: keep one.",
    "too large": "The notebook is larger than {bytes:,} bytes.",
    "bytes not known": "Not all bytes that it moves are known: one of its operators cannot be inspected.",
    "notes": "Also",
    "leaderboard": "The model of the capstone: the table of the class",
    "in the table": "{ranked} of {all} handed in a function that has a place",
    "places": "places",
    "pseudonym": "student {number}",
    "column place": "place",
    "column name": "name",
    "column launches": "launches",
    "column bytes": "bytes moved",
    "column time": "time of a call",
    "not timed": "it could not be built on this machine",
    "who is in the table": "A function has a place if its results match those of the eager model, and all of "
    "it is one graph.",
    "how places are given": "Fewer launches come first, then fewer bytes. Functions equal in both share a place. "
    "Times do not count: they depend on the machine, and differ from run to run.",
    "certificate": "A course on torch.compile",
    "certificate of": "A course on torch.compile: {name}",
    "certified": "{done} of {all} lessons are done",
    "lessons done": "lessons done",
    "lessons begun": "lessons begun",
    "column lesson": "lesson",
    "column right": "right",
    "column exercises": "exercises",
    "column tries": "tries",
    "column hints": "hints",
    "what a certificate says": "According to the holder's own progress file, each exercise of a finished lesson was "
    "right once: the capture of a function met every requirement.",
    "what a certificate does not say": "This page does not show who wrote the functions. Nobody watched, "
    "a solution opens after one attempt, and the holder can edit the file.",
    "title 0": "Devices: what ran where",
    "title 1": "One line, four stages",
    "title 2": "Capture: breaks and guards",
    "title 3": "Recompiles and dynamic shapes",
    "title 4": "The joint graph, the cut, and the backward",
    "title 5": "Decompositions and lowering",
    "title 6": "Inlining and fusion",
    "title 7": "C++ and SIMD",
    "title 8": "Triton and Metal, without the device",
    "title 9": "Why it did not fuse",
    "title 10": "What a compiler cannot rewrite",
    "title 11": "Honest timing",
    "title 12": "Capstone: scale and science",
    "title 13": "Make it faster",
    "title 14": "It got slower, or different",
    "title 15": "Your own backend",
    "title 16": "Your own Triton kernel",
    "beside what": "beside() needs another scene: its name, such as 'two streams', or a result of recorded()",
}
"""Texts of the course other than the lessons'."""

SCENES: dict[str, str] = {
    "clock alone": "A product, then its sum: the clock alone",
    "after waiting": "A product, then its sum: waiting before each reading of the clock",
    "three events": "A product, then its sum: three events in the device's own queue",
    "item in every turn": "Six iterations of large matrices, with .item() in each",
    "item at the end": "Six iterations of large matrices, a number at the end",
    "item in every small turn": "Six iterations of small matrices, with .item() in each",
    "item at the end of small turns": "Six iterations of small matrices, a number at the end",
    "one stream": "Four batches, copied (load) and used in two products (use), in one stream",
    "two streams": "Four batches, copied and used in two products, the copies in a second stream",
    "eager": "sin² + cos² of 16,777,216 numbers, eager PyTorch",
    "compiled": "sin² + cos² of 16,777,216 numbers, compiled",
    "launched one by one": "Sixteen small products and sines, launched one by one",
    "one CUDA graph": "Sixteen small products and sines, launched as one CUDA Graph",
}
"""Headings of the scenes recorded on a device."""


def language(name: str) -> None:
    """Set the language of the course and of pages: ``"en"``, or ``"zh"`` for Chinese.

    Raise ``UsageError`` for another one.
    """
    if name not in pages.TAGS:
        raise UsageError(f"language({name!r}): there is {' and '.join(map(repr, pages.TAGS))}")
    pages.use(name)


def chinese() -> bool:
    """Return True if the course answers in Chinese."""
    return pages.chosen() == CHINESE


def message(what: str, **facts: Any) -> str:
    """Return a message with its facts, in the language of the course."""
    if chinese():
        from .chinese import MESSAGES

        return MESSAGES[what].format(**facts)
    return ENGLISH[what].format(**facts)


def question_text(question: Question) -> str:
    """Return the text of a question."""
    if chinese():
        from .chinese import QUESTIONS

        return QUESTIONS[question.key]
    return question.text


def part(name: str) -> str:
    """Return the name of a number of an answer."""
    if chinese():
        from .chinese import PARTS

        return PARTS[name]
    return name


def slips(exercise: Exercise) -> tuple[str, ...]:
    """Return the sentences on the mistakes of an exercise, in order."""
    if chinese():
        from .chinese_lessons import EXERCISES

        return EXERCISES[exercise.key][0]
    return tuple(slip.says for slip in exercise.slips)


def hints(exercise: Exercise) -> tuple[str, ...]:
    """Return the hints of an exercise, in order."""
    if chinese():
        from .chinese_lessons import EXERCISES

        return EXERCISES[exercise.key][1]
    return exercise.hints


def scene(name: str) -> str:
    """Return the heading of a recorded scene."""
    if chinese():
        from .chinese import SCENES as CHINESE

        return CHINESE[name]
    return SCENES[name]


def of_scene(part: str) -> str:
    """Return the name of a part of a recorded scene, such as ``"turn 3"``."""
    if not chinese():
        return part
    from .chinese import SCENE_PARTS

    word, _, number = part.partition(" ")
    return SCENE_PARTS[word].format(number=number)


class Shown:
    """Base of results shown by their ``repr``; a notebook wraps long lines instead of truncating them."""

    def _repr_html_(self) -> str:
        look = "white-space:pre-wrap;overflow-wrap:break-word"
        return f'<pre style="{look}">{html.escape(repr(self))}</pre>'
