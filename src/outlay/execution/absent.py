"""Which places a command in the strongest sandbox does not see. Standard library only."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TMP = "/tmp"  # noqa: S108 - the job's own
"""Absent whatever it holds: each job has one of its own in its place."""

SECRETS = (
    # Machines, clouds and containers.
    *(".ssh", ".gnupg", ".netrc", ".aws", ".azure", ".boto", ".s3cfg", ".config/gcloud"),
    *(".config/rclone", ".terraform.d", ".vault-token", ".kube", ".docker", ".config/containers"),
    # Code, packages, models and data.
    *(".git-credentials", ".config/git", ".config/gh", ".config/hub", ".pypirc", ".npmrc"),
    *(".config/pip", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".m2/settings.xml", ".kaggle", ".config/kaggle", ".huggingface"),
    *(".cache/huggingface/token", ".cache/huggingface/stored_tokens"),
    *(".pgpass", ".my.cnf", ".mylogin.cnf"),
    # Passwords, browsers, and what was typed.
    *(".password-store", ".local/share/keyrings", ".config/op", ".mozilla", ".thunderbird"),
    *(".config/chromium", ".config/google-chrome", ".config/BraveSoftware"),
    *("snap/firefox", "snap/chromium", ".bash_history", ".zsh_history", ".python_history"),
    *(".psql_history", ".local/share/fish/fish_history"),
    # Coding agents.
    *(".codex", ".claude", ".claude.json", ".config/opencode", ".local/share/opencode"),
    *(".gemini", ".config/github-copilot"),
)
"""Below the home folder: absent inside bwrap unless `read` names them."""

_RUN = ("/run", "/var/run")
_NAMES = "/etc/resolv.conf"
_SYSTEM = ("/run/current-system", "/run/opengl-driver")

_OUTLAY = str(Path(__file__).resolve().parents[1])


class Outline(NamedTuple):
    """What is absent, and what stays visible below it, as absolute paths without links."""

    masks: tuple[str, ...]
    visible: tuple[str, ...]

    def hides(self, path: str) -> bool:
        """Return whether an absolute path is out of sight, by itself or where it leads to."""
        return any(
            self._covers(place) for place in {os.path.normpath(path), os.path.realpath(path)}
        )

    def _covers(self, path: str) -> bool:
        # The deeper place is mounted later, and of two at one depth the visible one.
        return _depth(path, (TMP, *self.masks)) > _depth(path, self.visible)


def outline(
    folders: Iterable[str],
    data: Iterable[str],
    read: Iterable[str],
    environment: Mapping[str, str],
    *,
    network: bool,
) -> Outline:
    """Return what a command sees.

    Args:
        folders: What is absent beside secrets and sockets.
        data: What is linked into the workspace.
        read: What the task opens.
        environment: The command's, for the home folder and the Python in use.
        network: Whether it may use the network.
    """
    home = environment.get("HOME", "")
    secrets = [f"{home}/{name}" for name in SECRETS] if home else []
    pythons = (sys.prefix, sys.base_prefix, environment.get("VIRTUAL_ENV", sys.prefix))
    folders = [os.path.realpath(path) for path in folders]
    # Outlay itself, for evaluators that import it, unless it is what is under research.
    own = () if any(below(_OUTLAY, path) for path in folders) else (_OUTLAY,)
    opened = {os.path.realpath(path) for path in read}
    masks = {os.path.realpath(path) for path in (*folders, *secrets, *sockets(os.environ))}
    visible = {os.path.realpath(path) for path in (*pythons, *own, *data)} | opened
    visible.update(needed(network=network))
    return Outline(tuple(sorted(masks - opened)), tuple(sorted(visible)))


def sockets(environment: Mapping[str, str]) -> list[str]:
    """Return where services of the machine and the user listen: a mask keeps no socket below it.

    A socket can be connected to on a read-only mount, too, and a network of one's own stops none.

    Args:
        environment: The user's own, which names some of these places.
    """
    home = environment.get("HOME", "")
    named = [environment.get(name, "") for name in ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK")]
    # What holds the home folder cannot be absent, and /tmp is hidden already.
    kept = [p for p in named if os.path.isabs(p) and not below(home, p) and not below(p, TMP)]
    return [*_RUN, *kept]


def needed(*, network: bool) -> list[str]:
    """Return what a mask over `sockets` must leave: NixOS's programs, and name servers."""
    return [*_SYSTEM, *([os.path.realpath(_NAMES)] if network else [])]


def below(path: str, folder: str) -> bool:
    """Return whether an absolute path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _depth(path: str, places: Iterable[str]) -> int:
    """Return how deep the deepest of the places lies that hold the path; -1 if none does."""
    return max((p.rstrip("/").count("/") for p in places if below(path, p)), default=-1)
