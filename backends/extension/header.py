"""The C header NAME.h of an extension module: the entry of each function, and a typed wrapper.

The file that Python imports is also a shared library of C functions, which can be called without Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlc.backends.extension.call import site, symbol
from mlc.backends.extension.module import use_weights_symbol
from mlc.backends.extension.signature import Function, shown
from mlc.backends.extension.threads import set_threads_symbol
from mlc.backends.extension.weights import Weights
from mlc.ir.types import TensorType, bf16, f16

_TYPES = {"i1": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "ui8": "uint8_t",
          "ui16": "uint16_t", "ui32": "uint32_t", "ui64": "uint64_t", "f32": "float", "f64": "double"}
_KEYWORDS = frozenset("""auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
class delete new this try catch throw template typename using namespace public private protected virtual operator bool
true false and or not xor main context arguments sizes results status""".split())


def header(name: str, functions: Sequence[Function], weights: Weights) -> str:
    """The text of the header."""
    guard = f"{name.upper()}_H"
    parts = [_HEAD.replace("NAME", name).replace("GUARD", guard)]
    if weights.beside:
        parts.append(_WEIGHTS.replace("USE", use_weights_symbol(name)).replace("FILE", weights.beside).replace(
            "GUARD", name.upper()).replace("SIZE", str(len(weights.content))).replace("DIGEST", weights.digest))
    parts.append(_THREADS.replace("SET", set_threads_symbol(name)))
    parts += [_function(f.named()) for f in functions]
    return "\n".join([*parts, "#ifdef __cplusplus", "}", "#endif", f"#endif /* {guard} */", ""])


_HEAD = """/* NAME.h: functions of NAME.so, compiled by mlc. Link with NAME.so, or open it with dlopen. */
#ifndef GUARD
#define GUARD

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MLC_CONTEXT
#define MLC_CONTEXT
/* Scratch memory and error record of a call; used by one call at a time. Initialise it with {0}, reuse it for any
   number of calls, and release it by mlc_context_free.

   arena     memory for temporary values, aligned to 64 bytes
   capacity  size of the arena in bytes
   needed    bytes that a call needs, if it returned MLC_ARENA_TOO_SMALL
   record    the error, if a call returned MLC_ERROR: place * 2^40 + element; each function lists its places
   memory    allocation that contains the arena, owned by mlc_context_grow and mlc_context_free
*/
struct mlc_context {
    void *arena;
    int64_t capacity;
    int64_t needed;
    int64_t record;
    void *memory;
};

enum {
    MLC_OK = 0,
    MLC_ARENA_TOO_SMALL = 1,   /* nothing has run */
    MLC_ERROR = 2,             /* an index out of range, see record */
    MLC_UNSUITED = 3,          /* there is no code for this processor */
    MLC_NO_WEIGHTS = 4,        /* the weights are in a separate file, whose address has not been set */
    MLC_OUT_OF_MEMORY = 5
};

static inline void mlc_context_free(struct mlc_context *context) {
    free(context->memory);
    context->memory = 0;
    context->arena = 0;
    context->capacity = 0;
}

/* Grow the arena to the bytes that a call needs. */
static inline int32_t mlc_context_grow(struct mlc_context *context) {
    mlc_context_free(context);
    context->memory = malloc((size_t)context->needed + 64);
    if (context->memory == 0)
        return MLC_OUT_OF_MEMORY;
    context->arena = (char *)context->memory + (64 - (uintptr_t)context->memory % 64) % 64;
    context->capacity = context->needed;
    return MLC_OK;
}
#endif
"""

_WEIGHTS = """\
/* Set the weights of the library: all bytes of FILE, in memory that stays valid. The result is 0, or 1 if the size is
   wrong. The caller should verify the bytes by the SHA-256 below. */
#define GUARD_WEIGHTS_SIZE SIZE
#define GUARD_WEIGHTS_SHA256 "DIGEST"
int32_t USE(const void *file, int64_t size);
"""

_THREADS = """\
/* Set the number of threads that calls may use, from 1 to 1024. The default is MLC_NUM_THREADS, or else the number of
   processors available to the process. */
void SET(int32_t count);
"""


def _function(function: Function) -> str:
    """The declarations of one function."""
    interface, name = function.interface, function.name
    results = [f"result{k}" if len(interface.results) > 1 else "result" for k in range(len(interface.results))]
    names = names_in_c([*interface.symbols, *results, *function.paths])
    count = len(interface.symbols)
    symbols, results, inputs = names[:count], names[count:count + len(results)], names[count + len(results):]
    lines = [f"/* {name}: C-contiguous arrays."]
    lines += [f"     {c:24} {shown(t)}{'' if c == path else f', in Python {path}'}"
              for c, t, path in zip(inputs, interface.inputs, function.paths)]
    lines += [f"     {c:24} {shown(t)}" + (f", which is {inputs[a]}" if a >= 0 else "")
              for c, t, a in zip(results, interface.results, interface.aliases)]
    if interface.symbols:
        lines.append(f"   Sizes, in the order of the entry: {', '.join(symbols)}.")
    lines += [f"   The caller sees to it that {condition} >= 0." for condition in interface.size_constraints]
    lines += [f"   Place {i} of the record: {_comment(site(text))}" for i, text in enumerate(interface.error_sites)]
    lines.append("   Calls are re-entrant: any number of threads, each with a context of its own. */")
    lines.append(f"int32_t {symbol(name)}(struct mlc_context *context, const void *const *arguments, "
                 "const int64_t *sizes,\n        void *const *results);\n")
    parameters = ["struct mlc_context *context", *(f"int64_t {s}" for s in symbols)]
    for i, (c, type) in enumerate(zip(inputs, interface.inputs)):
        parameters.append(f"{'' if i in interface.donated else 'const '}{c_type(type)} *{c}")
    own = [(c, t) for c, t, a in zip(results, interface.results, interface.aliases) if a < 0]
    parameters += [f"{c_type(t)} *{c}" for c, t in own]
    addresses = [inputs[a] if a >= 0 else c for c, a in zip(results, interface.aliases)]
    lines.append(f"static inline int32_t {names_in_c([name])[0]}({', '.join(parameters)}) {{")
    lines += [f"    const void *const arguments[] = {{{', '.join(inputs) or '0'}}};",
              f"    const int64_t sizes[] = {{{', '.join(symbols) or '0'}}};",
              f"    void *const results[] = {{{', '.join(addresses) or '0'}}};",
              f"    int32_t status = {symbol(name)}(context, arguments, sizes, results);",
              "    if (status == MLC_ARENA_TOO_SMALL && (status = mlc_context_grow(context)) == MLC_OK)",
              f"        status = {symbol(name)}(context, arguments, sizes, results);", "    return status;", "}", ""]
    return "\n".join(lines)


def names_in_c(paths: Sequence[str]) -> list[str]:
    """C names of parameters: `params['w'][0]` becomes params_w_0."""
    out = list[str]()
    for path in paths:
        name = re.sub(r"\W+", "_", path).strip("_")
        while name in out or name in _KEYWORDS:
            name += "_"
        out.append(name)
    return out


def c_type(type: TensorType) -> str:
    """The C type of the elements; 16-bit floats are passed as their bits."""
    return "uint16_t" if type.dtype in (f16, bf16) else _TYPES[str(type.dtype)]


def _comment(text: str) -> str:
    return text.replace("*/", "* /")
