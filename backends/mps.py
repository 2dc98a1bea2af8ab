"""Metal Performance Shaders, which mlc generates no code for: programs that ask for them are told so."""


def is_available() -> bool:
    """Whether there is a device; always False."""
    return False


def is_built() -> bool:
    """Whether mlc generates code for it; always False."""
    return False
