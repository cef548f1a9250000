from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.report import gather, markdown
from outlay.report.markdown import fenced, plain, rich
from outlay.report.words import title
from tests.report.samples import NASTY, finished

NOWHERE = Path("/nowhere/runs/six")


@pytest.fixture(scope="module")
def text() -> str:
    return markdown(gather(*finished(5), NOWHERE, "six"))


def test_the_structure(text):
    heads = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    assert heads == [
        "# Which switches raise the accuracy?",
        "## What was found",
        "## Champion",
        "## Champion curve",
        "## Plan tree",
        "## Which levers helped",
        "## Judgements",
        "## Dead ends",
        "## Budget",
        "## Attempts",
        "## To run it again",
        "## Words",
    ]


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("Which way?", "Which way?"),
        ("Which way\nis up?", "Which way\nis up?"),
        ("\n# Lower the loss\n\nRules: none.\n", "Lower the loss"),
        ("## Short trip\r\nVisit all.\n\nEnd.", "Short trip\r\nVisit all."),
    ],
)
def test_a_long_question_is_headed_by_its_first_paragraph(question, shown):
    assert title(question) == shown


def test_the_tree_is_drawn_as_text(text):
    tree = text.split("## Plan tree\n\n```text\n")[1].split("```")[0].splitlines()
    assert tree[0].startswith("● #0 ")
    assert any(line.startswith("  ") and "★" in line for line in tree)
    assert len(tree) >= 6


def test_every_table_has_as_many_cells_in_each_row(text):
    for table in text.split("\n\n"):
        if table.startswith("|"):
            assert len({line.count(" | ") for line in table.splitlines()}) == 1


def test_it_speaks_of_nothing_that_only_a_picture_has(text):
    for word in ("bar", "bars", "line", "dashed"):
        assert f" {word} " not in text.replace("a line", "")


def test_what_stands_between_backticks_is_code():
    assert rich("Setting `features` to `strokes` helps_.") == (
        r"Setting `features` to `strokes` helps\_."
    )
    assert rich("a `b|c` ``d`` `e\nf`") == r"a \`b\|c\` \`\`d\`\` `e f`"


def test_a_failed_attempt_is_written_out(text):
    assert "loss is nan" in text
    assert NASTY not in text


@given(st.text())
def test_plain_text_is_one_line_without_markup(text):
    shown = plain(text)
    assert "\n" not in shown
    for k, character in enumerate(shown):
        if character in "`*_[]<>#|":
            assert shown[k - 1] == "\\"


@given(st.text(alphabet="`a\n~"))
def test_a_fence_is_longer_than_any_in_the_text(text):
    lines = fenced(text).splitlines()
    fence = lines[-1]
    assert lines[0] == fence + "text"
    assert all(fence not in line for line in lines[1:-1])
