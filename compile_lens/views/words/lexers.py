"""Lexers for highlighting: those of Pygments, with shortcuts for common parts of generated code.

Pygments tries its rules one by one at each word: about 24 for a name. A shortcut reads a run of plain text in one step
(names that are not special in the language, and the signs between them). Pygments reads everything else, and everything
that may not be plain text.
"""

from __future__ import annotations

import builtins
import keyword
from typing import Any, ClassVar

from pygments.lexer import inherit, words
from pygments.lexers.c_cpp import CFamilyLexer, CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Number, Punctuation, String, Text, Whitespace

_PYTHON = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", "lazy"}
_CPP = {"true", "false", "NULL", "nullptr", "case", "enum", "namespace", "typename", "concept", "class"}
_CPP |= {"struct", "union", "char8_t", "char16_t", "char32_t"}


def _listed(lexer: Any) -> set[str]:
    """Return all words in the word lists of a lexer."""
    rules = (rule for of in lexer.__mro__ for state in getattr(of, "tokens", {}).values() for rule in state)
    lists = (rule[0] for rule in rules if isinstance(rule, tuple) and isinstance(rule[0], words))
    return {word for names in lists for word in names.words}


def _plain(meant: set[str], signs: str) -> str:
    """Return a pattern for runs of names and signs in the colour of plain text, also over several lines.

    It continues on a line only if that begins with such a name, since other rules match the starts of lines. A name
    before a quote is a string prefix. Names with two leading underscores are special in both languages.
    """
    known = "|".join(sorted(word for word in meant if word.isidentifier()))
    name = rf"(?!(?:__\w*|{known})\b)[A-Za-z_][A-Za-z0-9_]*\b(?![\"'$\\])"
    return rf"(?:{name}|{signs})(?:{name}|{signs}|[ \t]+(?=[^\s#\"'])|\n[ \t]*(?={name}))*"


_SPACE = (r"(?<=[^\n])[ \t]+", Whitespace)
"""Space that is not at the start of a line."""


class Python(PythonLexer):  # type: ignore[misc]  # Pygments has no types
    """Python, with runs of plain text as one token."""

    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (_plain(_PYTHON | _listed(PythonLexer), r"[]{}:(),;[=+*/<>-]|\.(?!\d)"), Text),
            _SPACE,
            (r'"(?!"")[^"\\{\n]*"', String),
            (r"\d+(?![\w.])", Number),
            inherit,
        ],
    }


_TYPES = {
    name
    for of in ("stdlib_types", "c99_types", "linux_types", "c11_atomic_types")
    for name in getattr(CFamilyLexer, of, ())
}
_BODY = [
    (_plain(_CPP | _TYPES | _listed(CppLexer), r"[]~!%^&*+=|?:<>(),]|-(?![\d.])|\.(?!\d)|\[(?!\[)"), Text),
    _SPACE,
    (r"\n[ \t]*(?=[{}]|[A-Za-z_]\w*\b(?!\s*:))", Whitespace),
    (r"\d+[uU]?[lL]?(?![\w.'])", Number),
]


class Cpp(CppLexer):  # type: ignore[misc]
    """C++, with runs of plain text as one token."""

    tokens: ClassVar[dict[str, list[Any]]] = {
        "statement": [*_BODY, (r"\}", Punctuation), (r"[{;]", Punctuation, "#pop"), inherit],
        "function": [
            *_BODY,
            (";", Punctuation),
            (r"\{", Punctuation, "#push"),
            (r"\}", Punctuation, "#pop"),
            inherit,
        ],
    }
