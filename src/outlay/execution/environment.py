"""The environment of a job's commands, by allow-list: keys and tokens never pass by accident."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

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
