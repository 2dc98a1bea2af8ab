"""Seeded faults of frozen convolutions: panels of weights, layouts of images, loops over elements of windows."""

from __future__ import annotations

from mlc.tools.mutants.fault import Fault, rows

LAYOUTS, PANELS = "passes/assign_layouts.py", "passes/hoist_constants/panels.py"
NEST, MEMORY, TRANSPOSED = (f"passes/lower_kernel/{name}.py" for name in ("nest", "memory", "transposed"))
layout = rows("images", "assign_layouts")
pack = rows("images", "hoist_constants")
lower = rows("images", "loop_to_scf")

FAULTS: tuple[Fault, ...] = (
    layout(LAYOUTS, "restored = tensor.Transpose(argument, inverse(perm)).result",
           "restored = tensor.Transpose(argument, perm).result"),
    layout(LAYOUTS, "if [place[a] for a in old] != [*range(place[old[0]], place[old[0]] + len(old))]:", "if False:"),
    layout(LAYOUTS, "elif self.orders.get(v) != self.orders.get(argument):", "elif False:"),
    pack(PANELS, "tuple((i + 1, i) for i in range(terms))", "tuple((i + 1, i) for i in reversed(range(terms)))"),
    lower(NEST, "carried = self.repeat(d, first, head, 1, carried, body)",
          "carried = self.repeat(d, first, first, 1, carried, body)"),
    lower(NEST, "self.enter(d, origin + i, 1)\n                    inside", "self.enter(d, origin, 1)\n"
          "                    inside"),
    lower(MEMORY, "return arith.Select(low.spread(holds), x, zeros).result", "return x"),
    lower(TRANSPOSED, "for lane, row in enumerate(transposed([*parts, *[zeros] * (lanes - length)])):",
          "for lane, row in enumerate(transposed([*parts, *[zeros] * (lanes - length)])[::-1]):"),
)
