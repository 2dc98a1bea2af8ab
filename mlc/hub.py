"""PyTorch's `torch.hub` on local folders: models that a folder's `hubconf.py` makes.

A `hubconf.py` is a Python file whose public functions, its entry points, return models. It is run as a part of the
program, so load only folders that you trust; no connection is opened (MLC0794).

Example:
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def line(n):\\n    from mlc import nn\\n    return nn.Linear(n, 1)\\n")
    >>> mlc.hub.load(folder, "line", 3, source="local")
    Linear(in_features=3, out_features=1, bias=True)
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

__all__ = ["help", "list", "load", "load_state_dict_from_url"]

_CONF = "hubconf.py"


@coded
def load(repo_or_dir: str | os.PathLike[str], model: str, *args: Any, source: str = "github",
         trust_repo: Any = None, force_reload: bool = False, verbose: bool = True, skip_validation: bool = False,
         **kwargs: Any) -> Any:
    """Call an entry point of the `hubconf.py` of a folder, which is run as a part of the program.

    Args:
        repo_or_dir: The folder.
        model: Name of the entry point, a function of `hubconf.py`.
        args: Its arguments.
        source: "local"; mlc opens no connection.
        trust_repo: Accepted for PyTorch's sake.
        force_reload: Accepted for PyTorch's sake; the file is always read.
        verbose: Accepted for PyTorch's sake.
        skip_validation: Accepted for PyTorch's sake.
        kwargs: Its keyword arguments.

    Returns:
        What the entry point returns, such as a module with its weights.

    Raises:
        UserError: The source is not local, the folder has no `hubconf.py`, a package that it lists in `dependencies` is
            missing, or it has no such entry point (MLC0794).

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("import mlc\\ndef small(n=2): return mlc.nn.Linear(n, n)")
        >>> mlc.hub.load(folder, "small", n=3, source="local")
        Linear(in_features=3, out_features=3, bias=True)
    """
    with _HubConf(repo_or_dir, source) as conf:
        return _entry(conf, model)(*args, **kwargs)


@coded
def list(github: str | os.PathLike[str], force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None, verbose: bool = True, *, source: str = "local") -> Any:
    """List the entry points of a folder.

    Args:
        github: The folder; PyTorch's name is kept.
        force_reload: Accepted for PyTorch's sake.
        skip_validation: Accepted for PyTorch's sake.
        trust_repo: Accepted for PyTorch's sake.
        verbose: Accepted for PyTorch's sake.
        source: "local".

    Returns:
        List of the names of the functions of `hubconf.py` that do not begin with an underscore.

    Raises:
        UserError: The folder cannot be used (MLC0794).

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def small(): ...\\ndef _own(): ...")
        >>> mlc.hub.list(folder)
        ['small']
    """
    with _HubConf(github, source) as conf:
        return _names(conf)


@coded
def help(github: str | os.PathLike[str], model: str, force_reload: bool = False,
         skip_validation: bool = False, trust_repo: Any = None, *, source: str = "local") -> str | None:
    """Get the documentation of an entry point.

    Args:
        github: The folder; PyTorch's name is kept.
        model: Name of the entry point.
        force_reload: Accepted for PyTorch's sake.
        skip_validation: Accepted for PyTorch's sake.
        trust_repo: Accepted for PyTorch's sake.
        source: "local".

    Returns:
        Its docstring; None if it has none.

    Raises:
        UserError: The folder cannot be used, or has no such entry point (MLC0794).

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def small():\\n    'A small model.'")
        >>> mlc.hub.help(folder, "small")
        'A small model.'
    """
    with _HubConf(github, source) as conf:
        return _entry(conf, model).__doc__


@coded
def load_state_dict_from_url(url: str, *args: Any, **keywords: Any) -> Any:
    """Refuse to download a file.

    Args:
        url: The address.
        args: Whatever else PyTorch takes.
        keywords: Whatever else PyTorch takes.

    Returns:
        Nothing: it always raises.

    Raises:
        UserError: Always (MLC0794).

    Example:
        >>> try:
        ...     mlc.hub.load_state_dict_from_url("https://example.org/resnet.pth")
        ... except mlc.UserError as error:
        ...     print(error.code)
        MLC0794
    """
    raise _refusal(f"mlc downloads nothing, and {url!r} is an address", "download it, and read the file: mlc.load")


def _refusal(message: str, hint: str = "") -> UserError:
    return UserError(message, code="MLC0794", loc=user_loc(), hint=hint)


class _HubConf:
    """The module of a folder, which is on the import path within a `with` statement."""

    def __init__(self, folder: str | os.PathLike[str], source: str) -> None:
        if source != "local":
            raise _refusal(f"source = {source!r}, and mlc downloads nothing",
                           'clone the repository, and pass its folder with source="local"')
        self._folder = Path(folder)
        if not (self._folder / _CONF).is_file():
            raise _refusal(f"{folder} is no folder with a {_CONF}", "pass the folder that the repository was cloned to")

    def __enter__(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("hubconf", self._folder / _CONF)
        assert spec is not None and spec.loader is not None
        conf = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(self._folder))
        try:
            spec.loader.exec_module(conf)
            missing = [name for name in getattr(conf, "dependencies", ()) if importlib.util.find_spec(name) is None]
            if missing:
                raise _refusal(f"{self._folder / _CONF} needs the package {missing[0]}",
                               f"pip install {' '.join(missing)}")
        except BaseException:
            self.__exit__()
            raise
        return conf

    def __exit__(self, *error: object) -> None:
        sys.path.remove(str(self._folder))


def _names(conf: ModuleType) -> Any:
    return [name for name, x in vars(conf).items() if callable(x) and not name.startswith("_")]


def _entry(conf: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(conf, str(name), None)
    if not callable(found):
        raise _refusal(f"{_CONF} has no entry point {name!r}", f"it has {', '.join(_names(conf)) or 'none'}")
    return found  # type: ignore[no-any-return]
