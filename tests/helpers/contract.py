"""Checks plain JSON data against the interfaces of the viewer's ``types.d.ts``: every field, nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import compile_lens

TYPES = Path(compile_lens.__file__).parent / "views" / "live" / "web" / "types.d.ts"

_TOKEN = re.compile(r'\s*([A-Za-z_]\w*|\d+|"[^"]*"|[(){}<>\[\]:;,|=])')
Type = tuple[str, Any]


class _Parser:
    """Parser for the subset of TypeScript that the contract uses."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        self.tokens = _TOKEN.findall(text)
        assert _TOKEN.sub("", text).strip() == "", "the contract uses a form that this parser does not know"
        self.at = 0
        self.named: dict[str, Type] = {}
        while self.at < len(self.tokens):
            self._take("export")
            if self._next() == "type":
                name = self._next()
                self._take("=")
                self.named[name] = self._union()
                self._take(";")
            else:
                name = self._next()
                inherited: dict[str, Type] = {}
                if self._peek() == "extends":
                    self._next()
                    inherited = self.named[self._next()][1]  # its base is defined above it
                kind, fields = self._object()
                self.named[name] = kind, inherited | fields

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, token: str) -> None:
        actual = self._next()
        assert actual == token, f"{actual!r} where {token!r} was wanted"

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _object(self) -> Type:
        self._take("{")
        fields: dict[str, Type] = {}
        while self._peek() != "}":
            name = self._next()
            self._take(":")
            fields[name] = self._union()
            if self._peek() == ";":
                self._next()
        self._take("}")
        return "object", fields

    def _union(self) -> Type:
        choices = [self._array()]
        while self._peek() == "|":
            self._next()
            choices.append(self._array())
        return choices[0] if len(choices) == 1 else ("union", choices)

    def _array(self) -> Type:
        kind = self._simple()
        while self._peek() == "[":
            self._next()
            self._take("]")
            kind = ("array", kind)
        return kind

    def _simple(self) -> Type:
        if self._peek() == "(":
            self._next()
            kind = self._union()
            self._take(")")
            return kind
        if self._peek() == "{":
            return self._object()
        if self._peek() == "[":
            self._next()
            parts = []
            while self._peek() != "]":
                parts.append(self._union())
                if self._peek() == ",":
                    self._next()
            self._next()
            return "tuple", parts
        word = self._next()
        if word == "Record":
            self._take("<")
            key = self._union()
            self._take(",")
            value = self._union()
            self._take(">")
            return "record", (key, value)
        if word.startswith('"') or word.isdigit():
            return "literal", word.strip('"') if word.startswith('"') else int(word)
        return "name", word


NAMED = _Parser(TYPES.read_text(encoding="utf-8")).named


def check(value: Any, name: str) -> None:
    """Fail unless ``value`` matches the interface ``name`` exactly."""
    _check(value, ("name", name), name)


def _check(value: Any, kind: Type, at: str) -> None:
    what, inner = kind
    if what == "union":
        assert any(_fits(value, choice, at) for choice in inner), f"{at}: {value!r:.200}"
    elif what == "literal":
        assert value == inner and type(value) is type(inner), f"{at}: {value!r:.200} is not {inner!r}"
    elif what == "array":
        assert isinstance(value, list), f"{at}: {value!r:.200} is no list"
        for index, item in enumerate(value):
            _check(item, inner, f"{at}[{index}]")
    elif what == "tuple":
        assert isinstance(value, list) and len(value) == len(inner), f"{at}: {value!r:.200}"
        for index, (item, part) in enumerate(zip(value, inner, strict=True)):
            _check(item, part, f"{at}[{index}]")
    elif what == "object":
        assert isinstance(value, dict), f"{at}: {value!r:.200} is no object"
        assert set(value) == set(inner), f"{at}: fields {sorted(set(value) ^ set(inner))}"
        for field, part in inner.items():
            _check(value[field], part, f"{at}.{field}")
    elif what == "record":
        key, part = inner
        assert isinstance(value, dict), f"{at}: {value!r:.200} is no object"
        if key[0] == "union":
            assert set(value) == {name for _, name in key[1]}, f"{at}: fields {sorted(value)}"
        for field, item in value.items():
            _check(item, part, f"{at}.{field}")
    elif inner in ("number", "string", "boolean", "null"):
        types = {"number": (int, float), "string": (str,), "boolean": (bool,), "null": (type(None),)}[inner]
        assert type(value) in types, f"{at}: {value!r:.200} is no {inner}"
    else:
        _check(value, NAMED[inner], at)


def _fits(value: Any, kind: Type, at: str) -> bool:
    try:
        _check(value, kind, at)
    except AssertionError:
        return False
    return True
