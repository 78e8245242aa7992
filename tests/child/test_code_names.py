"""Names that a function uses, as its code object lists them."""

from __future__ import annotations

from typing import Any

from compile_lens.child.code_names import names_in


def test_modules_that_a_function_imports_itself() -> None:
    def function(module: Any) -> Any:
        import json
        from importlib import import_module

        return json.dumps(1), import_module("fractions"), getattr(module, "left")  # noqa: B009  # as programs write it

    _, used, imported, _ = names_in(function.__code__)
    assert {"json", "importlib", "fractions"} <= imported and "getattr" in used


def test_globals_that_are_asked_for_what_is_not_named() -> None:
    source = "def function(name):\n    return getattr(settings, name), options.__dict__\n"
    scope: dict[str, Any] = {}
    exec(source, scope)
    *_, owners = names_in(scope["function"].__code__)
    assert owners == {"settings", "options"}
