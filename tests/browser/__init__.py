"""Browser tests. This is a package, so that its fixtures end with it and its files can import each other."""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("pages", "notebooks", "notebook_tests", "viewer", "keys"))
)
