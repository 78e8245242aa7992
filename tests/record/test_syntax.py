"""Python text is parsed even if CPython raises because another thread parses at the same time."""

from __future__ import annotations

import ast
import threading
from typing import Any

import pytest

from compile_lens.record import syntax


def test_a_text_is_parsed_again_where_the_interpreter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real, errors = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * 2

    def parse(*args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", parse)
    assert ast.dump(syntax.parse("x = [1]")) == ast.dump(real("x = [1]"))
    errors.append(SystemError())
    assert syntax.literal(" (1, -2)") == (1, -2)


def test_what_is_no_python_raises_as_ever() -> None:
    with pytest.raises(SyntaxError):
        syntax.parse("x = ")
    with pytest.raises(ValueError):
        syntax.literal("f()")


def test_threads_that_parse_at_the_same_time() -> None:
    text = "\n".join(f"def f{i}(x):\n    return [g(x, {i}) for g in (x + {i}, x.y[{i}])]" for i in range(60))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                syntax.parse(text)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
