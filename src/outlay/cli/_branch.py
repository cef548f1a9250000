"""A git branch made without touching the working tree, the index or HEAD.

Files are laid out in a folder of our own; git adds them there into an index of our own.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from outlay.errors import InputError, OutlayError
from outlay.execution import snapshot
from outlay.globs import matches

_REDIRECTING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE")
_WHO = ("AUTHOR", "COMMITTER")
_GITLINK = "160000"
_START = "State of the working tree that a run began with"


class Repository:
    """The git repository around a folder.

    Args:
        folder: Inside the repository.

    Raises:
        InputError: There is no repository, or no git.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.prefix = self.git("rev-parse", "--show-prefix").rstrip("\n")
        except (OSError, OutlayError):
            raise InputError(
                f"--branch: found no git repository at {folder}; use --patch or --folder"
            ) from None

    def git(
        self,
        *arguments: str,
        at: Path | None = None,
        env: dict[str, str] | None = None,
        text: str = "",
    ) -> str:
        """Return what git prints; raises `OutlayError` with its last line if it fails."""
        # Hooks and monitors of the repository are programs that nobody asked to run.
        options = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        clean = {key: value for key, value in os.environ.items() if key not in _REDIRECTING}
        done = subprocess.run(
            ("git", *options, "-C", str(at or self.folder), *arguments),
            input=os.fsencode(text),
            capture_output=True,
            env=clean | (env or {}),
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise OutlayError(f"git {arguments[0]}: {said[-1] if said else done.returncode}")
        return os.fsdecode(done.stdout)

    def require_free(self, branch: str) -> None:
        """Raise `InputError` for a name that git refuses or that is taken."""
        try:
            self.git("check-ref-format", "--branch", branch)
        except OutlayError:
            raise InputError(f"--branch: found {branch!r}, which git takes for no name") from None
        if self.git("for-each-ref", f"refs/heads/{branch}"):
            raise InputError(f"--branch: {branch!r} is there already; choose another name")

    def tracked(self) -> set[str]:
        """Return the files below the folder that HEAD or the index holds."""
        listed = self.git("ls-files", "-z")
        if self.head():
            listed += self.git("ls-tree", "-r", "-z", "--name-only", "HEAD", ".")
        return set(filter(None, listed.split("\0")))

    def head(self) -> str:
        """Return the commit of HEAD; empty where there is none yet."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
        except OutlayError:
            return ""

    def commit(self, tree: str, parent: str, message: str) -> str:
        """Return a new commit, made in Outlay's name where git knows of no other."""
        try:
            self.git("var", "GIT_COMMITTER_IDENT")
            env = {}
        except OutlayError:
            env = {f"GIT_{who}_NAME": "Outlay" for who in _WHO}
            env |= {f"GIT_{who}_EMAIL": "outlay@localhost" for who in _WHO}
        above = ("-p", parent) if parent else ()
        return self.git("commit-tree", tree, *above, "-F", "-", env=env, text=message).strip()


def make_branch(
    repository: Repository, branch: str, manifests: tuple[str, str], objects: Path, message: str
) -> tuple[str, list[str]]:
    """Make a branch with the node's files on top of HEAD.

    It holds what git tracks and what the node added or changed, so that no file of the user is
    committed that nobody asked to commit. Returns the commit and the files that are left out.

    Where the files that the run started from are not HEAD's, they get a commit of their own
    below, so that the last commit holds the node's change and nothing else.

    Args:
        repository: Where.
        branch: Its name.
        manifests: Hashes of the files of the start and of the node.
        objects: Object store of the run.
        message: Message of the commit.
    """
    repository.require_free(branch)
    head = repository.head()
    start, end = (snapshot.load(manifest, objects) for manifest in manifests)
    tracked = repository.tracked()
    held = tracked | {path for path in end if end[path] != start.get(path)}
    with tempfile.TemporaryDirectory(prefix="outlay-") as scratch:
        trees = [
            _tree(repository, Path(scratch), head, manifest, objects, chosen)
            for manifest, chosen in zip(manifests, (tracked, held), strict=True)
        ]
    parent = head
    if not head or trees[0] != repository.git("rev-parse", f"{head}^{{tree}}").strip():
        parent = repository.commit(trees[0], head, _START)
    commit = repository.commit(trees[1], parent, message)
    repository.git("update-ref", f"refs/heads/{branch}", commit, "")
    return commit, sorted(end.keys() - held)


def _tree(
    repository: Repository, scratch: Path, head: str, manifest: str, objects: Path, held: set[str]
) -> str:
    """Return the tree of HEAD with the workspace's files replaced by the manifest's in `held`."""
    work = scratch / str(len(held)) / manifest
    snapshot.lay(manifest, objects, work / repository.prefix, choose=held.__contains__)
    env = {"GIT_INDEX_FILE": str(work.with_suffix(".index"))}
    repository.git("read-tree", *([head] if head else ["--empty"]), env=env)
    listed = repository.git("ls-files", "-s", "-z", "--full-name", ":/", env=env).split("\0")
    tracked = [line.partition("\t")[::2] for line in listed if line]
    modules = [path for info, path in tracked if info.startswith(_GITLINK)]
    inside = {path for info, path in tracked if path.startswith(repository.prefix)}
    laid = {repository.prefix + path for path in snapshot.load(manifest, objects) if path in held}
    if chosen := [p for p in sorted(inside | laid) if _ours(p, repository.prefix, modules)]:
        work.mkdir(exist_ok=True)
        git_dir = repository.git("rev-parse", "--absolute-git-dir").rstrip("\n")
        there = {"GIT_DIR": git_dir, "GIT_WORK_TREE": str(work), "GIT_LITERAL_PATHSPECS": "1"}
        given = ("--pathspec-from-file=-", "--pathspec-file-nul")
        repository.git("add", "-A", "-f", *given, at=work, env=env | there, text="\0".join(chosen))
    return repository.git("write-tree", env=env).strip()


def _ours(path: str, prefix: str, modules: list[str]) -> bool:
    """Whether snapshots hold the path; what they never hold stays as HEAD has it."""
    in_module = any(path == module or path.startswith(module + "/") for module in modules)
    return not in_module and not matches(path.removeprefix(prefix), snapshot.NEVER)
