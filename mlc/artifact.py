"""mlc.save and mlc.load: a compiled function with its weights in one file that needs no compiler and no model code.

The file is a container (backends/checksummed.py). Its header has targets and signatures, its pieces are the
code of each signature, for a CPU, for GPUs or for both, and the weights as a safetensors file. Containers of arguments
and results are stored as data: lists, tuples and dicts, with numbers, strings, bools and None as what a signature is
made for. The code itself is machine code that is run: load files from people whose programs you would run, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc import extension, serialization, torch_file
from mlc.api import Compiled, compiled_function
from mlc.backends.checksummed import CorruptFile, pack, unpack
from mlc.backends.cpu.targets import host
from mlc.backends.executable import check_runs
from mlc.backends.image import Image
from mlc.backends.target import VENDORS, part_of
from mlc.encoded_structure import decode_structure, decode_value, encode_structure, encode_value
from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.frontend.signature import Arguments
from mlc.frontend.tensor import Array, Tensor
from mlc.frozen import check_parts
from mlc.ir.diag import UserError, UserFileNotFoundError, UserTypeError
from mlc.ir.files import read_starting
from mlc.saved_function import Loaded, Signature
from mlc.variant import Variant
from mlc.weights import Unreadable, from_bytes, to_bytes

if TYPE_CHECKING:
    from mlc.backends.cuda.image import DeviceImage

MAGIC = b"MLCMODEL"


# -- saving -----------------------------------------------------------------------------------------------------------
@coded
def save(f: Any, path: Any, args: Sequence[Any] | None = None, *, targets: Sequence[str] = (),
         **keywords: Any) -> None:
    """Write a compiled function and the weights of its module to a file, as a whole or not at all; or plain data.

    Data is a tensor, an array, a number, a string or a module, or a list, tuple or dict of them, such as the result of
    `state_dict`. It is written without code, and what is one object in several places will be one again; tensors of
    one dtype that share memory will share it again, as far as the file has it.

    Args:
        f: Result of `mlc.compile`, or data. Of one that is compiled with `freeze`, the file has the weights, and what
            depends on them alone is computed when it is loaded.
        path: Name of the file; for data, it may also be a file that is open for writing bytes.
        args: Arrays or specifications that code is made for; None for what is compiled so far, or else those of f. The
            code is that of calls under the present autocast.
        targets: Machines that code is made for, as in ["host", "cuda:sm_90"] or ["x86-64-v3"]; without any, where f
            runs. Of processors it is one. A GPU of a named architecture need not be here.
        keywords: Keyword arguments, as `args`.

    Raises:
        UserError: There is nothing to save code of (MLC0570), or the file cannot be written (MLC0393).
        UserTypeError: f takes or gives what a file cannot hold (MLC0570), or is no such data (MLC0764).

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "double.mlc")
        >>> mlc.save(mlc.compile(lambda x: x * 2), path, args=[mlc.spec("B")])
    """
    compiled = f if isinstance(f, Compiled) else compiled_function(f)
    serialization.check_file(path, "write" if compiled is None else None)
    if compiled is None and (args is not None or targets or keywords or (
            callable(f) and not isinstance(f, tree.AttributeTree))):
        raise UserTypeError(f"mlc.save takes what mlc.compile returns, found {type(f).__name__}", code="MLC0570",
                            loc=user_loc(), hint="mlc.save(mlc.compile(f), path, args=...)")
    if compiled is None:
        return serialization.write(f, path)
    signature = compiled.signature
    given = signature.specified() if args is None and not keywords and (targets or not compiled.variants) else args
    if given is None and not keywords and targets:
        raise UserError("mlc.save makes code for targets from arguments, and there are none", code="MLC0570",
                        loc=user_loc(), hint="pass args=[...] with arrays or mlc.spec(...)")
    variants = compiled.variants if given is None and not keywords else [
        compiled.prepare(given or (), keywords, list(dict.fromkeys(targets)))]
    if not variants:
        raise UserError(f"nothing has been compiled of {signature.name}", code="MLC0570", loc=user_loc(),
                        hint="call it first, or pass args=[...] with arrays or mlc.spec(...)")
    weights = _weights(compiled)
    buffers = [place for x in signature.bound for place in _buffers(x)]
    numbers = {name: i for i, name in enumerate(weights)}
    signatures, pieces = [], dict[str, bytes]()
    for i, variant in enumerate(variants):
        if variant.recorded.written:
            raise UserError(f"{signature.name} changes an argument in place, which code in a file cannot do",
                            code="MLC0570", loc=user_loc(), hint="return the new value")
        signatures.append(_signature_data(variant))
        if new := [buffers[b] for b in variant.recorded.assigned if buffers[b] not in numbers]:
            raise UserError(f"the call gives a value to the buffer {new[0]}, which is None: the next one would be "
                            "another function", code="MLC0570", loc=user_loc(),
                            hint="call the module once before it is compiled and saved, or give the buffer a value in "
                                 "register_buffer")
        signatures[-1]["assigned"] = [[numbers[buffers[b]], r] for b, r in variant.recorded.assigned.items()]
        if len(processors := [image.target.name for image in variant.images if isinstance(image, Image)]) > 1:
            raise UserError(f"targets are {', '.join(processors)}, and a file has code for one kind of processor",
                            code="MLC0570", loc=user_loc(),
                            hint="name the oldest one; newer processors run its code too")
        for image in variant.images:
            if isinstance(image, Image):
                signatures[-1]["image"] = image.head()
                pieces[f"code {i}"] = image.code
            else:
                start = f"gpu {i} {image.target.name} "
                signatures[-1].setdefault("gpu", []).append([start, image.head()])
                pieces |= {start + name: piece for name, piece in image.pieces().items()}
    try:
        pieces["weights"] = to_bytes(weights)
    except Unreadable as error:
        raise UserError(str(error), code="MLC0570", loc=user_loc()) from None
    head = {"name": signature.name, "weights": list(weights), "frozen": compiled.freeze, "signatures": signatures}
    write_file(path, pack(MAGIC, head, pieces))


def _weights(compiled: Compiled) -> dict[str, Array]:
    """The arrays of the module that was compiled, by the names of its state."""
    leaves = tree.leaves(compiled.signature.bound)
    names = tree.names(compiled.signature.bound[0]) if compiled.signature.bound else []
    slots = Arguments(leaves, tree.TreeDef()).slots
    return {name: x.array if isinstance(x, Tensor) else np.asarray(x)
            for name, x, slot in zip(names, leaves, slots) if slot}


def _buffers(x: Any, path: str = "") -> Iterator[str]:
    """The names of the buffers in a tree, in the order in which a call numbers them."""
    if isinstance(x, tree.AttributeTree):
        yield from (f"{path}.{name}".removeprefix(".") for name in x._buffers)
    for step, child in tree.children(x):
        yield from _buffers(child, path + step)


def _signature_data(variant: Variant) -> dict[str, Any]:
    """How one signature is called, as data."""
    outputs = [[kind, encode_value(x, "a result") if kind == "value" else x]
               for kind, x in variant.recorded.plain_outputs()]
    return {"arguments": encode_structure(variant.structure, "an argument"),
            "leaves": [None if slot else [encode_value(x, "an argument")]
                       for slot, x in zip(variant.slots, variant.leaves)],
            "weak": variant.weak,
            "results": encode_structure(variant.recorded.structure, "a result"), "outputs": outputs}


# -- loading ----------------------------------------------------------------------------------------------------------
@coded
def load(path: Any, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
    """Load a file of `mlc.save`, of `torch.save`, or of `mlc compile -o NAME.so`; it is checked first.

    A zip file of PyTorch (`.pt`, `.pth`, `.bin`) is always read as data, whatever `weights_only` is: its pickle is
    interpreted, and may name tensors, dtypes, devices and containers only. Its tensors are mapped into memory, so the
    file must stay as it is; those that share a storage in it share memory.

    Args:
        path: Name of the file; for data, it may also be a file that is open for reading bytes.
        map_location: Device of all tensors of data; None for the one that each was on.
        weights_only: True for data alone, so that no code of a file is run whatever it is; False for data whose
            modules may be of any class that the program has imported, rather than of those of `mlc.nn` and of
            `mlc.serialization.safe_globals`; None for data or a model.

    Returns:
        The data; or a function of the arguments that it was saved for; others are an error (MLC0323, MLC0572).

    Raises:
        UserError: The file cannot be read (MLC0392), or is damaged or no such file (MLC0571, MLC0748, MLC0766), or it
            has what is not allowed (MLC0747, MLC0765).

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "model.mlc")
        >>> mlc.save(mlc.compile(nn.Linear(2, 3)), path, args=[mlc.spec("B", 2)])
        >>> mlc.load(path)(mlc.ones(4, 2)).shape
        (4, 3)
    """
    serialization.check_file(path, "read")
    serialization.check_location(map_location)
    if (raw := torch_file.mapped(path)) is not None:
        return torch_file.read(raw, str(path), map_location)
    if (data := serialization.content(path, weights_only is not None)) is not None:
        return serialization.read(data, map_location, weights_only is False)
    path = os.fspath(path)                                 # rejects file descriptors
    if extension.is_module(path):
        return extension.load(path)
    name, signatures, weights, frozen = _open(path)
    for signature in signatures:
        if signature.image is not None:
            check_runs(signature.image.target)
    return Loaded(name, signatures, weights, frozen)


def _open(path: str | Path) -> tuple[str, list[Signature], dict[str, Array], bool]:
    """The name, the signatures and the weights of a file that is found whole, and whether these are constants."""
    data = _read(path)
    try:
        head, pieces = unpack(MAGIC, data)
        weights = from_bytes(bytes(pieces["weights"]))
        return (str(head["name"]), list(_signatures(head, pieces)), {name: weights[name] for name in head["weights"]},
                bool(head.get("frozen", False)))
    except (CorruptFile, Unreadable, KeyError, TypeError, ValueError, OverflowError, IndexError,
            AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is no saved model, or a damaged one: {error}", code="MLC0571", loc=user_loc(),
                        hint="it is what mlc.save writes; save it again") from None


def describe(path: str | Path) -> list[tuple[str, str]]:
    """Description of a file that `save` wrote, as (name, text) pairs; the file is verified, and none of it is run."""
    if extension.is_module(path):
        return extension.describe(path)
    name, signatures, weights, frozen = _open(path)
    images = [image for s in signatures for image in s.images]
    rows = [("saved model", name),
            ("weights", f"{sum(w.size for w in weights.values())} in {len(weights)} arrays{', frozen' * frozen}"),
            ("code", f"{sum(len(i.code) for i in images)} bytes")]
    targets = list(dict.fromkeys(i.target for i in images))
    rows += [("target", f"{t.name}: {t.triple}" if t.is_gpu else
              f"{t.name}: {t.triple}, scheduled for {t.cpu}, {t.vector_bits} bits") for t in targets]
    on_cpu = [host().runs(t) for t in targets if not t.is_gpu]
    rows += [("runs on this machine", ("yes" if all(on_cpu) else "no") if on_cpu else "if it has such a GPU")]
    return rows + [("signature", str(s)) for s in signatures]


def check_runs_here(path: str | Path) -> None:
    """BackendError unless this machine has a processor, or may have a GPU, that a file has code for."""
    if extension.is_module(path):
        extension.check_runs_here(extension.checked(path))
        return
    for signature in _open(path)[1]:
        if signature.image is not None and not signature.gpu:
            check_runs(signature.image.target)


def _read(path: str | Path) -> bytes:
    try:
        return read_starting(path, MAGIC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        kind = UserFileNotFoundError if isinstance(error, FileNotFoundError) else UserError
        raise kind(f"cannot read {path}: {reason}", code="MLC0392", loc=user_loc(),
                        hint=f"the current folder is {os.getcwd()}" if not os.path.isabs(path) else "") from None


def _signatures(head: Mapping[str, Any], pieces: Mapping[str, memoryview]) -> Iterator[Signature]:
    for i, data in enumerate(head["signatures"]):
        image = Image.of(data["image"], pieces[f"code {i}"]) if "image" in data else None
        gpu = [_device_image(start, said, pieces) for start, said in data.get("gpu", ())]
        signature = Signature(decode_structure(data["arguments"]),
                              [None if x is None else [decode_value(x[0])] for x in data["leaves"]],
                              [bool(x) for x in data["weak"]], decode_structure(data["results"]),
                              [_output(kind, x) for kind, x in data["outputs"]],
                              [(int(w), int(r)) for w, r in data["assigned"]], image, gpu)
        _check(signature, len(head["weights"]))
        yield signature


def _check(signature: Signature, weights: int) -> None:
    """CorruptFile unless the parts of a signature speak of the same leaves, arguments and results."""
    if any("main" not in image.interfaces for image in signature.images):
        raise CorruptFile("its code has no function main")
    interface = signature.interface
    inputs, results = (0, 0) if interface is None else (len(interface.inputs), len(interface.results))
    numbers = [r for _, r in signature.assigned]
    for kind, x in signature.outputs:
        numbers += [x] if kind in ("result", "number") else []
        numbers += [x[0], *(count for _, count in x[1])] if kind == "first" else []
    counts = [(signature.structure.count(tree.LEAF), len(signature.leaves)),
              (signature.results.count(tree.LEAF), len(signature.outputs)),
              (signature.leaves.count(None), len(signature.weak))]
    if interface is not None:
        counts.append((weights + len(signature.weak), inputs))
    if any(a != b for a, b in counts) or any(not 0 <= w < weights for w, _ in signature.assigned) or any(
            type(n) is not int or not 0 <= n < results for n in numbers):
        raise CorruptFile("a signature in it is ill-formed")
    if signature.image is not None:
        try:
            check_parts(signature.image.interfaces, range(weights, inputs))
        except ValueError as error:
            raise CorruptFile(str(error)) from None


def _output(kind: str, x: Any) -> tuple[str, Any]:
    if kind == "first":
        return kind, (int(x[0]), tuple((int(axis), int(count)) for axis, count in x[1]))
    return str(kind), x if kind in ("result", "number") else decode_value(x)


def _device_image(start: str, head: Any, pieces: Mapping[str, memoryview]) -> DeviceImage:
    """Code for a GPU, whose pieces have names that start so."""
    vendor = start.split()[-1].partition(":")[0]
    if vendor not in VENDORS[1:]:
        raise CorruptFile(f"it has code for {vendor!a}, which is no kind of device")
    own = {name.removeprefix(start): p for name, p in pieces.items() if name.startswith(start)}
    image: DeviceImage = part_of(vendor, "image").DeviceImage.of(head, own)
    return image
