"""PyTorch's switches of a kernel library that mlc does not use: they may be set, and change nothing."""

enabled = False
"""Whether kernels of the library are used; they are not."""
benchmark = False
"""Whether the fastest of several kernels would be found by trying them."""
deterministic = True
"""Whether results are the same in every run; those of mlc are."""
allow_tf32 = False
"""Whether float32 may be rounded to TF32; it is not."""


def is_available() -> bool:
    """Whether the library is there; always False."""
    return False


def version() -> None:
    """Its version; there is none."""
