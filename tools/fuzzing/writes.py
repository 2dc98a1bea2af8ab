"""Random Python programs that write: at indices and under masks, to views, in one branch or both, and in loops.

They run as other Python programs do: eagerly, compiled, in PyTorch, and differentiated. The positions that a statement
writes to differ, as PyTorch does not say which of two writes to one element is the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.tools.fuzzing.python_programs import PythonProgram, Writer, drawn_array, swapped

IN_PLACE = ("add_", "mul_", "sub_", "copy_")


class WritesWriter(Writer):
    """Generates a program of few operations and many writes."""

    def statement(self) -> None:
        rng, x = self.rng, self.pick()
        if rng.random() < 0.2 or not self.shapes[x]:
            self.new(*self.elementwise(x))
            return
        rng.choice((self.put, self.put, self.taken, self.through_view, self.write, self.in_branches, self.in_branches,
                    self.row_by_row, self.along))(x)

    def own(self, x: str) -> str:
        """A tensor that may be written to: a new one, or one that is there, and perhaps a view of another."""
        mine = [y for y, shape in self.shapes.items() if shape == self.shapes[x] and y.startswith("v")]
        return self.rng.choice(mine) if mine and self.rng.random() < 0.3 else super().own(x)

    def key(self, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """A subscript, and the shape of what it picks, as numpy has it."""
        rng, parts = self.rng, list[tuple[str, Any]]()
        count, plain = rng.randint(1, max(1, min(shape))), rng.random() < 0.4
        for n in shape[: len(shape) if plain else rng.randint(1, len(shape))]:
            a, b = sorted((rng.randint(0, n), rng.randint(0, n)))
            step, row = rng.choice((1, 1, 2, 3)), rng.sample(range(n), min(count, n))
            ways: list[tuple[str, Any]] = [(":", slice(None)), (f"T.tensor({row})", np.array(row))]
            if n and not plain:
                at = rng.randrange(-n, n)
                ways += [(f"{a}:{b}:{step}", slice(a, b, step)), (f"{at}", at)]
            parts.append(rng.choice(ways if n else ways[:1]))
        lengths = {len(part) for _, part in parts if isinstance(part, np.ndarray)}
        if len(lengths) > 1:
            return self.key(shape)
        picked = np.empty(shape)[tuple(part for _, part in parts)].shape
        return ", ".join(text for text, _ in parts), picked

    def value(self, shape: tuple[int, ...]) -> str:
        """Elements of a shape, all of them others."""
        rng, many = self.rng, int(np.prod(shape))
        numbers = f"T.arange({many}, dtype=T.float64).reshape({shape}) * {rng.choice(('0.1', '-0.2'))}"
        return rng.choice((numbers, f"T.tanh({self.fitting(shape)}) + {numbers}", self.fitting(shape)))

    def put(self, x: str) -> None:
        y = self.own(x)
        key, picked = self.key(self.shapes[y])
        if self.rng.random() < 0.25:
            self.say(f"{y}[{key}] {self.rng.choice('+*')}= {self.value(picked)}")
        else:
            self.say(f"{y}[{key}] = {self.value(picked)}")

    def taken(self, x: str) -> None:
        key, picked = self.key(self.shapes[x])
        self.new(f"{x}[{key}] * 1.5", picked)

    def through_view(self, x: str) -> None:
        """A view that stays, or a view of a view, and a write to one of the tensors."""
        rng, y = self.rng, self.own(x)
        view, shape = y, self.shapes[y]
        for _ in range(rng.randint(1, 2)):
            d = rng.randrange(len(shape))
            n, way = shape[d], rng.random()
            if way < 0.4 and n:
                at = rng.randrange(n)
                view, shape = self.new(f"{view}.narrow({d}, {at}, {n - at})", (*shape[:d], n - at, *shape[d + 1:])
                                       ), (*shape[:d], n - at, *shape[d + 1:])
            elif way < 0.7:
                shape = tuple(swapped(shape, d))
                view = self.new(f"{view}.transpose({d}, -1)", shape)
            elif len(shape) > 1 and n:
                shape, view = (*shape[:d], *shape[d + 1:]), self.new(f"{view}.select({d}, {n - 1})",
                                                                     (*shape[:d], *shape[d + 1:]))
        self.say(f"{rng.choice((view, view, y))}.mul_({rng.choice(('2', '-0.5'))})")
        self.say(f"{view}.{rng.choice(IN_PLACE)}({self.value(shape)})")

    def simple(self, y: str) -> None:
        """One write to a tensor, within a block."""
        rng, shape = self.rng, self.shapes[y]
        key, picked = self.key(shape)
        self.say(rng.choice((f"{y}.{rng.choice(IN_PLACE)}({self.fitting(shape)})", f"{y}[{key}] = {self.value(picked)}",
                             f"{y}.masked_fill_({y} > 0.3, 0.25)", f"{y}.copy_({rng.choice(UNARY_OF).format(x=y)})")))

    def in_branches(self, x: str) -> None:
        """Writes in the first branch, in the second, or in both, to a tensor or to one of which it is a view."""
        rng, y = self.rng, self.own(x)
        others = [z for z in self.shapes if z.startswith("v") and self.shapes[z]]
        written = rng.choice(((True, False), (False, True), (True, True)))
        self.say(f"if T.sum({self.pick()}) > {rng.choice((0, 0.5, -1))}:")
        for first, writes in zip(("", "else:"), written):
            if first:
                self.say(first)
            self.depth += 1
            if writes:
                self.simple(rng.choice((y, y, *others)))
            else:
                self.say("pass")
            self.depth -= 1

    def row_by_row(self, x: str) -> None:
        rng, y = self.rng, self.own(x)
        n = self.shapes[y][0]
        i = f"i{len(self.lines)}"
        self.say(f"for {i} in range({rng.randint(0, 1)}, {n}):")
        self.depth += 1
        self.say(rng.choice((f"{y}[{i}] = {y}[{i} - 1] * 0.5", f"{y}[{i}].add_({i})", f"{y}[-{i} - 1] *= 0.5")))
        self.depth -= 1

    def along(self, x: str) -> None:
        """A write by a method that takes indices, or a mask, along a dimension."""
        rng, y = self.rng, self.own(x)
        shape = self.shapes[y]
        d = rng.randrange(len(shape))
        if not shape[d]:
            return
        row = rng.sample(range(shape[d]), rng.randint(1, shape[d]))
        part = (*shape[:d], len(row), *shape[d + 1:])
        numbers = f"T.arange({int(np.prod(part))}, dtype=T.float64).reshape({part})"
        again = [rng.randrange(shape[d]) for _ in row]
        self.say(rng.choice((
            f"{y}.index_copy_({d}, T.tensor({row}), {numbers})", f"{y}.index_fill_({d}, T.tensor({row}), -0.5)",
            f"{y}.index_add_({d}, T.tensor({again}), {numbers}, alpha=0.5)",
            f"{y}.masked_fill_(({y} > 0.2) & ({y} < 0.9), 0.75)",
            f"{y}[{y} < 0] = {rng.choice(('0.125', '-2.0'))}")))


UNARY_OF = ("T.tanh({x})", "{x} * {x}", "{x}.flip(0)", "T.where({x} > 0, {x}, 0.5 * {x})")


def generate(seed: int) -> PythonProgram:
    """The program of a seed, and its arguments."""
    writer, numbers = WritesWriter(seed), np.random.default_rng(seed)
    rng, arrays = writer.rng, list[Any]()
    for i in range(rng.randint(1, 2)):
        shape = tuple(rng.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(rng.choice((1, 2, 3, 4, 4))))
        writer.shapes[f"x{i}"] = shape
        arrays.append(drawn_array(numbers, shape, rng, smooth=True))
    parameters = ", ".join(writer.shapes)
    for _ in range(rng.randint(2, 6)):
        writer.statement()
    names = [name for name in writer.shapes if name.startswith("v")] or ["x0"]
    return PythonProgram(seed, parameters, tuple(writer.lines), tuple(names[-4:]), tuple(arrays), True)
