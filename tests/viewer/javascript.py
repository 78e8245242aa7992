"""JavaScript as far as the rules of the viewer's scripts need it: code, texts and comments told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CODE, TEXT, COMMENT = "code", "text", "comment"

_STARTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUOTED = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_PATTERN = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_WORD = re.compile(r"[\w$]+")
_BEFORE_PATTERN = frozenset("(,=:[!&|?{};+-*%<>~^")
_WORDS_BEFORE_PATTERN = frozenset(("return", "typeof", "case", "in", "of", "delete", "void", "else", "do"))


@dataclass(frozen=True)
class Piece:
    """A run of one kind. ``depth`` counts the braces, brackets and parentheses that are open before it."""

    kind: str
    text: str
    start: int
    depth: int


def pieces(source: str) -> Iterator[Piece]:
    """The script from its start to its end. A template's ``${…}`` is code, the rest of it is text.

    Raises ``ValueError`` where a text or a comment has no end.
    """
    at, depth, last = 0, 0, ""
    templates: list[int] = []
    while at < len(source):
        char = source[at]
        found: re.Match[str] | None = None
        if source.startswith(("//", "/*"), at):
            kind, found = COMMENT, _STARTS.match(source, at)
        elif char in "'\"":
            kind, found = TEXT, _QUOTED.match(source, at)
        elif char == "/" and (not last or last[-1] in _BEFORE_PATTERN or last in _WORDS_BEFORE_PATTERN):
            kind, found = TEXT, _PATTERN.match(source, at)
        elif char == "`" or (char == "}" and templates and templates[-1] == depth):
            if char == "}":
                templates.pop()
                depth -= 1
            end, opened = _template(source, at + 1)
            yield Piece(TEXT, source[at:end], at, depth)
            if opened:
                depth += 1
                templates.append(depth)
            at, last = end, "`" if not opened else "{"
            continue
        else:
            word = _WORD.match(source, at)
            token = word[0] if word else char
            depth -= token in ("}", ")", "]")
            yield Piece(CODE, token, at, depth)
            depth += token in ("{", "(", "[")
            at += len(token)
            last = token if not token.isspace() else last
            continue
        if found is None:
            raise ValueError(f"no end of a {kind} at: {source[at : at + 40]!r}")
        yield Piece(kind, found[0], at, depth)
        at = found.end()
        last = last if kind == COMMENT else found[0]


def _template(source: str, at: int) -> tuple[int, bool]:
    """Where the text of a template ends, and whether code follows (``${``)."""
    while at < len(source):
        if source[at] == "\\":
            at += 2
        elif source[at] == "`":
            return at + 1, False
        elif source.startswith("${", at):
            return at + 2, True
        else:
            at += 1
    raise ValueError("no end of a template")


def words(source: str) -> str:
    """The code alone: no comments, every text empty."""
    return "".join({CODE: piece.text, TEXT: '""', COMMENT: " "}[piece.kind] for piece in pieces(source))


def comments_beside_code(source: str) -> Iterator[tuple[int, str]]:
    """Comments that share a line with something else, and the number of that line."""
    for piece in pieces(source):
        end = piece.start + len(piece.text)
        before = source[source.rfind("\n", 0, piece.start) + 1 : piece.start]
        after = source[end:].partition("\n")[0]
        if piece.kind == COMMENT and (before.strip() or after.strip()):
            yield source.count("\n", 0, piece.start) + 1, piece.text


def statements(source: str) -> Iterator[tuple[int, str]]:
    """Statements and declarations of the top level, with the line they start on; texts are emptied."""
    parts: list[str] = []
    line = 0
    for piece in pieces(source):
        if piece.kind == COMMENT or not (parts or piece.text.strip()):
            continue
        if not parts:
            line = source.count("\n", 0, piece.start) + 1
        parts.append(piece.text if piece.kind == CODE else '""')
        if piece.kind == CODE and not piece.depth:
            if piece.text == ";" or (piece.text == "}" and _block(parts)):
                yield line, "".join(parts).strip()
                parts = []
    if parts:
        yield line, "".join(parts).strip()


def _block(parts: list[str]) -> bool:
    """Whether a brace ends the statement: that of a function, a class or a block, not of an object."""
    return not re.match(r"(?:export\s+)?(?:const|let|var|import)\b", "".join(parts).lstrip())
