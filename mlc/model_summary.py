"""`mlc.summary`: the layers of a model, the shapes of their outputs, and their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlc.frontend.arguments import coded, described
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.tree import flatten
from mlc.ir.diag import UserTypeError
from mlc.nn.module import Module

__all__ = ["Summary", "summary"]


@dataclass(frozen=True)
class Row:
    """A module: its name, class and depth, the shapes of the outputs of its first call, and its own parameters."""

    name: str
    kind: str
    depth: int
    shapes: tuple[tuple[int, ...], ...] | None
    parameters: int


@dataclass(frozen=True)
class Summary:
    """A table of the modules of a model, which prints itself.

    Args:
        rows: One for each module, a module before those it holds; a module that is used twice has one.
        total: Number of the elements of all parameters, shared ones once.
        trained: The number of those that require a gradient.
        size: Bytes of all parameters and buffers.

    Example:
        >>> mlc.summary(nn.Linear(2, 3)).total
        9
    """

    rows: tuple[Row, ...]
    total: int
    trained: int
    size: int

    def __str__(self) -> str:
        head = ("layer", "output", "parameters")
        table = [("  " * row.depth + (f"{row.name} ({row.kind})" if row.name else row.kind),
                  "" if row.shapes is None else ", ".join(str(list(s)) for s in row.shapes),
                  f"{row.parameters:,}" if row.parameters else "-") for row in self.rows]
        widths = [max(len(line[i]) for line in (head, *table)) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in (head, *table)]
        return "\n".join([lines[0], "-" * (sum(widths) + 4), *lines[1:], "-" * (sum(widths) + 4),
                          f"{self.total:,} parameters, {self.trained:,} of them trained; {_size(self.size)}"])

    __repr__ = __str__


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


@coded
def summary(model: Module, *example: Any, **keywords: Any) -> Summary:
    """Summarize the layers of a model.

    With example arguments, the model is called once, in evaluation and without gradients, and the shapes of the outputs
    are those of the first call of each layer.

    Args:
        model: Module.
        example: Arguments of a call, such as `mlc.zeros(1, 3, 32, 32)`; without any, it is not called.
        keywords: Keyword arguments of the call.

    Returns:
        A `Summary`, which prints as a table.

    Raises:
        UserTypeError: `model` is no module (MLC0797).

    Example:
        >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
        >>> mlc.summary(model, mlc.zeros(2, 1, 8, 8))
        layer          output        parameters
        ---------------------------------------
        Sequential     [2, 10]                -
          0 (Conv2d)   [2, 4, 6, 6]          40
          1 (ReLU)     [2, 4, 6, 6]           -
          2 (Flatten)  [2, 144]               -
          3 (Linear)   [2, 10]            1,450
        ---------------------------------------
        1,490 parameters, 1,490 of them trained; 6.0 kB
    """
    if not isinstance(model, Module):
        raise UserTypeError(f"mlc.summary takes a module, found {described(model)}", code="MLC0797", loc=user_loc(),
                            hint="mlc.summary(model, mlc.zeros(1, 3, 32, 32))")
    shapes = _output_shapes(model, example, keywords) if example or keywords else {}
    every = list(model.parameters())
    rows = tuple(Row(name.rpartition(".")[2], type(m).__name__, name.count(".") + bool(name), shapes.get(id(m)),
                     sum(p.numel() for p in m.parameters(recurse=False))) for name, m in model.named_modules())
    return Summary(rows, sum(p.numel() for p in every), sum(p.numel() for p in every if p.requires_grad),
                   sum(x.nbytes for x in (*every, *model.buffers())))


def _output_shapes(model: Module, example: tuple[Any, ...], keywords: dict[str, Any]) -> dict[int, Any]:
    """The shapes of the outputs of the first call of each module, by its id."""
    shapes: dict[int, tuple[tuple[int, ...], ...]] = {}

    def note(module: Module, args: Any, output: Any) -> None:
        shapes.setdefault(id(module), tuple(_shapes(output)))

    training = [(m, m.training) for m in model.modules()]
    handles = [m.register_forward_hook(note) for m, _ in training]
    try:
        with no_grad():
            model.eval()(*example, **keywords)
    finally:
        for handle in handles:
            handle.remove()
        for m, mode in training:
            m.training = mode
    return shapes


def _shapes(output: Any) -> Iterator[tuple[int, ...]]:
    return (tuple(x.shape) for x in flatten(output)[0] if isinstance(x, Tensor))
