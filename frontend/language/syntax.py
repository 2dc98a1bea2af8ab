"""The syntax tree. `at` is the location of a node's errors, an offset into the file's text; `depth` is its height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    at: int = 0
    depth: int = 1


# -- expressions ------------------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class Name(Node):
    """A variable, a definition, a size, or a function of the library."""

    name: str


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A number, a string, true, false or none; `...` in an index or among the sizes of a type."""

    value: object


@dataclass(slots=True, eq=False)
class Tuple(Node):
    """a, b; with `brackets`, [a, b]; `grouped` if it stands in parentheses"""

    items: Sequence[Node]
    brackets: bool = False
    grouped: bool = False


@dataclass(slots=True, eq=False)
class Comprehension(Node):
    """[value for target in source], which is unrolled"""

    value: Node
    target: Node
    source: Node


@dataclass(slots=True, eq=False)
class Lambda(Node):
    """x => value"""

    parameters: Sequence[Parameter]
    value: Node


@dataclass(slots=True, eq=False)
class Choice(Node):
    """value if condition else other"""

    value: Node
    condition: Node
    other: Node


@dataclass(slots=True, eq=False)
class Logical(Node):
    """a and b and c, or with `or`"""

    operator: str
    items: Sequence[Node]


@dataclass(slots=True, eq=False)
class Chain(Node):
    """Operators of one rank, from left to right: a + b - c. Each pair of `rest` is (operator, its place, operand)."""

    first: Node
    rest: Sequence[tuple[str, int, Node]]


@dataclass(slots=True, eq=False)
class Compared(Node):
    """a < b <= c, which is a < b and b <= c"""

    first: Node
    rest: Sequence[tuple[str, int, Node]]


@dataclass(slots=True, eq=False)
class Prefix(Node):
    """-x, +x, not x"""

    operator: str
    operand: Node


@dataclass(slots=True, eq=False)
class Range(Node):
    """first..last, without the last"""

    first: Node
    last: Node


@dataclass(slots=True, eq=False)
class Call(Node):
    function: Node
    arguments: Sequence[Node]
    keywords: Sequence[tuple[str, int, Node]]


@dataclass(slots=True, eq=False)
class Indexed(Node):
    """value[index, ...]; `alone` if the one index is no tuple"""

    value: Node
    indices: Sequence[Node]
    alone: bool


@dataclass(slots=True, eq=False)
class Slice(Node):
    parts: Sequence[Node | None]


@dataclass(slots=True, eq=False)
class Attribute(Node):
    value: Node
    name: str


@dataclass(slots=True, eq=False)
class Derivative(Node):
    """f', the derivative of f by its first argument"""

    function: Node


# -- types ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class TensorType(Node):
    """f32[B, 784]"""

    element: str
    shape: Sequence[Node]


@dataclass(slots=True, eq=False)
class NamedType(Node):
    """A model, Net or Net(10) or layers.Net(10); or an element type alone, for a number"""

    names: Sequence[str]
    arguments: Call | None = None


@dataclass(slots=True, eq=False)
class TupleType(Node):
    items: Sequence[Node]


@dataclass(slots=True, eq=False)
class LikeType(Node):
    """like x: the type of a value"""

    value: Node


# -- statements -------------------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class Parameter(Node):
    """x: type = default. A parameter without a type is a compile-time constant."""

    name: str
    type: Node | None = None
    default: Node | None = None


@dataclass(slots=True, eq=False)
class Evaluated(Node):
    """An expression alone on its line."""

    value: Node


@dataclass(slots=True, eq=False)
class Assigned(Node):
    """target = value; with `operator`, target = target operator value"""

    target: Node
    value: Node
    operator: str = ""


@dataclass(slots=True, eq=False)
class Declared(Node):
    """name: type = value, or in a model name: type ~ distribution"""

    name: str
    type: Node
    value: Node | None = None
    distribution: Node | None = None
    buffer: bool = False


@dataclass(slots=True, eq=False)
class Returned(Node):
    value: Node | None


@dataclass(slots=True, eq=False)
class Yielded(Node):
    value: Node


@dataclass(slots=True, eq=False)
class Asserted(Node):
    condition: Node
    message: str | None


@dataclass(slots=True, eq=False)
class If(Node):
    """An `elif` is an `if` alone in the `other` of the one above it."""

    condition: Node
    body: list[Node] = field(default_factory=list)
    other: list[Node] = field(default_factory=list)
    is_elif: bool = False


@dataclass(slots=True, eq=False)
class While(Node):
    condition: Node
    body: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class For(Node):
    """for target in source; `results` are the names of the stacked yielded values"""

    target: Node
    source: Node
    unrolled: bool = False
    results: Node | None = None
    body: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Broken(Node):
    """A line that could not be parsed; the names that it may have bound are not reported as unknown."""

    names: Sequence[str] = ()
    body: list[Node] = field(default_factory=list)


# -- definitions ------------------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class Function(Node):
    name: str
    parameters: Sequence[Parameter]
    result: Node | None
    body: list[Node] = field(default_factory=list)
    doc: str | None = None


@dataclass(slots=True, eq=False)
class Model(Node):
    """Its body holds declarations of parameters, layers (`name = value`), and functions."""

    name: str
    parameters: Sequence[Parameter]
    body: list[Node] = field(default_factory=list)
    doc: str | None = None


@dataclass(slots=True, eq=False)
class Import(Node):
    """import "file" as name, or with `names` from "file" import names"""

    file: str
    name: str
    names: Sequence[tuple[str, int]] = ()
    file_at: int = 0


@dataclass(slots=True, eq=False)
class File(Node):
    body: list[Node] = field(default_factory=list)
    doc: str | None = None


# -- how lines become blocks ------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class Else(Node):
    """`elif condition:` or `else:`, before it is joined to the `if` above it."""

    condition: Node | None
    body: list[Node] = field(default_factory=list)


def take_doc(body: list[Node]) -> str | None:
    """Remove the docstring from a block."""
    first = body[0] if body else None
    if isinstance(first, Evaluated) and isinstance(first.value, Literal) and isinstance(first.value.value, str):
        del body[0]
        return first.value.value
    return None
