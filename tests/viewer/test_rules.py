"""The viewer's scripts can be joined into one function: what the page does with them changes none of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from javascript import COMMENT, comments_beside_code, pieces, statements, words

from compile_lens.views.viewer.embed import bare, modules

SCRIPTS = Path(__file__).resolve().parents[2] / "compile_lens" / "views" / "static" / "viewer"
FILES = sorted(SCRIPTS.glob("*.js"))
LONGEST = 350

IMPORT = re.compile(r'import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";')
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) ([\w$]+)")
TYPE = re.compile(r"/\*\* @type \{.*\} \*/")
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|class) ([\w$]+)", re.MULTILINE)

FORBIDDEN = {
    "a page without outside requests": r"\b(?:fetch|importScripts)\s*\(|\b(?:XMLHttpRequest|WebSocket|EventSource)\b"
    r"|\bsendBeacon\b",
    "markup made of data": r"\.(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe)\b|\bdocument\s*\.\s*write",
    "code made of data": r"\beval\s*\(|\bnew\s+Function\b",
    "one function without modules": r"\bimport\s*\(|\bimport\s*\.\s*meta\b|\brequire\s*\(",
}


def flaws(source: str) -> list[str]:
    """What keeps a script from being joined with the others."""
    found = []
    for number, said in comments_beside_code(source):
        if not TYPE.fullmatch(said):
            found.append(f"line {number}: a comment has lines of its own: {said}")
    if _matter(bare(source)) != _matter(source):
        found.append("without its comments and its indentation it is another script")
    for number, statement in statements(source):
        line = source.split("\n")[number - 1]
        if statement.startswith("import"):
            if not IMPORT.fullmatch(line):
                found.append(f'line {number}: imports read `import {{ a, b }} from "./x.js";`: {line}')
        elif statement.startswith("export") and not EXPORTED.match(statement):
            found.append(f"line {number}: exports read `export function|const|class name`: {line}")
        elif re.match(r"(?:export )?(?:const|let|var)\b", statement):
            if not DECLARED.match(statement) or _declares_more(statement):
                found.append(f"line {number}: one `const` or `let` declares one name: {line}")
    code = words(source)
    found += [f"{why}: no `{hit}`" for why, what in FORBIDDEN.items() for hit in re.findall(what, code)]
    found += [f"`{word}` would end the script" for word in ("</script", "<!--") if word in source.lower()]
    return found


def _matter(source: str) -> list[str]:
    """Code and texts, without comments and blanks between them."""
    return [piece.text for piece in pieces(source) if piece.kind != COMMENT and piece.text.strip()]


def _declares_more(statement: str) -> bool:
    depth = 0
    for piece in pieces(statement):
        depth = piece.depth
        if not depth and piece.text == ",":
            return True
    return False


def declared(source: str) -> list[str]:
    """Names of the top level."""
    return [m[1] for _, statement in statements(source) if (m := DECLARED.match(statement))]


def test_there_are_scripts() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_can_be_joined_with_the_others(file: Path) -> None:
    assert flaws(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_is_short(file: Path) -> None:
    assert file.read_text(encoding="utf-8").count("\n") <= LONGEST


def test_no_name_is_declared_twice() -> None:
    seen: dict[str, str] = {}
    for file in FILES:
        for name in declared(file.read_text(encoding="utf-8")):
            assert name not in seen, f"{name} of {file.name} is in {seen.get(name)} as well"
            seen[name] = file.name
    assert seen


def test_the_page_carries_every_script() -> None:
    """One that nothing imports is a leftover; ``boot.js`` starts the page and stands for itself."""
    assert {*modules(), "boot.js"} == {file.name for file in FILES}


def test_what_is_imported_is_there() -> None:
    texts = {file.stem: file.read_text(encoding="utf-8") for file in FILES}
    exports = {stem: set(EXPORTED.findall(text)) for stem, text in texts.items()}
    for stem, text in texts.items():
        for names, other in IMPORT.findall(text):
            missing = set(names.split(", ")) - exports.get(other, set())
            assert not missing, f"{stem}.js imports {sorted(missing)} from {other}.js"


@pytest.mark.parametrize(
    "source",
    [
        'import { a } from "./a.js";\n\n// why\nexport const B = a * 2;\n',
        "/**\n * What.\n * @param {number} x\n */\nexport function f(x) {\n  return x / 2 / 3; \n}\n",
        'const SVG = "http://www.w3.org/2000/svg";\nconst p = /\\/\\/[/*]/g;\n',
        "const t = `a ${b ? `// no comment ${{ c: 1 }.c}` : ''} /* text`;\n",
        "const a = 2\n  * 3; \nconst f = (/** @type {number} */ b) => b;\n",
        "const v = assign(/** @type {HTMLElement} */ (x), { a: [1, 2] });\n",
        "export class A {\n  /** @type {number[]} */\n  b = [];\n}\nif (x) {\n  f();\n}\n",
        "export async function go() {\n  await f();\n}\nexport const g = (a) => {\n  return a;\n};\n",
    ],
)
def test_a_good_script_passes(source: str) -> None:
    assert flaws(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "const a = 1; // one\n",
        "const a = 1; /* one */\n",
        "const a = `\n// text\n`;\n",
        "const a = `\n  indented\n`;\n",
        'import a from "./a.js";\n',
        'import { a as b } from "./a.js";\n',
        'import {\n  a,\n} from "./a.js";\n',
        'import * as a from "./a.js";\n',
        'import "./a.js";\n',
        "const a = 1;\nexport { a };\n",
        "export default function f() {}\n",
        "export let a = 1;\n",
        'export * from "./a.js";\n',
        "const { a } = b;\n",
        "const a = 1, b = 2;\n",
        'const a = () => import("./a.js");\n',
        'element.innerHTML = "";\n',
        'fetch("x");\n',
        'const a = "</script>";\n',
    ],
)
def test_a_bad_script_is_told(source: str) -> None:
    assert flaws(source)


def test_names_of_the_top_level_alone_count() -> None:
    source = "const a = () => {\n  const b = 1;\n};\nexport async function c() {\n  let d;\n}\nlet e = 1;\n"
    assert declared(source) == ["a", "c", "e"]
