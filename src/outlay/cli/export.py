"""`outlay export`: hands a node's program back as a patch, a branch or a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from outlay.cli._branch import Repository, make_branch
from outlay.cli._reading import answer, common_options, intact, read_run, talk
from outlay.errors import InputError
from outlay.execution import snapshot
from outlay.execution.folder import write_whole
from outlay.execution.objects import Damaged
from outlay.planfiles import RESULTS
from outlay.report.attempt_cards import command_lines, environment_of
from outlay.report.evidence import evidence
from outlay.report.programs import (
    changed_paths,
    files_of,
    links_outside,
    node_of,
    patch_between,
    prefix_in_repository,
)

if TYPE_CHECKING:
    from outlay.cli._reading import Found

PAPERS, STDOUT = "OUTLAY.md", "-"


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed back.

    Attributes:
        run: Name of the run.
        node: The node.
        changed: Paths of the files that differ from the start's.
        wrote: Files and folders that were written.
        patch: The patch; null where none was asked for, or no file changes.
        command: How the program is evaluated, as a shell would take it.
        environment: The variables that the node's levers set, which `command` begins with.
        branch: Name of the branch, if one was made.
        commit: Its commit.
    """

    run: str
    node: int
    changed: list[str]
    wrote: list[str]
    command: list[str]
    environment: dict[str, str]
    patch: str | None = None
    branch: str = ""
    commit: str = ""


@click.command()
@click.argument("run", required=False)
@click.option("--node", default="champion", help="A node, `baseline` or `champion` (default).")
@click.option(
    "--patch",
    type=click.Path(path_type=Path),
    help="Write a patch for `git apply`; - writes it to stdout, and nothing else.",
)
@click.option("--branch", help="Make a git branch; the working tree and HEAD stay.")
@click.option("--folder", type=click.Path(path_type=Path), help="Write all files into a folder.")
@common_options
def command(
    run: str | None,
    node: str,
    patch: Path | None,
    branch: str | None,
    folder: Path | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Hand a node's program back, with its plan and its evidence.

    Exactly one of --patch, --branch and --folder. The plan and the evidence are written to
    NAME.OUTLAY.md beside the patch NAME, to OUTLAY.md in the folder, or into the message of the
    branch's commit. A program that changes no file has no patch: its command line is printed.
    """
    if sum(target is not None for target in (patch, branch, folder)) != 1:
        raise InputError(
            "export: allowed: exactly one of --patch FILE, --branch NAME, --folder DIR"
        )
    printed = patch is not None and str(patch) == STDOUT
    if printed and as_json:
        raise InputError("--patch - and --json: found both, allowed: one of them")
    found = read_run(store, run)
    chosen = node_of(found.state, node)
    with intact(found):
        _warn_of_links(found, chosen)
        if printed:
            _print_patch(found, chosen)
            return
        if patch is not None:
            result = _to_patch(found, chosen, patch)
        elif folder is not None:
            result = _to_folder(found, chosen, folder)
        else:
            result = _to_branch(found, chosen, branch or "")
    _warn_of_workspace(found, result)
    answer(result, _text(result), as_json=as_json)


def _patch(found: Found, node: int) -> str:
    workspace = Path(found.state.task.workspace.path)
    prefix = prefix_in_repository(workspace)
    return patch_between(*_manifests(found, node), found.objects, prefix)


def _print_patch(found: Found, node: int) -> None:
    text = _patch(found, node)
    if not text:
        _say_no_patch(command_lines(found.state, node))
    answer({}, "", as_json=False, patch=text)


def _say_no_patch(lines: list[str]) -> None:
    talk(f"no file changes, so there is no patch; the program is run as: {lines[0]}")


def _to_patch(found: Found, node: int, path: Path) -> Exported:
    text = _patch(found, node)
    papers = path.with_name(f"{path.stem}.{PAPERS}")
    for target in (path, papers):
        _require_free(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if text:
        write_whole(path, text)
        return _finish(found, node, [path], papers, patch=str(path))
    result = _finish(found, node, [], papers)
    _say_no_patch(result.command)
    return result


def _to_folder(found: Found, node: int, folder: Path) -> Exported:
    _, after = _manifests(found, node)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--folder: {folder} is not empty; choose another")
    try:
        snapshot.lay(after, found.objects, folder)
    except Damaged:
        if folder.exists():
            snapshot.remove_tree(folder)
        raise
    return _finish(found, node, [folder], folder / PAPERS)


def _to_branch(found: Found, node: int, branch: str) -> Exported:
    repository = Repository(Path(found.state.task.workspace.path))
    before, after = _manifests(found, node)
    message = _papers(found, node).removeprefix("# ")
    commit, left_out = make_branch(repository, branch, (before, after), found.objects, message)
    if left_out:
        talk(
            f"left out, since git does not track them and node {node} did not change them: "
            f"{_some(left_out)}; `git add` them and export again to have them on the branch"
        )
    return msgspec.structs.replace(_result(found, node, []), branch=branch, commit=commit)


def _finish(
    found: Found, node: int, wrote: list[Path], papers: Path, *, patch: str | None = None
) -> Exported:
    write_whole(papers, _papers(found, node))
    wrote = [*wrote, papers]
    results = found.folder / RESULTS
    copy = papers.with_name(papers.name.removesuffix(PAPERS) + RESULTS)
    if results.exists() and not copy.exists():
        shutil.copyfile(results, copy)
        wrote.append(copy)
    return msgspec.structs.replace(_result(found, node, wrote), patch=patch)


def _result(found: Found, node: int, wrote: list[Path]) -> Exported:
    return Exported(
        run=found.name,
        node=node,
        changed=changed_paths(*_manifests(found, node), found.objects),
        wrote=[str(path) for path in wrote],
        command=command_lines(found.state, node),
        environment=environment_of(found.state, node),
    )


def _warn_of_links(found: Found, node: int) -> None:
    for line in links_outside(*_manifests(found, node), found.objects):
        talk(line)


def _warn_of_workspace(found: Found, result: Exported) -> None:
    """Say which of the written files make the workspace another one than the run began with."""
    workspace = Path(found.state.task.workspace.path).resolve()
    inside = [path for path in result.wrote if Path(path).resolve().is_relative_to(workspace)]
    if inside:
        them = "it is" if len(inside) == 1 else "they are"
        talk(
            f"{', '.join(inside)}: inside the task's workspace; unless git ignores what is there, "
            f"the run cannot be continued while {them} there"
        )


def _manifests(found: Found, node: int) -> tuple[str, str]:
    return files_of(found.state, found.state.baseline), files_of(found.state, node)


def _papers(found: Found, node: int) -> str:
    before, after = _manifests(found, node)
    return evidence(found.state, node, found.name, changes_files=before != after)


def _require_free(path: Path) -> None:
    if path.exists():
        raise InputError(f"{path}: is there already; choose another place")


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:10]) + (" …" if len(paths) > 10 else "")


def _text(result: Exported) -> str:
    lines = [f"wrote {path}" for path in result.wrote]
    if result.branch:
        lines.append(f"branch {result.branch} at {result.commit[:12]}")
    lines.append(f"files changed: {_some(result.changed) or 'none'}")
    lines += [f"evaluate it with: {line}" for line in result.command]
    return "\n".join(lines)
