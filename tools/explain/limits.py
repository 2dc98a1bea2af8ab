"""Limits of this machine, as `mlc bench` measures them too."""

from __future__ import annotations

import mlc
from mlc.tools.bench.roofline import copies, multiply_adds
from mlc.tools.explain.explanation import Limits


def measured() -> Limits:
    """The limits of this machine with the threads that compiled code uses."""
    threads = mlc.get_num_threads()
    return Limits(multiply_adds(threads)["f32"][1], copies(threads)["memory"][1], threads)
