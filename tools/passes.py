"""mlc passes: every pass with the form it takes and gives, and the order in which they run with the reasons."""

from __future__ import annotations

import argparse
import inspect

from mlc.ir.machine import Machine
from mlc.ir.pass_options import text_of
from mlc.ir.passes import Pass, find_pass, pass_names
from mlc.passes import pipeline
from mlc.tools import layout, report

EXAMPLES = """examples:
  mlc passes
  mlc passes fuse
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("passes", "List the passes, and the order in which they run.", EXAMPLES)
    p.add_argument("name", nargs="?", help="say more about this one")
    return p


def main(options: argparse.Namespace) -> int:
    print(one(options.name) if options.name else everything())
    return 0


def everything() -> str:
    rows: list[tuple[str, ...]] = [("pass", "takes", "gives", "")]
    for name in pass_names():
        transform = find_pass(name)
        rows.append((signature(transform), form(transform.takes), form(transform.gives), transform.summary))
    width = layout.page_width()
    lines = layout.table(rows, width)
    for machine, order in pipeline.ORDERS.items():
        lines += ["", f"order for a {machine.upper()} (a reason per row)"]
        lines += ["  " + line for line in layout.table([(str(n), level, text, why) for n, (level, text, why) in
                                                        enumerate(order, 1)], width - 2)]
    lines += ["", "checked when the order is loaded"]
    for earlier, later, why in pipeline.BEFORE:
        first, *more = layout.wrapped(f"{earlier} before {later}: {why}", width - 4)
        lines += ["  " + first, *("    " + line for line in more)]
    return "\n".join(lines)


def one(name: str) -> str:
    """The documentation of a pass, from its module."""
    transform = find_pass(name)
    lines = [signature(transform), "", inspect.cleandoc(inspect.getmodule(transform.run).__doc__ or ""), ""]
    for parameter in options_of(transform):
        if isinstance(parameter.default, Machine):
            lines += [f"option {parameter.name} = {name}:{v}" for name, v in parameter.default.figures().items()]
        else:
            lines.append(f"option {parameter.name} = {_text(parameter.default)}")
    places = [f"{n}. {text}: {why}" for order in pipeline.ORDERS.values()
              for n, (_, text, why) in enumerate(order, 1) if text.split("{")[0] == transform.name]
    places = list(dict.fromkeys(places))
    lines += ["runs as"] + ["  " + p for p in places] if places else ["not part of the order; ask for it with -p"]
    return "\n".join(lines)


def options_of(transform: Pass) -> list[inspect.Parameter]:
    return list(inspect.signature(transform.run).parameters.values())[1:]


def signature(transform: Pass) -> str:
    """`fuse{max_ops=96}`."""
    options = ",".join(f"{p.name}={_text(p.default)}" for p in options_of(transform))
    return transform.name + (f"{{{options}}}" if options else "")


def _text(value: object) -> str:
    if isinstance(value, Machine):
        return "FIGURE:N"
    return text_of(value)


def form(form: object) -> str:
    return getattr(form, "name", "any") if form is not None else "any"
