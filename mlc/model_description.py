"""Descriptions of models that other programs write, as `mlc import` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelDescription:
    """A model of a file, in the words of its format.

    inputs       per input, its name and type
    outputs      per output the same
    parameters   per trained array the same
    constants    per other array the same
    operations   per operator, its name and how often it occurs
    unsupported  per operation that mlc does not run, where it is and why
    sizes        the numbers of elements of all parameters and of all constants, and the number of all operations
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    parameters: Sequence[str]
    constants: Sequence[str]
    operations: Sequence[str]
    unsupported: Sequence[str]
    sizes: tuple[int, int, int]

    def text(self) -> str:
        """The sections of the description, one line per entry."""
        parameters, constants, operations = self.sizes
        return "\n".join([
            *_section("inputs", self.inputs), *_section("outputs", self.outputs),
            *_section(f"parameters, {parameters} numbers", self.parameters),
            *_section(f"buffers and constants, {constants} numbers", self.constants),
            *_section(f"operations, {operations}", self.operations), *_section("not supported", self.unsupported)])


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """A title and indented lines; "none" if there are none."""
    indented = [f"  {line}" for line in lines]
    return [f"{title}:", *indented] if indented else [f"{title}: none"]
