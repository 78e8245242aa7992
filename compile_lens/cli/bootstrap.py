"""The command line under another Python, with this very package and everything else of that Python's own.

It is run by its path: that no folder of this one's packages, torch among them, is searched there.
"""

import sys


def main() -> int:
    """Import the package from where this file is, and run the command that the arguments are."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # the folder of this file: its names are not meant for everybody
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
