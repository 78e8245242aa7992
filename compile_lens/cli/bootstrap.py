"""Entry script that runs the command line under another Python, with this package and that Python's other packages.

It is run by its path, so that none of the caller's package folders, which have torch, is searched.
"""

import sys


def main() -> int:
    """Import this package from the folder of this file, and run the command in the arguments."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # the folder of this file: not importable by others
    import importlib.util
    import os

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location("compile_lens", os.path.join(package, "__init__.py"))
    assert spec is not None and spec.loader is not None
    sys.modules["compile_lens"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["compile_lens"])
    from compile_lens.cli import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
