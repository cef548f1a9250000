"""The environment of a job's commands, by allow-list: keys and tokens never pass by accident."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "LANG", "LANGUAGE", "LC_*", "TMPDIR"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONUNBUFFERED"),
    *("PYTHONUTF8", "PYTHONIOENCODING", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"),
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
)
"""Names, with `*`, that pass from the user's environment."""

THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "RAYON_NUM_THREADS",
)


VENV = ".venv"
"""The folder beside a program with the packages that are installed for it."""


def has_packages(workspace: str | os.PathLike[str]) -> bool:
    """Return whether the workspace has an environment of its own in `VENV`."""
    return Path(workspace, VENV, "pyvenv.cfg").is_file()


def for_uv(workspace: str | os.PathLike[str]) -> dict[str, str]:
    """Return what makes `uv run` use the packages that are installed, and write nothing.

    A job has no network, and cannot write uv's cache. The environment is the workspace's own, else
    the one that Outlay runs in.
    """
    own = os.path.join(workspace, VENV) if has_packages(workspace) else sys.prefix
    return {"UV_NO_SYNC": "1", "UV_NO_CACHE": "1", "UV_PROJECT_ENVIRONMENT": own}


def threads(workers: int) -> int:
    """Return the threads that each of so many workers may use: cores / workers, at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // max(1, workers))


def child_environment(allow: tuple[str, ...], threads: int) -> dict[str, str]:
    """Return the complete environment for a job's commands.

    Args:
        allow: Further names that may pass, with `*`.
        threads: What the BLAS and OpenMP libraries are told.
    """
    names = (*ALLOWED, *allow)
    passed = {
        key: value
        for key, value in os.environ.items()
        if any(fnmatchcase(key, name) for name in names)
    }
    return passed | dict.fromkeys(THREADS, str(threads))
