"""Tests in a browser. A package, so that its fixtures can end with it, and its files import each other."""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("pages", "notebooks", "notebook_tests", "viewer", "keys"))
)
