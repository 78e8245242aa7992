"""A page of its own around a fragment: its policy, its style sheet. What stands in a notebook has its styles inline."""

from __future__ import annotations

import importlib.resources

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""It forbids outside requests."""


def around(fragment: str, title: str, generator: str, widest: int = 1280) -> str:
    """HTML of a page around a fragment of HTML; ``title`` and ``generator`` are HTML too."""
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{generator}<title>{title} · compile_lens</title>\n"
        f"<style>\n{sheet(widest)}</style>\n</head>\n<body>\n<main>\n{fragment}</main>\n</body>\n</html>\n"
    )


def sheet(widest: int = 1280) -> str:
    """Its text, for a page that grows up to so many pixels of CSS."""
    files = importlib.resources.files(__package__)
    rules = files.joinpath("lens.css").read_text(encoding="utf-8")
    return f"{rules}main {{ max-width: {widest}px; }}\n"
