"""The pretty forms of operations.

Most are a list of operands and of attributes by name, `name %a, %b, dims = [0] {...} : types`; the names that the
pretty form abbreviates are in `NAMES`, and operations with a syntax of their own in `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.syntax import SYNTAX, ArrayType, Operation, Region, ValueType
from mlc.ir.lexer import Token
from mlc.ir.literals import symbol, unquote
from mlc.ir.types import i1

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.reader import Reader

NAMES: dict[str, dict[str, str]] = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.set_dimension_size": {"dim": "dimension"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.dot": {"precision": "precision_config"},
    "chlo.broadcast_compare": {},
}
"""Per operation, the attributes whose names the pretty form abbreviates."""
LITERALS = frozenset({"dense", "array", "dense_resource", "sparse", "true", "false", "tensor", "unit", "affine_map"})
"""Words that begin an attribute, in place of being an enumeration's."""
OF_RESULT = frozenset({"stablehlo.constant", "stablehlo.iota", "stablehlo.create_token", "stablehlo.uniform_quantize"})
"""Operations whose one type is that of the result, and which have no operand."""


def read(reader: Reader, name: str, token: Token) -> Operation:
    """An operation in pretty form, behind its name."""
    special = FORMS.get(name)
    if special is not None and not (name == "stablehlo.reduce" and not reader.at("(")):
        return special(reader, name, token)
    operands: list[str] = []
    attrs: dict[str, Any] = {}
    words: list[Any] = []
    closing = ")" if reader.accept("(") else ""
    while not (reader.at(":") or reader.at("{") or (closing and reader.at(closing))):
        _item(reader, name, operands, attrs, words)
        if not reader.accept(","):
            break
    if closing:
        reader.expect(closing)
    if reader.at("{"):
        attrs |= reader.attr_dict()
    _put_words(reader, name, words, attrs, token)
    types, results = _signature(reader, name, operands)
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


def _item(reader: Reader, name: str, operands: list[str], attrs: dict[str, Any], words: list[Any]) -> None:
    token = reader.token
    if token.kind == "value":
        operands.append(reader.value())
    elif token.kind == "word" and reader.tokens[reader.pos + 1].text == "=":
        reader.take()
        reader.take()
        key = NAMES.get(name, {}).get(token.text, token.text)
        at = reader.token
        if at.kind == "number":                            # the colon behind it begins the types of the operation
            attrs[key] = reader.number_of(reader.take())
        else:
            attrs[key] = reader.take().text if at.kind == "word" and at.text not in LITERALS else reader.attribute()
    elif token.kind == "word" and token.text not in LITERALS:
        words.append(reader.take().text)
    elif token.kind == "end":
        reader.fail("the operation does not end", SYNTAX)
    else:
        words.append(reader.attribute())


def _put_words(reader: Reader, name: str, words: list[Any], attrs: dict[str, Any], token: Token) -> None:
    """Attributes that are written without a name."""
    keys = {"stablehlo.constant": ["value"], "stablehlo.compare": ["comparison_direction", "compare_type"],
            "chlo.broadcast_compare": ["comparison_direction", "compare_type"], "chlo.constant": ["value"],
            "stablehlo.composite": ["name"], "func.call": ["callee"]}.get(name, [])
    if name.startswith("check."):
        keys = ["value"]
    if len(words) > len(keys):
        reader.fail(f"{name}: {str(words[len(keys)])[:40]!r} is not expected here", SYNTAX, token)
    attrs.update(zip(keys, words))


def _signature(reader: Reader, name: str, operands: list[str]) -> tuple[list[ValueType], list[ValueType]]:
    """The types behind the colon: a signature; one type of all; or the operands' types, and where it is known, the
    result's."""
    value = [reader.type_of(n) for n in operands]
    if not reader.accept(":"):
        if name in ("stablehlo.constant", "chlo.constant"):
            return [], [reader.dense_type] if reader.dense_type is not None else []
        return value, []
    if reader.at("("):
        return reader.signature()
    types = reader.types()
    if reader.accept("->"):
        results = reader.list_of(reader.value_type, ")") if reader.accept("(") else reader.types()
        return types * len(operands) if len(types) == 1 else types, results
    if name.startswith("check."):
        return types * len(operands) if len(types) == 1 else types, []
    if name in OF_RESULT:
        return [], types
    if name == "stablehlo.select" and len(types) == 2:
        return [types[0], types[1], types[1]], [types[1]]
    if name == "stablehlo.optimization_barrier":
        return types, types
    if name == "stablehlo.tuple":
        parts = getattr(types[0], "parts", ())
        return list(parts), types
    if name == "stablehlo.complex" and isinstance(types[0], ArrayType):
        return value, types
    if len(types) == 1:
        # one type: of the result and of all operands, except those that the operation declares otherwise, as the
        # scalar bounds of clamp; the reader checks all else against the operation's own rules
        same = name not in DIFFERING
        return (types * len(operands) if same else value), types
    return value, [types[-1]] if types else []


DIFFERING = frozenset({"stablehlo.clamp", "stablehlo.rng", "stablehlo.after_all", "interpreter.probe",
                       "stablehlo.dynamic_iota", "stablehlo.get_dimension_size", "stablehlo.is_finite"})
"""Operations whose operands need not have the one type that is written."""


# -- operations with a syntax of their own ----------------------------------------------------------------------------
def _return(reader: Reader, name: str, token: Token) -> Operation:
    operands = []
    while reader.at_value():
        operands.append(reader.value())
        if not reader.accept(","):
            break
    if reader.at("{"):
        reader.attr_dict()
    types = reader.types() if reader.accept(":") else []
    return Operation(name, operands, types, [], {}, [], reader.loc(token.start))


def _slice(reader: Reader, name: str, token: Token) -> Operation:
    if not reader.at_value():
        reader.fail(f"expected a value, found {reader.token.text[:40]!r}", SYNTAX)
    operand = reader.value()
    reader.expect("[")

    def one() -> tuple[int, int, int]:
        start = reader.integer()
        reader.expect(":")
        end = reader.integer()
        return start, end, reader.integer() if reader.accept(":") else 1

    ranges = reader.list_of(one, "]")
    attrs = dict(zip(("start_indices", "limit_indices", "strides"),
                     (tuple(r[i] for r in ranges) for i in range(3))))
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, [operand], types, results, attrs, [], reader.loc(token.start))


def _reduce(reader: Reader, name: str, token: Token) -> Operation:
    inputs, inits = list[str](), list[str]()
    while True:
        reader.expect("(")
        inputs.append(reader.value())
        reader.expect("init")
        reader.expect(":")
        inits.append(reader.value())
        reader.expect(")")
        if not reader.accept(","):
            break
    applied = ""
    inner: dict[str, Any] = {}
    if reader.accept("applies"):
        applied = reader.word()
        if reader.at("{"):
            inner = reader.attr_dict()
    reader.expect("across")
    reader.expect("dimensions")
    reader.expect("=")
    attrs: dict[str, Any] = {"dimensions": reader.attribute()}
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    loc = reader.loc(token.start)
    if applied:
        body = _applied(applied, types[len(inputs):], inner, loc)
    else:
        reader.expect("reducer")
        # the arguments of each input are a pair in brackets of its own
        pairs: list[list[tuple[str, ValueType]]] = []
        while reader.accept("("):
            pairs.append(reader.list_of(lambda: _typed(reader), ")"))
        if not pairs or any(len(p) != 2 for p in pairs):
            reader.fail("a reducer takes pairs of arguments", SYNTAX)
        arguments = [p[i] for i in (0, 1) for p in pairs]
        body = reader.region([n for n, _ in arguments], [t for _, t in arguments])
    return Operation(name, inputs + inits, types, results, attrs, [body], loc)


def _typed(reader: Reader) -> tuple[str, ValueType]:
    name = reader.kind("value", "an argument").text[1:]
    reader.expect(":")
    type = reader.value_type()
    reader.skip_location()
    return name, type


def _applied(name: str, types: list[ValueType], attrs: dict[str, Any], loc: Any) -> Region:
    """The region of `applies stablehlo.add`."""
    args = ["0", "1"]
    both = list(types) * 2
    op = Operation(name, args, both, list(types), attrs, [], loc, ["2"])
    end = Operation("stablehlo.return", ["2"], list(types), [], {}, [], loc)
    return Region(args, both, [op, end])


def _while(reader: Reader, name: str, token: Token) -> Operation:
    reader.expect("(")

    def one() -> tuple[str, str]:
        argument = reader.kind("value", "an argument").text[1:]
        reader.expect("=")
        return argument, reader.value()

    pairs = reader.list_of(one, ")")
    types = reader.types() if reader.accept(":") else []
    if len(types) != len(pairs):
        reader.fail(f"{len(pairs)} values but {len(types)} types", SYNTAX)
    attrs = {}
    if reader.accept("attributes"):
        attrs = reader.attr_dict()
    names = [n for n, _ in pairs]
    reader.expect("cond")
    condition = reader.region(names, types)
    reader.expect("do")
    body = reader.region(names, types)
    return Operation(name, [v for _, v in pairs], types, list(types), attrs, [condition, body],
                     reader.loc(token.start))


def _pairs(reader: Reader) -> tuple[Any, Any]:
    """`[0] x [1]`: the dimensions of both operands."""
    left = reader.attribute()
    if reader.token.text != "x":
        reader.fail("expected x between two lists of dimensions", SYNTAX)
    reader.take()
    return left, reader.attribute()


def _dot_general(reader: Reader, name: str, token: Token) -> Operation:
    lhs = reader.value()
    reader.expect(",")
    operands = [lhs, reader.value()]
    dims: dict[str, Any] = {}
    attrs: dict[str, Any] = {"dot_dimension_numbers": dims}
    while reader.accept(","):
        key = reader.word()
        reader.expect("=")
        if key in ("batching_dims", "contracting_dims"):
            left, right = _pairs(reader)
            kind = key.replace("dims", "dimensions")
            dims[f"lhs_{kind}"], dims[f"rhs_{kind}"] = left, right
        elif key == "precision":
            reader.expect("[")
            attrs["precision_config"] = tuple(reader.list_of(reader.word, "]"))
        elif key == "algorithm":
            reader.expect("<")
            attrs["algorithm"] = dict(reader.list_of(reader._field, ">"))
        else:
            reader.fail(f"there is no {key} of a product", SYNTAX)
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


WINDOW = {"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation",
          "reverse": "window_reversal"}


def _convolution(reader: Reader, name: str, token: Token) -> Operation:
    reader.expect("(")
    operands = reader.list_of(reader.value, ")")
    attrs: dict[str, Any] = {}
    while reader.token.kind == "word":
        key = reader.word()
        reader.expect("=")
        if key == "dim_numbers":
            attrs["dimension_numbers"] = reader.convolution_dimensions()
        elif key == "window":
            reader.expect("{")

            def entry() -> tuple[str, Any]:
                found = reader.word()
                reader.expect("=")
                return WINDOW.get(found, found), reader.attribute()
            attrs |= dict(reader.list_of(entry, "}"))
        else:
            reader.fail(f"there is no {key} of a convolution", SYNTAX)
        if not reader.accept(","):
            break
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


def _call(reader: Reader, name: str, token: Token) -> Operation:
    """`call @f(%a) : ...` and `custom_call @f(%a) {...} : ...`."""
    callee = reader.kind("symbol", "a name such as @f")
    reader.expect("(")
    operands = reader.list_of(reader.value, ")")
    key = "callee" if name == "func.call" else "call_target_name"
    attrs: dict[str, Any] = {key: str(symbol(callee.text))}
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


def _composite(reader: Reader, name: str, token: Token) -> Operation:
    attrs: dict[str, Any] = {"name": unquote(reader.kind("string", "the name of the composite").text)}
    operands = []
    while reader.at_value():
        operands.append(reader.value())
        if not reader.accept(","):
            break
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


def _element(reader: Reader, name: str, token: Token) -> Operation:
    operand = reader.value()
    reader.expect("[")
    attrs = {"index": reader.integer()}
    reader.expect("]")
    reader.expect(":")
    types, results = reader.signature()
    return Operation(name, [operand], types, results, attrs, [], reader.loc(token.start))


def _reduce_precision(reader: Reader, name: str, token: Token) -> Operation:
    operand = reader.value()
    reader.expect(",")
    reader.expect("format")
    reader.expect("=")
    word = reader.word()
    exponent, _, mantissa = word.removeprefix("e").partition("m")
    if not (word.startswith("e") and exponent.isdigit() and mantissa.isdigit() and len(word) < 8):
        reader.fail(f"{word[:40]!r} is no format such as e5m10", SYNTAX)
    reader.expect(":")
    type = reader.value_type()
    return Operation(name, [operand], [type], [type], {"exponent_bits": int(exponent), "mantissa_bits": int(mantissa)},
                     [], reader.loc(token.start))


def _compare(reader: Reader, name: str, token: Token) -> Operation:
    """`compare LT, %a, %b, FLOAT : (types) -> type`, or one type of both operands."""
    attrs: dict[str, Any] = {"comparison_direction": reader.word()}
    reader.expect(",")
    operands = [reader.value()]
    reader.expect(",")
    operands.append(reader.value())
    if reader.accept(","):
        attrs["compare_type"] = reader.word()
    if reader.at("{"):
        attrs |= reader.attr_dict()
    reader.expect(":")
    if reader.at("("):
        types, results = reader.signature()
    else:
        types = [reader.value_type()] * 2
        shape = types[0].shape if isinstance(types[0], ArrayType) else ()
        results = [ArrayType(shape, i1)]
    return Operation(name, operands, types, results, attrs, [], reader.loc(token.start))


FORMS: dict[str, Callable[[Reader, str, Token], Operation]] = {
    "stablehlo.return": _return, "func.return": _return, "stablehlo.slice": _slice, "stablehlo.reduce": _reduce,
    "stablehlo.while": _while, "stablehlo.dot_general": _dot_general, "stablehlo.convolution": _convolution,
    "func.call": _call, "stablehlo.custom_call": _call, "stablehlo.composite": _composite,
    "stablehlo.get_tuple_element": _element, "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.compare": _compare,
}
