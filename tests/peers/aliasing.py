"""Random programs of views, writes and reads, run under PyTorch and under mlc.

    python -m tests.peers.aliasing --programs 2000 --seed 0 [--compiled]

A program is made statement by statement: what PyTorch refuses is left out. Then mlc runs it, eagerly or in a compiled
function, and every tensor, every flag and every gradient has to agree. In compiled functions there are writes in
branches and loops that depend on tensors, too.
"""

from __future__ import annotations

import argparse
import linecache
import random
import textwrap
from collections import Counter
from typing import Any

import numpy as np
import torch

import mlc

Statement = str


REFUSED = ("MLC0752", "MLC0756", "MLC0757")
"""Codes of what mlc refuses and PyTorch allows: writes to expanded tensors, and, recorded, to detached ones, to windows
and to what may be a copy."""


class Program:
    """Statements on the tensors `v`, grown at random under PyTorch."""

    def __init__(self, seed: int, length: int, compiled: bool = False) -> None:
        self.choose = random.Random(seed)
        self.compiled = compiled
        self.refused: str | None = None                    # the code, if mlc refuses it
        self.statements: list[Statement] = []
        self.state = names(torch, *arguments(torch))
        self.leaf = self.state["v"][0]
        self.add("v.append(v[0] * 1.5)")
        for _ in range(length):
            self.add(self.statement())
        self.add("loss = sum((x * x * 0.01).sum() for x in v if x.is_floating_point())")

    def add(self, statement: Statement) -> None:
        """Append a statement, unless there is none or PyTorch refuses it."""
        if not statement:
            return
        before = len(self.state["v"])
        try:
            with torch.no_grad() if statement.startswith("#") else torch.enable_grad():
                exec(statement.removeprefix("#"), self.state)  # noqa: S102
        except (RuntimeError, IndexError, TypeError):
            del self.state["v"][before:]
            if "\n" in statement:                          # the first part of which may have run
                self.state = names(torch, *arguments(torch))
                self.leaf = self.state["v"][0]
                for known in self.statements:
                    exec(known, self.state)  # noqa: S102
            return
        self.statements.append(statement)

    def statement(self) -> Statement:
        """A random statement: a view, a write or a read."""
        v: list[Any] = self.state["v"]
        i = self.choose.randrange(len(v))
        if self.compiled and self.choose.random() < 0.2:
            return self.construct()
        kind = self.choose.choice((self.view, self.view, self.write, self.write, self.read))
        made = kind(i, v[i])
        if self.compiled:                                  # without what asks for elements, or for a history
            unsuited = [".data", "detach_", *(["][v["] if made.startswith("v.append") else [])]
            return "" if any(x in made for x in unsuited) else made
        base = v[i] if v[i]._base is None else v[i]._base
        # PyTorch's views of no_grad become recorded later, and those of a leaf that is written to may lose gradients.
        unrecorded = kind != self.view and not (base.is_leaf and base.requires_grad) and self.choose.random() < 0.2
        return ("#" if unrecorded else "") + made

    def construct(self) -> Statement:
        """A random branch or loop of writes, whose condition depends on a tensor."""
        c, v = self.choose, self.state["v"]
        i, j, k = (c.randrange(len(v)) for _ in range(3))
        head = c.choice([f"if v[{i}].sum() > v[{j}].sum():", f"if v[{i}].sum() > {c.randrange(-9, 9)}:",
                         f"for t in range((v[{i}].sum() > v[{j}].sum()) + {c.randrange(3)}):",
                         f"n = v[{i}].sum() * 0\nwhile n < {c.randrange(4)}:\n    n = n + 1"])
        body = [self.part(head) for _ in range(c.randrange(1, 4))]
        if head.startswith("for") and v[k].ndim:           # PyTorch would not notice where there is no turn
            body += [f"v[{k}][t] = t"] * c.randrange(2)
        rest = [self.part(head) for _ in range(c.randrange(3))] if head.startswith("if") else []
        made = "\n".join([head, *(textwrap.indent(x, "    ") for x in body), *(["else:"] if rest else []), *(
            textwrap.indent(x, "    ") for x in rest)])
        return "" if any(x in made for x in (".data", "detach_", "detach()", "] += v", "] -= ")) else made

    def part(self, around: Statement) -> Statement:
        """A statement of a branch or loop: a write, or now and then a branch."""
        v = self.state["v"]
        i = self.choose.randrange(len(v))
        made = self.write(i, v[i])
        try:                                               # it may be in the branch that PyTorch does not take
            exec(made, names(torch, *(x.detach().clone() for x in v)))  # noqa: S102
        except (RuntimeError, IndexError, TypeError):
            made = "pass"
        if "n < " in around or self.choose.random() < 0.8:
            return made
        return f"if v[{i}].sum() > {self.choose.randrange(-9, 9)}:\n    {made}"

    def view(self, i: int, x: Any) -> Statement:
        c, n = self.choose, x.ndim
        d, e = (c.randrange(n), c.randrange(n)) if n else (0, 0)
        size = x.shape[d] if n else 1
        k = c.randrange(size) if size else 0
        made = c.choice([
            f"v[{i}][{k}]", f"v[{i}][..., {c.randrange(3)}:]", f"v[{i}][::2]", f"v[{i}][:, None]", f"v[{i}].t()",
            f"v[{i}].transpose({d}, {e})", f"v[{i}].reshape(-1)", f"v[{i}].view(-1)", f"v[{i}].flatten()",
            f"v[{i}].unsqueeze({d})", f"v[{i}].squeeze()", f"v[{i}].select({d}, {k})",
            f"v[{i}].narrow({d}, {k}, {max(1, size - k - 1)})", f"v[{i}].diagonal()", f"v[{i}].detach()",
            f"v[{i}].unbind({d})[{k}]", f"v[{i}].chunk(2, {d})[0]", f"v[{i}].split(2, {d})[-1]",
            f"v[{i}].expand(2, *v[{i}].shape)", f"v[{i}].view(2, -1)", f"v[{i}].permute({list(range(n))[::-1]})",
            f"v[{i}].movedim({d}, {e})", f"v[{i}].unfold({d}, 2, 2)", f"v[{i}].data", f"v[{i}].contiguous()",
            f"v[{i}].T" if n == 2 else f"v[{i}].ravel()"])
        return f"v.append({made})"

    def write(self, i: int, x: Any) -> Statement:
        c, v = self.choose, self.state["v"]
        fitting = [j for j, y in enumerate(v) if y.shape == x.shape and y.dtype == x.dtype] or [i]
        j, k = c.choice(fitting), c.randrange(x.shape[0]) if x.ndim and x.shape[0] else 0
        number = c.randrange(-3, 4)
        alone = not any(y._base is x for y in v)           # else PyTorch's views lose their history once it is read
        return c.choice([
            f"v[{i}].add_({number})", f"v[{i}].mul_({number})", f"v[{i}].add_(v[{j}])", f"v[{i}].mul_(v[{j}])",
            f"v[{i}].copy_(v[{j}])", f"v[{i}].zero_()", f"v[{i}].fill_({number})", f"v[{i}][{k}] = {number}",
            f"v[{i}][{k}] = v[{j}][{k}]", f"v[{i}] += v[{j}]", f"v[{i}] -= {number}",
            f"v[{i}][v[{i}] > 2] = {number}" if x.ndim else f"v[{i}].abs_()",
            f"v[{i}][[0, {k}]] = {number}", f"v[{i}][[{k}]] *= 2", f"v[{i}][1:] = v[{j}][:-1] * 2",
            f"v[{i}].clamp_(-2, 9)", f"v[{i}].masked_fill_(v[{i}] < 0, {number})", f"v[{i}].sub_(v[{j}], alpha=2)",
            f"v[{i}].neg_()", f"v[{i}].detach_()" if alone else f"v[{i}].neg_()",
            f"v[{i}].relu_()" if x.requires_grad else f"v[{i}].data.add_(1)", f"v[{i}][...] = {number}",
            f"v[{i}].sigmoid_()" if x.requires_grad else f"torch.add(v[{j}].detach(), 1, out=v[{i}].detach())",
            f"v[{i}][:, {k}] = {number}", f"v[{i}].index_fill_(0, torch.tensor([{k}]), {number})", f"v[{i}].tanh_()"])

    def read(self, i: int, x: Any) -> Statement:
        c, v = self.choose, self.state["v"]
        fitting = [j for j, y in enumerate(v) if y.shape == x.shape] or [i]
        made = c.choice([f"v[{i}] * v[{c.choice(fitting)}]", f"v[{i}] + 1", f"v[{i}].sin()", f"v[{i}].clone()",
                         f"v[{i}].sum(-1)",
                         f"v[{i}][v[{i}] > 0]" if x.ndim else f"-v[{i}]",
                         f"torch.stack([v[{i}], v[{c.choice(fitting)}]])"])
        return f"v.append({made})"


def arguments(library: Any) -> list[Any]:
    """The tensors that a program begins with."""
    leaf = library.arange(12.0).reshape(3, 4).clone().requires_grad_()
    return [leaf, library.arange(12.0).view(4, 3) - 5, library.arange(6)]


def names(library: Any, *tensors: Any) -> dict[str, Any]:
    return {"torch": library, "v": [*tensors], "loss": None}


def run(statements: list[Statement]) -> dict[str, Any]:
    """Values of the names after the statements."""
    state = names(mlc, *arguments(mlc))
    for statement in statements:
        with mlc.no_grad() if statement.startswith("#") else mlc.enable_grad():
            exec(statement.removeprefix("#"), state)  # noqa: S102
    return state


def run_compiled(statements: list[Statement]) -> dict[str, Any]:
    """The same in a compiled function of the tensors that it begins with, and its gradient by `mlc.grad`."""
    program = function(statements)
    given = [mlc.tensor(x.detach().numpy()) for x in arguments(mlc)]
    v, loss = mlc.compile(program)(*given)
    if loss is None:
        return {"v": v, "loss": None}
    a, b, c = (mlc.tensor(x.detach().numpy()) for x in arguments(mlc))
    gradient = mlc.compile(mlc.grad(lambda a: program(a * 1, b * 1, c * 1)[1]))(a)
    return {"v": v, "loss": loss, "gradient": gradient, "given": given}


def function(statements: list[Statement]) -> Any:
    """A function of these statements, which has a source."""
    body = ["v, loss = list(tensors), None", *statements, "return v, loss"]
    source = "def program(*tensors):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
    name = f"<program {len(linecache.cache)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    found: dict[str, Any] = {"torch": mlc}
    exec(compile(source, name, "exec"), found)  # noqa: S102
    return found["program"]


def difference(program: Program) -> str | None:
    """How mlc's run of a program differs from PyTorch's; None if it does not."""
    wanted, compiled = program.state, program.compiled
    try:
        found = (run_compiled if compiled else run)(program.statements)
    except mlc.Error as error:
        program.refused = error.code if error.code in REFUSED else None
        return None if program.refused else str(error)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    for i, (a, b) in enumerate(zip(found["v"], wanted["v"])):
        if a.requires_grad != b.requires_grad and not compiled:
            return f"v[{i}].requires_grad: {a.requires_grad}, PyTorch {b.requires_grad}"
        if problem := unequal(a, b):
            return f"v[{i}]: {problem}"
    if wanted["loss"] is None or not wanted["loss"].requires_grad:
        return None
    try:
        wanted["loss"].backward()
    except RuntimeError:
        return None                                        # an operand was changed, which mlc keeps
    if not compiled:
        found["loss"].backward()
    a, b = found["gradient"] if compiled else found["v"][0].grad, program.leaf.grad
    if (a is None) != (b is None) and not compiled:
        return f"gradient {a}, PyTorch {b}"
    problem = None if a is None or b is None else unequal(a, b)
    if not problem or differentiates_overwritten(program) or unequal(a, gradient_with_looks(program)) is None:
        return None
    return f"gradient: {problem}"


def gradient_with_looks(program: Program) -> Any:
    """PyTorch's gradient where every history is looked at after each statement. PyTorch brings the history of a view up
    to date when it is looked at: if its base is detached in between, what was written before is lost."""
    state = names(torch, *arguments(torch))
    leaf = state["v"][0]
    for statement in program.statements:
        with torch.no_grad() if statement.startswith("#") else torch.enable_grad():
            exec(statement.removeprefix("#"), state)  # noqa: S102
        for x in state["v"]:
            _ = x.grad_fn
    state["loss"].backward()
    return leaf.grad


def differentiates_overwritten(program: Program) -> bool:
    """Whether PyTorch's gradient is of operands that were overwritten, which it does not notice through `.data`: with
    `.detach()` in its place it refuses the program. mlc has kept the operands."""
    state = names(torch, *arguments(torch))
    try:
        for statement in program.statements:
            with torch.no_grad() if statement.startswith("#") else torch.enable_grad():
                exec(statement.removeprefix("#").replace(".data", ".detach()"), state)  # noqa: S102
        state["loss"].backward()
    except RuntimeError as error:
        return any(".data" in s for s in program.statements) and "modified by an inplace operation" in str(error)
    return False


def unequal(a: Any, b: Any) -> str | None:
    x, y = np.asarray(a.detach().numpy()), b.detach().numpy()
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"{x.dtype}{list(x.shape)}, PyTorch {y.dtype}{list(y.shape)}"
    return None if np.allclose(x, y, 1e-4, 1e-4, equal_nan=True) else f"\n{x}\nPyTorch\n{y}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    failed, refused = 0, Counter[str]()
    for seed in range(options.seed, options.seed + options.programs):
        program = Program(seed, options.length, options.compiled)
        if problem := difference(program):
            failed += 1
            print(f"-- seed {seed}: {problem}\n   " + "\n   ".join(program.statements), flush=True)
        elif program.refused:
            refused[program.refused] += 1
    print(f"{options.programs} programs, {failed} differ, {refused.total()} are refused",
          ", ".join(f"{code}: {n}" for code, n in sorted(refused.items())))


if __name__ == "__main__":
    main()
