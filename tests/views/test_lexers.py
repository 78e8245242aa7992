"""The shortcuts of our lexers colour every character as Pygments' own lexer does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name

from compile_lens.views.words.highlight import _ink, runs

ROOT = Path(__file__).resolve().parents[2]

PYTHON = [
    'x: "f32[8, 4]" = torch.ops.aten.sum.default(a, [1]);  a = None\n',
    'x = f"{a!r:>{w}} {{}} {sum(b)}" + rb\'\\x00\' + u"z" + "{a[\'}\']}" + "%(n)5d"\n',
    '"""A text\nof "two" lines, sum"""\n    r\'\'\'another \\\'\'\'\n',
    "match x:\n    case [a, _]:\n        pass\nmatch = case = 1\nprint(match, type)\n",
    "import a.b as c, d\nfrom . import e\nraise f from None\n@property\ndef __init__(self): return self.sum @ sum\n",
    "a.sum(), a.self, .5 + 1.e5 - 0x1F - 1_000 - 3j, a.1, x if not y else z, x is not None, lambda: 0\n",
    "# only a comment: if True\nclass C(Exception): # sum\n\tasync def f(): await g\n\n\n  x = 'not closed\n  sum(y)\n",
    "a = b \\\n  if c else d\nlazy import x\nlazy = 3\né = 2; aé = sum; __name__; __add__(a)\n$ ? `sum` !x != y\n",
]
CPP = [
    '#include <ATen/ATen.h>\n#define A(x) \\\n  ((x) + 1)\nextern "C"  void kernel(const float* p, long n)\n{\n',
    "{\n    for(int64_t x0=static_cast<int64_t>(0L); x0<16LL; x0+=8UL)\n    {\n"
    " auto tmp0 = -1.5f - 2 -3.e-2;\n    }\n}\n",
    "void f() {\n  out:\n  switch (x) { case A: y(); break; default: z(); }\n  goto out;\n  a ? b : c;\n}\n",
    'void f() {\n  [[maybe_unused]] int a[3]; /* not\n done */ x = \'c\'; // end\n  u8"x" L\'y\' R"(raw )" x"y"\n}\n',
    "void f() {\n#pragma omp parallel\n  #if 0\n  int x;\n  #endif\n"
    "  __m128 a; size_t b; nullptr; a$b; true_ ? 1'000 : 0x1Fp3;\n}\n",
    "namespace a { struct B : C { enum class D { e }; }; template <typename T> T f(T x) { return x; } }\n}}\nx\n",
]


def recorded() -> Iterator[tuple[str, str]]:
    """Return the generated code of the recorded captures, kernel by kernel and whole."""
    held = json.loads((ROOT / "tests/measures/records/torch-2.13.json").read_text(encoding="utf-8"))

    def walk(part: object) -> Iterator[tuple[str, str]]:
        if isinstance(part, dict):
            if isinstance(part.get("source"), str) and part.get("language") in ("cpp", "triton", "metal"):
                yield ("python" if part["language"] == "triton" else "cpp"), part["source"]
            if isinstance(part.get("text"), str):
                yield "python", part["text"]
            part = list(part.values())
        if isinstance(part, list):
            for one in part:
                yield from walk(one)

    yield from walk(held)


def inks(tokens: Iterator[tuple[object, str]]) -> list[int]:
    """Return the colour of each character; a space has that of the preceding character."""
    colours: list[int] = []
    ink = 0
    for kind, value in tokens:
        ink = ink if value.isspace() else _ink(kind)
        colours += [ink] * len(value)
    return colours


def same(language: str, text: str) -> None:
    plain = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    ours = [ink for length, ink in runs(text, language, len(text)) for _ in range(length)]
    assert ours == inks(plain.get_tokens(text))


@pytest.mark.parametrize("text", PYTHON)
def test_python(text: str) -> None:
    same("python", text)


@pytest.mark.parametrize("text", CPP)
def test_cpp(text: str) -> None:
    same("cpp", text)


def test_generated_code() -> None:
    texts = list(dict.fromkeys(recorded()))
    assert {language for language, _ in texts} == {"python", "cpp"}
    for language, text in texts:
        same(language, text)


@pytest.mark.parametrize(
    "file", ["compile_lens/views/words/labels.py", "tests/conftest.py", "docs/make_site.py"]
)
def test_written_code(file: str) -> None:
    same("python", (ROOT / file).read_text(encoding="utf-8"))
