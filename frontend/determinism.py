"""PyTorch's switch for algorithms whose results are the same in every run: those of mlc are, whatever it says."""

from __future__ import annotations

from mlc.frontend.arguments import coded

_asked = {"enabled": False, "warn_only": False}


@coded
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in every run, which those of mlc are anyway.

    Args:
        mode: What `are_deterministic_algorithms_enabled` says from then on.
        warn_only: Whether other operations would be warned about; there are none.

    Example:
        >>> mlc.use_deterministic_algorithms(True)
        >>> mlc.are_deterministic_algorithms_enabled()
        True
        >>> mlc.use_deterministic_algorithms(False)
    """
    _asked.update(enabled=bool(mode), warn_only=bool(warn_only))


@coded
def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` has been called with True.

    Returns:
        A bool. Results are the same in every run either way.

    Example:
        >>> mlc.are_deterministic_algorithms_enabled()
        False
    """
    return _asked["enabled"]


@coded
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` has been called with `warn_only`.

    Returns:
        A bool.

    Example:
        >>> mlc.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _asked["warn_only"]
