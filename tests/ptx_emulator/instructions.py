"""PTX 8 in the words of PTX 3, which the emulator reads: which instructions it runs as they are, which are put into
others that mean the same, and which are refused.

What the lanes of a warp exchange goes through shared memory of their own; `SYNC` keeps lanes in order that the emulator
does not run in step. A copy to shared memory is a volatile store, which schedule.h lets arrive late: no other store
here is volatile. Blocks have one dimension.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mlc.ir.diag import BackendError

Match = re.Match[str]

EXECUTED = {
    "abs": "f32 f64 s16 s32 s64",
    "add": "rn.f32 rn.f64 s16 s32 s64",
    "and": "b16 b32 b64 pred",
    "atom": "global.exch.b64 global.min.u64",
    "bar": "sync",
    "bfe": "s32 s64 u32 u64",
    "bra": "uni",
    "copysign": "f32 f64",
    "cvt": "f32.f16 f64.f16 f64.f32 rmi.f32.f32 rmi.f64.f64 rn.f16.f32 rn.f32.f64 rn.f32.s16 rn.f32.s32 rn.f32.s64 "
           "rn.f64.s16 rn.f64.s32 rn.f64.s64 rn.f64.u16 rn.f64.u64 rni.f32.f32 rni.f64.f64 rpi.f32.f32 rpi.f64.f64 "
           "rzi.s32.f32 rzi.s64.f32 rzi.s64.f64 s16.s8 s32.s8 s32.s16 s64.s8 u16.u32 u16.u64 u32.u16 u32.u64 u64.u16 "
           "u64.u32",
    "cvta": "to.global.u64",
    "div": "rn.f32 rn.f64 s16 s32 s64 u16 u32 u64",
    "ex2": "approx.ftz.f32",
    "fma": "rn.f32 rn.f64",
    "ld": "global.b16 global.b32 global.b64 global.b8 global.s32 global.s8 global.v2.b16 global.v2.b32 global.v2.b64 "
          "global.v2.b8 global.v4.b16 global.v4.b32 param.b64 shared.b16 shared.b32 shared.b64 shared.v2.b32 "
          "shared.v2.b64",
    "mad": "lo.s16 lo.s32 lo.s64",
    "max": "f32 f64 s16 s32 s64 u16 u64",
    "min": "f32 f64 s16 s32 s64 u16 u32 u64",
    "mov": "b16 b32 b64 pred u32",
    "mul": "hi.s64 hi.u32 hi.u64 lo.s16 lo.s32 lo.s64 rn.f32 rn.f64 wide.s32 wide.u32",
    "neg": "f32 f64 s16 s32 s64",
    "not": "b64 pred",
    "or": "b16 b32 b64 pred",
    "prmt": "b32",
    "rcp": "rn.f32 rn.f64",
    "rem": "s16 s32 s64 u16 u32 u64",
    "ret": "",
    "selp": "b16 b32 b64 f32 f64",
    "setp": "eq.b16 eq.b32 eq.b64 eq.f32 eq.f64 ge.f32 ge.f64 ge.s16 ge.s32 ge.s64 ge.u16 ge.u64 geu.f32 geu.f64 "
            "gt.f32 gt.f64 gt.s16 gt.s32 gt.s64 gt.u16 gt.u32 gt.u64 le.f32 le.f64 le.s16 le.s32 le.s64 le.u16 le.u64 "
            "lt.f32 lt.f64 lt.s16 lt.s32 lt.s64 lt.u16 lt.u32 lt.u64 ltu.f32 ltu.f64 nan.f32 nan.f64 ne.b16 ne.b32 "
            "ne.b64 ne.f32 ne.f64 neu.f32 neu.f64 num.f32 num.f64",
    "shf": "l.wrap.b32",
    "shl": "b16 b32 b64",
    "shr": "s16 s32 s64 u16 u32 u64",
    "sqrt": "rn.f32 rn.f64",
    "st": "global.b16 global.b32 global.b64 global.b8 global.v2.b16 global.v2.b32 global.v2.b64 global.v2.b8 "
          "global.v4.b16 global.v4.b32 shared.b16 shared.b32 shared.b64 shared.v2.b32 shared.v2.b64 shared.v4.b32",
    "sub": "rn.f32 rn.f64 s16 s32 s64",
    "xor": "b16 b32 b64 pred"}
"""Instructions of the test programs that the emulator supports."""

REFUSED = {
    "wgmma": "four warps and a descriptor of shared memory", "tcgen05": "a memory of its own",
    "mbarrier": "barriers that count arrivals and bytes", "cp.async.bulk": "copies that a tensor map describes",
    "barrier.cluster": "blocks that run together", "mapa": "blocks that run together",
    "vote": "lanes that have gone different ways", "redux": "lanes that have gone different ways",
    "activemask": "lanes that have gone different ways", "elect": "lanes that have gone different ways",
    "fence": "an order weaker than that of the emulator, where a store is seen at once",
    "membar": "an order weaker than that of the emulator, where a store is seen at once",
    "call": "a stack", "tex": "textures", "trap": "a device that can be lost",
    "pmevent": "a meaning of its own: here it stands for others"}
"""Unsupported instructions by prefix, with the missing feature."""

LANES = "__lanes"
A, B = 4096, 4096 + 16384
"""Shared memory for every thread of the largest block: a word, then 16 bytes of an mma's a, then 8 of its b. Warps that
are at different instructions must not meet there."""
TEMPORARIES = {"%xs": "b32", "%xr": "b32", "%xf": "f32", "%xq": "b64", "%xd": "f64", "%xh": "b16", "%xp": "pred"}
COMMIT, WAIT_ALL, SYNC = (f"pmevent {n};" for n in (100, 101, 102))
"""Encoding of these numbers in the emulator: schedule.h."""
INSTRUCTION = re.compile(r"^\t(?:@!?%p\d+ )?([a-z][\w.:]*)", re.M)


def adapt(ptx: str) -> str:
    """A kernel in the emulator's words; BackendError, by name, of an instruction that it cannot have."""
    ptx = re.sub(r"\.version .*", ".version 3.0", re.sub(r"\.target .*", ".target sm_35", ptx))
    ptx = re.sub(r"\.ptr(?: \.\w+)?? \.align \d+ |\n\t(?=\t\{)", "", ptx)         # one instruction, one line
    ptx = "\n".join(_one(found[1], line) if (found := INSTRUCTION.match(line)) else line for line in ptx.split("\n"))
    declared = "".join(f"\n\t.reg .{kind} {name}<40>;" for name, kind in TEMPORARIES.items() if name in ptx)
    if LANES in ptx:
        declared += f"\n\t.shared .align 16 .b8 {LANES}[{B + 8192}];"
    return re.sub(r"^\{$", "{" + declared, ptx, count=1, flags=re.M)


def _one(name: str, line: str) -> str:
    for pattern, meaning in ADAPTED.items():
        if found := re.fullmatch(rf"\t{pattern};", line):
            return _lines(meaning(found))
    for start, missing in REFUSED.items():
        if name == start or name.startswith(f"{start}."):
            raise BackendError(f"the emulator refuses PTX: it has no {name}, which needs {missing}", code="MLC0584")
    root, _, rest = name.partition(".")
    if root not in EXECUTED or (rest and rest not in EXECUTED[root].split()):
        raise BackendError(f"the emulator refuses PTX: nobody has tried {line.strip()}", code="MLC0584",
                           hint="see what it makes of it, and add it to tests/ptx_emulator/instructions.py")
    return line


def _lines(text: str) -> str:
    return "\n".join("\t" + part.strip() + ";" for part in text.split(";") if part.strip())


def _constants(m: Match) -> str:
    """A store of a vector with constants in it."""
    where, kind, place, values = m.groups()
    letter = {"b32": "f" if "0f" in values else "r", "b64": "d" if "0d" in values else "q"}.get(kind, "h")
    moved, names = "", []
    for i, value in enumerate(values.split(", ")):
        if not value.startswith("%"):
            moved += f"mov.{kind} %x{letter}{i}, {value};"
            value = f"%x{letter}{i}"
        names.append(value)
    return f"{moved} st.{where}.{kind} {place}, {{{', '.join(names)}}}"


def _extreme(which: str, d: str, a: str, b: str) -> str:
    """max.NaN and min.NaN: a NaN if there is one; of zeros, the positive is the larger."""
    return f"""mov.b32 %xr0, {a}; mov.b32 %xr1, {b}; {which}.f32 %xr2, %xr0, %xr1;
        {'and' if which == 'max' else 'or'}.b32 %xr3, %xr0, %xr1; setp.eq.f32 %xp0, %xr0, %xr1;
        selp.b32 %xr2, %xr3, %xr2, %xp0; setp.nan.f32 %xp0, %xr0, %xr1; selp.b32 {d}, 0x7FFFFFFF, %xr2, %xp0"""


LANE = f"""mov.u32 %xs0, %tid.x; and.b32 %xs1, %xs0, 31; and.b32 %xs2, %xs0, -32; shr.u32 %xs3, %xs1, 2;
    and.b32 %xs4, %xs1, 3; mov.u32 %xs5, {LANES}; shl.b32 %xs6, %xs0, 2; add.u32 %xs6, %xs5, %xs6;
    shl.b32 %xs7, %xs2, 2; add.u32 %xs7, %xs5, %xs7;"""
"""xs0 thread, xs1 lane, xs2 first of the warp, xs3 lane / 4, xs4 lane % 4, xs6 and xs7 where words of xs0 and xs2
are."""


def _shuffle(m: Match) -> str:
    """shfl.sync; c holds the mask of a segment above the last (of `up`, the first) lane of it that may be read."""
    kind, d, p, a, b, c = m.groups()
    segment, clamp = int(c) >> 8 & 31, int(c) & 31
    j = {"down": f"add.s32 %xs10, %xs1, {b};", "up": f"sub.s32 %xs10, %xs1, {b};", "bfly": f"xor.b32 %xs10, %xs1, {b};",
         "idx": f"and.b32 %xs10, %xs1, {segment}; and.b32 %xs11, {b}, {~segment & 31}; or.b32 %xs10, %xs10, %xs11;"}
    return f"""{LANE} {j[kind]} and.b32 %xs11, %xs1, {segment}; or.b32 %xs11, %xs11, {clamp & ~segment};
        setp.{'ge' if kind == 'up' else 'le'}.s32 %xp0, %xs10, %xs11; selp.b32 %xs10, %xs10, %xs1, %xp0;
        shl.b32 %xs10, %xs10, 2; add.u32 %xs10, %xs7, %xs10;
        st.shared.b32 [%xs6], {a}; {SYNC} ld.shared.b32 {d}, [%xs10]; {SYNC} {f'mov.pred {p}, %xp0' if p else ''}"""


def _ldmatrix(m: Match) -> str:
    """Lane 8 i + r has the address of row r of matrix i; lane l gets elements 2 (l % 4) and one on of row l / 4."""
    transposed, names, place = m[1], m[2].split(", "), m[3]
    base, _, offset = place.partition("+")
    text = f"{LANE} cvt.u32.u64 %xs10, {base}; add.u32 %xs10, %xs10, {offset or 0}; st.shared.b32 [%xs6], %xs10; {SYNC}"
    for i, d in enumerate(names):
        if not transposed:
            text += f"""shl.b32 %xs11, %xs3, 2; add.u32 %xs11, %xs11, %xs7; ld.shared.b32 %xs12, [%xs11+{32 * i}];
                shl.b32 %xs13, %xs4, 2; add.u32 %xs12, %xs12, %xs13; ld.shared.b32 {d}, [%xs12];"""
            continue
        text += "shl.b32 %xs11, %xs4, 3; add.u32 %xs11, %xs11, %xs7; shl.b32 %xs13, %xs3, 1;"
        for half in range(2):
            text += f"""ld.shared.b32 %xs12, [%xs11+{32 * i + 4 * half}]; add.u32 %xs12, %xs12, %xs13;
                ld.shared.u16 %xh{half}, [%xs12]; cvt.u32.u16 %xs{14 + half}, %xh{half};"""
        text += f"shl.b32 %xs15, %xs15, 16; or.b32 {d}, %xs14, %xs15;"
    return text + SYNC


def _mma(m: Match) -> str:
    """d = a b + c of 16 x 8 results. PTX leaves open how it is rounded: here as by mlc's meaning of the operation,
    products added up in f64 in the order of k, then to c, and rounded once. Lane l has a's rows l / 4 and 8 on, b's
    column l / 4, and results 2 (l % 4) and one on of these rows; of a row's numbers it has those words of 32 bits that
    follow each other from l % 4 on, every fourth."""
    depth, kind = int(m[1]), m[2]
    d, a, b, c = (m[i].split(", ") for i in range(3, 7))
    text = LANE + """shl.b32 %xs10, %xs0, 4; add.u32 %xs10, %xs10, %xs5;
        shl.b32 %xs11, %xs0, 3; add.u32 %xs11, %xs11, %xs5;"""
    text += "".join(f"st.shared.b32 [%xs10+{A + 4 * i}], {x};" for i, x in enumerate(a))
    text += "".join(f"st.shared.b32 [%xs11+{B + 4 * i}], {x};" for i, x in enumerate(b)) + SYNC
    text += """and.b32 %xs12, %xs1, 28; add.u32 %xs12, %xs12, %xs2; shl.b32 %xs12, %xs12, 4; add.u32 %xs12, %xs12, %xs5;
        shl.b32 %xs13, %xs4, 3; add.u32 %xs13, %xs13, %xs2; shl.b32 %xs13, %xs13, 3; add.u32 %xs13, %xs13, %xs5;"""
    text += "".join(f"mov.b64 %xd{20 + i}, 0d0000000000000000;" for i in range(4))

    def load(to: int, place: str) -> str:
        if kind == "tf32":                                 # the last 13 bits are not looked at
            return f"ld.shared.b32 %xr0, [{place}]; and.b32 %xr0, %xr0, -8192; mov.b32 %xf{to}, %xr0;"
        into = f"ld.shared.u16 %xh0, [{place}];"
        return into + (f"cvt.f32.f16 %xf{to}, %xh0;" if kind == "f16" else
                       f"cvt.u32.u16 %xr0, %xh0; shl.b32 %xr0, %xr0, 16; mov.b32 %xf{to}, %xr0;")

    for k in range(depth):
        word, half = (k, 0) if kind == "tf32" else divmod(k, 2)
        lane, register = word % 4, word // 4
        for i in range(2):                                 # rows l / 4 and l / 4 + 8; columns 2 (l % 4) and one on
            text += load(i, f"%xs12+{A + 16 * lane + 4 * (i + 2 * register) + 2 * half}")
            text += load(2 + i, f"%xs13+{B + 32 * i + 8 * lane + 4 * register + 2 * half}")
        text += "".join(f"cvt.f64.f32 %xd{i}, %xf{i};" for i in range(4))
        text += "".join(f"fma.rn.f64 %xd{20 + 2 * i + j}, %xd{i}, %xd{2 + j}, %xd{20 + 2 * i + j};"
                        for i in range(2) for j in range(2))
    for i, x in enumerate(c):
        text += f"mov.b32 %xf0, {x}; cvt.f64.f32 %xd0, %xf0; add.rn.f64 %xd{20 + i}, %xd0, %xd{20 + i};"
    return text + SYNC + "".join(f"cvt.rn.f32.f64 %xf0, %xd{20 + i}; mov.b32 {x}, %xf0;" for i, x in enumerate(d))


def _copy(m: Match) -> str:
    """cp.async: what is copied is read at once, and written when the copy arrives."""
    words = int(m[3]) // 4
    names = ", ".join(f"%xr{i}" for i in range(words))
    vector, names = (f".v{words}.b32", f"{{{names}}}") if words > 1 else (".b32", names)
    return f"ld.global{vector} {names}, {m[2]}; st.volatile.shared{vector} {m[1]}, {names}"


def _copy_some(m: Match) -> str:
    """The same of all bytes or of none, which are zeros then."""
    if m[4] == m[3]:
        return _copy(m)
    words = int(m[3]) // 4
    kept = "".join(f"selp.b32 %xr{i}, %xr{i}, 0, %xp0;" for i in range(words))
    load, store = _copy(m).split("; ")
    return f"{load}; setp.ne.b32 %xp0, {m[4]}, 0; {kept} {store}"


def _small(name: str, d: str, *operands: str) -> str:
    """An instruction of f16 by that of f32: what it gives, rounded to f16, is what would have been rounded once."""
    wide = "".join(f"cvt.f32.f16 %xf{i}, {x};" for i, x in enumerate(operands))
    names = ", ".join(f"%xf{i}" for i in range(len(operands)))
    if name.startswith("setp"):
        return f"{wide} {name}.f32 {d}, {names}"
    return f"{wide} {name}.f32 %xf2, {names}; cvt.rn.f16.f32 {d}, %xf2"


def _extreme_small(m: Match) -> str:
    which, d, a, b = m.groups()
    extreme = _extreme(which, "%xr4", "%xf0", "%xf1")
    return f"cvt.f32.f16 %xf0, {a}; cvt.f32.f16 %xf1, {b}; {extreme}; mov.b32 %xf2, %xr4; cvt.rn.f16.f32 {d}, %xf2"


def _narrow(to: str, d: str, high: str, low: str) -> str:
    """A word of two f32, rounded to 16 bits; one of bf16 has the upper half of its bits, and a NaN all but the sign."""
    text = ""
    for i, x in enumerate((low, high)):
        if to == "f16":
            text += f"cvt.rn.f16.f32 %xh{i}, {x}; cvt.u32.u16 %xr{i}, %xh{i};"
            continue
        text += f"""mov.b32 %xf{i}, {x}; mov.b32 %xr{i}, %xf{i}; shr.u32 %xr2, %xr{i}, 16; and.b32 %xr2, %xr2, 1;
            add.u32 %xr2, %xr2, 32767; add.u32 %xr{i}, %xr{i}, %xr2; shr.u32 %xr{i}, %xr{i}, 16;
            setp.nan.f32 %xp0, %xf{i}, %xf{i}; selp.b32 %xr{i}, 32767, %xr{i}, %xp0;"""
    return text + f"shl.b32 %xr1, %xr1, 16; or.b32 {d}, %xr0, %xr1"


def _narrow_one(m: Match) -> str:
    return f"{_narrow('bf16', '%xr3', m[2], m[2])}; cvt.u16.u32 {m[1]}, %xr3"


def _halves(m: Match) -> str:
    """A word from two halves of it."""
    return (f"cvt.u32.u16 %xr0, {m[2]}; cvt.u32.u16 %xr1, {m[3]}; shl.b32 %xr1, %xr1, 16; or.b32 {m[1]}, %xr0, %xr1")


def _into_halves(m: Match) -> str:
    return f"mov.b32 %xr0, {m[3]}; cvt.u16.u32 {m[1]}, %xr0; shr.u32 %xr0, %xr0, 16; cvt.u16.u32 {m[2]}, %xr0"


ADAPTED: dict[str, Callable[[Match], str]] = {
    r"shfl\.sync\.(down|up|bfly|idx)\.b32\s+(%\w+)(?:\|(%\w+))?, (\S+), (\S+), (\d+), \S+": _shuffle,
    r"ldmatrix\.sync\.aligned\.m8n8\.x\d(\.trans)?\.shared\.b16 \{([^}]*)\}, \[(\S+)\]": _ldmatrix,
    r"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.f32\.(bf16|f16|tf32)\.\2\.f32\s+\{(.*)\},\s+\{(.*)\},\s+\{(.*)\},"
    r"\s+\{(.*)\}": _mma,
    r"cp\.async\.c[ag]\.shared\.global (\[\S+\]), (\[\S+\]), (\d+)": _copy,
    r"cp\.async\.c[ag]\.shared\.global (\[\S+\]), (\[\S+\]), (\d+), (%r\d+|16)": _copy_some,
    r"cp\.async\.commit_group": lambda m: COMMIT,
    r"cp\.async\.wait_group\s+(\d+)": lambda m: f"pmevent {m[1]}",
    r"cp\.async\.wait_all": lambda m: WAIT_ALL,
    r"(max|min)\.NaN\.f32\s+(\S+), (\S+), (\S+)": lambda m: _extreme(*m.groups()),
    r"(max|min)\.NaN\.f16\s+(\S+), (\S+), (\S+)": _extreme_small,
    r"cvt\.rn\.(bf16|f16)x2\.f32\s+(\S+), (\S+), (\S+)": lambda m: _narrow(*m.groups()),
    r"cvt\.rn\.bf16\.f32\s+(\S+), (\S+)": _narrow_one,
    r"abs\.f16\s+(\S+), (\S+)": lambda m: f"and.b16 {m[1]}, {m[2]}, 32767",
    r"neg\.f16\s+(\S+), (\S+)": lambda m: f"xor.b16 {m[1]}, {m[2]}, 32768",
    r"(setp\.\w+|(?:add|sub|mul)\.rn)\.f16\s+(\S+), (\S+), (\S+)": lambda m: _small(*m.groups()),
    r"(cvt\.r[nzmp]i)\.f16\.f16\s+(\S+), (\S+)": lambda m: _small(f"{m[1]}.f32", m[2], m[3]),
    r"st\.(\S+\.v[24])\.(\w+)\s+(\[\S+\]), \{([^}]*(?<=[{ ])[^%}][^}]*)\}": _constants,
    r"mov\.b32\s+(%r\d+), \{(%rs\d+), (%rs\d+)\}": _halves,
    r"mov\.b32\s+\{(%rs\d+), (%rs\d+)\}, (%r\d+)": _into_halves,
    r"mov\.b64\s+\{_, (%r\d+)\}, (%rd\d+)": lambda m: f"shr.u64 %xq0, {m[2]}, 32; cvt.u32.u64 {m[1]}, %xq0",
    r"mov\.b64\s+\{(%r\d+), _\}, (%rd\d+)": lambda m: f"cvt.u32.u64 {m[1]}, {m[2]}"}
"""Instructions that are rewritten: a pattern of the whole line, and its equivalent."""
