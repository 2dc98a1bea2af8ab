"""Mutations of model files: of bytes, of the tokens of a text, of the fields of a protobuf message, of a zip's JSON."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

ABSURD = (0, 1, -1, 2, 7, 255, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63))
"""Integers at the limits of types, and sizes that no machine has memory for."""
BYTES = (b"", b"\0", b"\xff", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x08", b"\x0a\x00", b"\x00" * 64, b"\xc3\x28")


def of_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, or ranges deleted, repeated, inserted or overwritten; or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at, n = rng.randrange(len(out) + 1), rng.choice((1, 1, 2, 4, 16, 200))
        kind = rng.randrange(8)
        if kind == 0:
            del out[at:at + n]
        elif kind == 1:
            out[at:at] = out[at:at + n]
        elif kind == 2:
            source = rng.randrange(len(out) + 1)
            out[at:at] = out[source:source + n]
        elif kind == 3:
            out[at:at] = rng.randbytes(n)
        elif kind == 4:
            out[at:at + n] = rng.choice(BYTES)
        elif kind == 5 and rng.random() < 0.3:
            del out[at:]
        elif at < len(out):
            out[at] = out[at] ^ (1 << rng.randrange(8)) if kind == 6 else rng.randrange(256)
    return bytes(out)


# -- texts ------------------------------------------------------------------------------------------------------------
TOKEN = re.compile(r"\s+|[%@#!^]?[\w.]+|\"[^\"\n]*\"|->|.", re.DOTALL)
NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][-+]?\d+)?")
TYPES = ("f32", "f64", "i1", "i8", "i32", "i64", "ui8", "ui64", "f16", "bf16", "complex<f32>", "index", "f8E4M3FN",
         "tensor<f32>", "tensor<?xf32>", "tensor<2x3xi64>", "tensor<*xf32>", "tensor<0xf32>", "tuple<>", "none", "!a.b",
         "tensor<1048576x1048576xf32>", "!stablehlo.token")
NUMBERS = ("0", "1", "-1", "2", "3", "1.5", "1e999", "4294967296", "-9223372036854775808", "9223372036854775807",
           "9" * 30, "9" * 5000, "0x7FC00000", "0xFFFFFFFFFFFFFFFFFFFF", "1099511627776", "65536",
           "4611686018427387904")
PIECES = ("", "{", "}", "(", ")", "<", ">", "[", "]", ",", ":", "=", "->", "%0", "@main", "#", '"', "dense<", "?", "x",
          "true", "[" * 100, "(" * 70, "{" * 70, "\0", "\u2028", "é", "stablehlo.add", "dense<1> : tensor<f32>",
          "loc(", "affine_map<(d0)->(d0)>", "array<i64: 1>", "//", "\n")


def of_text(text: str, rng: random.Random) -> str:
    """A few tokens deleted, repeated, exchanged, replaced by others of their kind, or by numbers that are absurd; or a
    size, a type or the name of an operation changed wherever it is, so that the text remains one of the language."""
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 2))):
            text = rng.choice((_sizes_alike, _types_alike, _attribute_number, _other_operation))(text, rng)
        return text
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if not tokens:
            break
        _change_tokens(tokens, rng)
    return "".join(tokens)


def _sizes_alike(text: str, rng: random.Random) -> str:
    """One size in all types, and in the numbers between brackets if it is there, too."""
    sizes = sorted(set(re.findall(r"(?<=[<x])(\d+|\?)(?=x)", text)))
    if not sizes:
        return text
    old, new = rng.choice(sizes), rng.choice(("0", "1", "2", "3", "5", "?", "4611686018427387904", "65536"))
    out = re.sub(rf"(?<=[<x]){re.escape(old)}(?=x)", new, text)
    return re.sub(rf"(?<=[\[ ]){re.escape(old)}(?=[\],])", new, out) if rng.random() < 0.5 and new != "?" else out


def _types_alike(text: str, rng: random.Random) -> str:
    """One element type, wherever it is."""
    types = sorted(set(re.findall(r"(?<=[<x])[a-z]\w*(?=[>,])", text)))
    if not types:
        return text
    new = rng.choice(("f32", "f64", "i1", "i8", "i32", "i64", "ui8", "ui64", "f16", "bf16", "complex<f32>", "i4"))
    return re.sub(rf"(?<=[<x]){rng.choice(types)}(?=[>,])", new, text)


def _attribute_number(text: str, rng: random.Random) -> str:
    """A number in an attribute: small, or absurd."""
    found = list(re.finditer(r"(?<=[\[ :<])-?\d+(?=[\],: >])", text))
    if not found:
        return text
    m = rng.choice(found)
    new = str(rng.randrange(-3, 6)) if rng.random() < 0.8 else rng.choice(NUMBERS)
    return text[:m.start()] + new + text[m.end():]


def _other_operation(text: str, rng: random.Random) -> str:
    """Another operation of the text, or a usual one, in place of one."""
    found = list(re.finditer(r"(?:stablehlo|chlo)\.\w+", text))
    if not found:
        return text
    m = rng.choice(found)
    new = rng.choice([x[0] for x in found] + ["stablehlo.add", "stablehlo.abs", "stablehlo.transpose", "stablehlo.sort",
                                              "stablehlo.reshape", "stablehlo.real", "stablehlo.pad", "chlo.top_k"])
    return text[:m.start()] + new + text[m.end():]


def _change_tokens(tokens: list[str], rng: random.Random) -> None:
    at = _at_word(tokens, rng)
    kind, other = rng.randrange(12), _at_word(tokens, rng)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 2:
        tokens[at] = rng.choice(PIECES)
    elif kind in (3, 4, 5):                                # a number, in a type or not
        found = [i for i, t in enumerate(tokens) if re.search(r"\d", t) and not t.startswith(("%", "@", "#"))]
        if found:
            i = rng.choice(found)
            tokens[i] = re.sub(r"-?\d+", lambda m: m[0] if rng.random() < 0.5 else rng.choice(NUMBERS), tokens[i])
    elif kind == 6:                                        # an element type
        found = [i for i, t in enumerate(tokens) if re.search(r"(^|x)(u?i|b?f)\d+$", t)]
        if found:
            i = rng.choice(found)
            tokens[i] = re.sub(r"(u?i|b?f)\d+$", rng.choice(TYPES), tokens[i])
    elif kind == 7:                                        # another of its kind: a value, an operation, a name
        same = [t for t in tokens if t[:1] == tokens[at][:1] and t != tokens[at]]
        tokens[at] = rng.choice(same or [""])
    elif kind in (8, 9, 10):
        _change_lines(tokens, kind, rng)
    else:
        n = rng.choice((2, 5, 20))
        tokens[at:at + n] = [] if rng.random() < 0.5 else tokens[other:other + n]


def _at_word(tokens: list[str], rng: random.Random) -> int:
    for _ in range(8):
        at = rng.randrange(len(tokens))
        if not tokens[at].isspace():
            break
    return at


def _change_lines(tokens: list[str], kind: int, rng: random.Random) -> None:
    lines = "".join(tokens).split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 8:
        del lines[i]
    elif kind == 9:
        lines.insert(j, lines[i])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    tokens[:] = TOKEN.findall("\n".join(lines))


# -- protobuf ---------------------------------------------------------------------------------------------------------
PLACES = ("../weights.bin", "/etc/passwd", "weights.bin", "", ".", "a\0b", "w" * 5000, "folder/../../weights.bin")
STRINGS = ("", "x", "y", "N", "ai.onnx", "é", "\0", "a" * 5000, "../x", "1", "Loop", "If", "Scan", "Reshape",
           "Constant")


def messages(message: Any, depth: int = 0) -> list[Any]:
    """A message and all within it."""
    found = [message]
    for field, x in message.ListFields():
        if field.message_type is not None and depth < 20:
            for part in x if field.is_repeated else [x]:
                found += messages(part, depth + 1)
    return found


def of_model(data: bytes, rng: random.Random) -> bytes:
    """A `ModelProto` with fields changed: sizes, names, types, nodes, attributes, weights in other files."""
    from onnx import ModelProto
    model = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(CHANGES)(model, rng)
    return bytes(model.SerializePartialToString())


def _any_field(model: Any, rng: random.Random) -> None:
    """A field of any message within, of which there are more of tensors, nodes and attributes than of others."""
    found: dict[str, list[Any]] = {}
    for message in messages(model):
        found.setdefault(message.DESCRIPTOR.name, []).append(message)
    target = rng.choice(found[rng.choice(sorted(found))])
    given = [f for f, _ in target.ListFields()]
    field = rng.choice(given if given and rng.random() < 0.8 else list(target.DESCRIPTOR.fields))
    if rng.random() < 0.15:
        target.ClearField(field.name)
    elif field.is_repeated:
        _change_list(getattr(target, field.name), field, found, rng)
    elif field.message_type is not None:
        same = found.get(field.message_type.name)
        if same:
            _copy(getattr(target, field.name), rng.choice(same))
    else:
        setattr(target, field.name, _value(field, getattr(target, field.name), found, rng))


def _copy(target: Any, source: Any) -> None:
    """Make a message that of another, which it may be a part of."""
    text = source.SerializePartialToString()
    if len(text) < 1 << 20:
        target.ParseFromString(text)


def _change_list(items: Any, field: Any, found: dict[str, list[Any]], rng: random.Random) -> None:
    kind = rng.randrange(4)
    if kind == 0 and len(items):
        del items[rng.randrange(len(items))]
    elif field.message_type is not None:
        same = found.get(field.message_type.name)
        if kind == 1 and len(items) > 1:
            i, j = rng.sample(range(len(items)), 2)
            text = items[i].SerializePartialToString()
            _copy(items[i], items[j])
            items[j].ParseFromString(text)
        elif same:
            _copy(items.add(), rng.choice(same))
    elif kind == 1 or not len(items):
        items.append(_value(field, items[0] if len(items) else None, found, rng))
    elif kind == 2:
        items.extend([items[rng.randrange(len(items))]] * rng.choice((1, 3, 40)))
    else:
        i = rng.randrange(len(items))
        items[i] = _value(field, items[i], found, rng)


def _value(field: Any, now: Any, found: dict[str, list[Any]], rng: random.Random) -> Any:
    """Another value of a field of a number, a text or bytes."""
    if field.cpp_type == field.CPPTYPE_STRING:
        if field.type == field.TYPE_BYTES:
            return of_bytes(now or b"1234", rng)
        names = [x for m in found.get("NodeProto", []) for x in (*m.input, *m.output, m.op_type)]
        return rng.choice([*STRINGS, *PLACES, *names, *names])
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e30, 0.5))
    if field.cpp_type == field.CPPTYPE_BOOL:
        return not now
    if field.cpp_type == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    value = rng.choice((*ABSURD, rng.randrange(-9, 30), (now or 0) + rng.choice((-1, 1))))
    bits = 32 if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    unsigned = field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    return value % (1 << bits) if unsigned else (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _sizes(model: Any, rng: random.Random) -> None:
    """The sizes of a weight or of a value."""
    weights = [m for m in messages(model) if m.DESCRIPTOR.name == "TensorProto"]
    dims = [d for m in messages(model) if m.DESCRIPTOR.name == "TensorShapeProto" for d in m.dim]
    if weights and (rng.random() < 0.5 or not dims):
        t = rng.choice(weights)
        if len(t.dims) and rng.random() < 0.7:
            t.dims[rng.randrange(len(t.dims))] = rng.choice(ABSURD)
        else:
            t.dims.append(rng.choice(ABSURD))
    elif dims:
        d = rng.choice(dims)
        if rng.random() < 0.5:
            d.dim_value = rng.choice(ABSURD)
        else:
            d.dim_param = rng.choice(("N", "a b", "", "N + 1", "N / 0", "-N", "é", "1", "N" * 3000, "def", "self",
                                      "\0"))


def _wires(model: Any, rng: random.Random) -> None:
    """The names of inputs and outputs: cycles, names twice, names of nothing."""
    nodes = [m for m in messages(model) if m.DESCRIPTOR.name == "NodeProto"]
    names = [x for n in nodes for x in (*n.input, *n.output)]
    if not names:
        return
    node = rng.choice(nodes)
    ends = rng.choice((node.input, node.output))
    if len(ends):
        ends[rng.randrange(len(ends))] = rng.choice((rng.choice(names), rng.choice(names), "nothing", ""))
    else:
        ends.append(rng.choice(names))


def _outside(model: Any, rng: random.Random) -> None:
    """A weight in another file."""
    weights = [m for m in messages(model) if m.DESCRIPTOR.name == "TensorProto"]
    if weights:
        t = rng.choice(weights)
        t.data_location = 1
        for key, value in (("location", rng.choice(PLACES)), ("offset", str(rng.choice(ABSURD))),
                           ("length", str(rng.choice(ABSURD)))):
            if rng.random() < 0.8:
                t.external_data.add(key=key, value=value)


def _nested(model: Any, rng: random.Random) -> None:
    """A graph within itself; or a function of the model that calls itself."""
    if not len(model.graph.node):
        return
    node = rng.choice(model.graph.node)
    if rng.random() < 0.5:
        a = node.attribute.add(name=rng.choice(("body", "then_branch", "else_branch")), type=5)
        for _ in range(rng.choice((1, 3, 8))):
            if model.ByteSize() < 1 << 18:
                _copy(a.g, model.graph)
        return
    f = model.functions.add(name=node.op_type, domain=node.domain)
    f.input.extend(node.input)
    f.output.extend(node.output)
    f.node.add().CopyFrom(node)
    f.opset_import.extend(model.opset_import)


def _operator(model: Any, rng: random.Random) -> None:
    """A node of another operator, with the inputs and attributes that it has; or of another version of all."""
    from onnx import defs
    if rng.random() < 0.2 and len(model.opset_import):
        model.opset_import[0].version = rng.choice((0, 1, 6, 9, 13, 18, 99, -1, 1 << 40))
    elif len(model.graph.node):
        known = sorted(s.name for s in defs.get_all_schemas() if s.domain == "")
        rng.choice(model.graph.node).op_type = rng.choice(known)


def _constant(model: Any, rng: random.Random) -> None:
    """A value that becomes known: an input of the graph as a constant of small or absurd integers."""
    from onnx import helper
    if not len(model.graph.input):
        return
    i = rng.randrange(len(model.graph.input))
    name, type = model.graph.input[i].name, model.graph.input[i].type.tensor_type.elem_type or 7
    values = [rng.choice((*range(-3, 6), *ABSURD)) for _ in range(rng.choice((0, 1, 2, 4)))]
    bits = {2: (0, 255), 3: (-128, 127), 6: (-(1 << 31), (1 << 31) - 1), 7: (-(1 << 63), (1 << 63) - 1)}
    low, high = bits.get(type, (-100, 100))
    if type in (1, 2, 3, 6, 7, 9, 11):
        chosen = [min(max(v, low), high) for v in values]
        if type == 9:
            chosen = [v % 2 for v in chosen]
        model.graph.initializer.append(helper.make_tensor(name, type, [len(values)], chosen))


def _attributes(model: Any, rng: random.Random) -> None:
    """A number or a text of an attribute, small or absurd; or one attribute more or less."""
    nodes = [m for m in messages(model) if m.DESCRIPTOR.name == "NodeProto" and len(m.attribute)]
    if not nodes:
        return
    node = rng.choice(nodes)
    a = rng.choice(node.attribute)
    number = rng.choice((*range(-3, 8), *ABSURD))
    if a.type == 2:
        a.i = number
    elif a.type == 1:
        a.f = rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e38, 0.5))
    elif a.type == 3:
        a.s = rng.choice((b"", b"max", b"\xff", b"linear", b"VALID", b"SAME_UPPER", b"nearest"))
    elif a.type == 7 and len(a.ints) and rng.random() < 0.7:
        a.ints[rng.randrange(len(a.ints))] = number
    elif a.type == 7:
        a.ints.append(number)
    else:
        node.attribute.remove(a)


CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _any_field, _any_field, _any_field, _any_field, _sizes, _wires, _outside, _nested, _operator, _constant,
    _constant, _attributes, _attributes)


# -- zips -------------------------------------------------------------------------------------------------------------
def of_zip(data: bytes, rng: random.Random) -> bytes:
    """A zip of which values in a JSON file, or the bytes of another file, are changed."""
    if rng.random() < 0.2:
        return of_bytes(data, rng)
    source = zipfile.ZipFile(io.BytesIO(data))
    entries = {i.filename: source.read(i) for i in source.infolist()}
    name = rng.choice([*entries, *(n for n in entries if n.endswith(".json"))])
    if name.endswith(".json") and rng.random() < 0.85:
        value = json.loads(entries[name])
        for _ in range(rng.choice((1, 1, 2, 4))):
            _change_json(value, rng)
        entries[name] = json.dumps(value).encode()
    elif rng.random() < 0.2:
        del entries[name]
    else:
        entries[name] = of_bytes(entries[name], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for entry, content in entries.items():
            file.writestr(zipfile.ZipInfo(entry), content)  # without the time, so that a seed gives the same bytes
    return out.getvalue()


def _change_json(value: Any, rng: random.Random) -> None:
    """Another value, key or length somewhere in lists and dicts."""
    places: list[tuple[Any, Any]] = []

    def visit(x: Any) -> None:
        for key in x if isinstance(x, dict) else range(len(x)):
            places.append((x, key))
            if isinstance(x[key], dict | list):
                visit(x[key])
    visit(value)
    if not places:
        return
    owner, key = rng.choice(places)
    old = owner[key]
    kind = rng.randrange(4)
    if kind == 0:
        del owner[key]
    elif kind == 1:
        other, at = rng.choice(places)
        try:
            owner[key] = json.loads(json.dumps(other[at]))
        except LookupError:                                # that place is in what was deleted
            pass
    elif isinstance(old, bool) or not isinstance(old, int):
        owner[key] = rng.choice((None, "", "x", 3, [], {}, "aten.relu.default", "s0", [1, -1], {"as_int": -1}, True))
    else:
        owner[key] = rng.choice(ABSURD)
