"""Documents do not lie: links resolve, help texts are the commands' own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from outlay.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_is_there(page: Path) -> None:
    for script in re.findall(r"python (\S+\.py)", page.read_text()):
        assert (ROOT / script).exists(), f"{page.name}: {script}"


def test_the_page_of_commands_is_their_help() -> None:
    # A command that ran before in this process may keep other help options than its group's.
    code = "import runpy, sys; sys.stdout.write(runpy.run_path(sys.argv[1])['text']())"
    script = str(ROOT / "docs" / "generate_commands.py")
    done = subprocess.run([sys.executable, "-c", code, script], capture_output=True, check=True)
    assert (ROOT / "docs" / "commands.md").read_text() == done.stdout.decode()


def test_the_commands_of_the_examples_work() -> None:
    text = (ROOT / "examples" / "README.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^uv run outlay (.*)$", text, re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"design", "audit"}
    for command in commands:
        arguments = [sys.executable, "-m", "outlay", *shlex.split(command)]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in COMMANDS:
        assert name == "attempt" or f"`outlay {name}" in readme, name


def test_the_readme_names_every_page() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"docs/{page.name}" in readme, page.name
