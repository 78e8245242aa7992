"""Entry script of a child process. It is run by its path, so that no folder of the caller's is searched before Python's
own.

Arguments: the module whose ``main`` is called, the descriptor of a JSON file with the caller's state, and the integers
that ``main`` takes.
"""

import sys


def main() -> None:
    """Import this package from the folder of this file and, under the caller's Python, everything else from the
    caller's files."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # the folder of this file: not importable by others
    import importlib.util
    import json
    import os

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with os.fdopen(int(sys.argv[2]), "rb") as file:
        known = json.load(file)
    spec = importlib.util.spec_from_file_location("compile_lens", os.path.join(package, "__init__.py"))
    assert spec is not None and spec.loader is not None
    sys.modules["compile_lens"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["compile_lens"])
    from compile_lens.child import imports, lifetime, nesting

    nesting.Nesting.depth = known["depth"]
    lifetime.bind(known["life"], known["caller"])
    if known["path"] is not None:  # None: the Python of another environment, with folders of its own
        imports.begin(known["path"], known["files"])
    importlib.import_module(sys.argv[1]).main(*map(int, sys.argv[3:]))


if __name__ == "__main__":
    main()
