"""The texts for agents name existing tools, and are written to the requested place without overwriting anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import compile_lens
from compile_lens.cli import main
from compile_lens.cli.agents import commands as skill
from compile_lens.cli.agents.server import TOOLS
from compile_lens.cli.arguments import parser
from compile_lens.errors import UsageError


def test_each_tool_stands_in_the_skill_and_each_command_exists() -> None:
    text = skill.text("SKILL.md")
    for tool in TOOLS:
        assert f"`{tool}`" in text
    help_text = parser().format_help()
    for name in skill.FILES:
        for command in re.findall(r"`compile-lens ([\w-]+)", skill.text(name)):
            assert re.search(rf"\n    {command}\s", help_text), command
        for method in re.findall(r"compile_lens\.(\w+)\(", skill.text(name)):
            assert hasattr(compile_lens, method), method


def test_they_are_written_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skill", "--write", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "SKILL.md").read_text() == skill.text("SKILL.md")
    (tmp_path / "new" / "AGENTS.md").write_text("ours")
    with pytest.raises(UsageError, match="exists and differs"):
        skill.write(tmp_path / "new")
    assert main(["skill", "--write", str(tmp_path / "new")]) == 2
    assert (tmp_path / "new" / "AGENTS.md").read_text() == "ours"
    assert main(["skill", "--write", str(tmp_path / "new"), "--overwrite"]) == 0
    assert "ours" not in (tmp_path / "new" / "AGENTS.md").read_text()
    capsys.readouterr()
    assert main(["skill"]) == 0 and "name: compile-lens" in capsys.readouterr().out
