"""Objects become shared objects that load and run; bad objects become errors, never crashes."""

import ctypes
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from mlc.backends.cpu.targets import LEVELS
from mlc.backends.link import link, undefined_symbols
from mlc.backends.load import Library, load
from mlc.backends.object_code import compile_object
from mlc.ir.abi import ALLOWED_EXTERNALS
from mlc.ir.diag import BackendError

V3 = LEVELS["x86-64-v3"]
ALLOWED = ALLOWED_EXTERNALS | {"Py_IncRef", "_Py_NoneStruct", "PyExc_TypeError", "not_there_at_all"}

# One of everything: mergeable constants, a vector constant, read-only bytes, initialised and zeroed variables, a table
# of local functions, a relocated pointer to an import, calls of imports, a weak import, GOT access to a definition.
PROGRAM = """
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@not_there_at_all = extern_weak global i8
@message = private constant [6 x i8] c"hello\\00"
@counter = internal global i64 40
@zeroed = internal global [100000 x float] zeroinitializer, align 64
@table = internal constant [2 x ptr] [ptr @plus, ptr @minus]
@exception = internal global ptr @PyExc_TypeError
@public = global i32 7
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @Py_IncRef(ptr)

define internal i64 @plus(i64 %a, i64 %b) noinline {
  %r = add i64 %a, %b
  ret i64 %r
}
define internal i64 @minus(i64 %a, i64 %b) noinline {
  %r = sub i64 %a, %b
  ret i64 %r
}
define i64 @apply(i64 %which, i64 %a, i64 %b) {
  %p = getelementptr ptr, ptr @table, i64 %which
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %a, i64 %b)
  ret i64 %r
}
define double @third(double %x) {
  %r = fmul double %x, 0x3FD5555555555555
  ret double %r
}
define void @ramp(ptr %out) {
  %v = uitofp <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7> to <8 x float>
  store <8 x float> %v, ptr %out, align 4
  ret void
}
define ptr @text() {
  ret ptr @message
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define float @through_bss(ptr %from, i64 %bytes) {
  call void @llvm.memcpy.p0.p0.i64(ptr @zeroed, ptr %from, i64 %bytes, i1 false)
  %p = getelementptr float, ptr @zeroed, i64 1
  %a = load float, ptr %p
  %q = getelementptr float, ptr @zeroed, i64 99999
  %b = load float, ptr %q
  %r = fadd float %a, %b
  ret float %r
}
define ptr @none() {
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}
define ptr @type_error() {
  %slot = load volatile ptr, ptr @exception
  %r = load ptr, ptr %slot
  ret ptr %r
}
define i1 @weak_is_null() {
  %r = icmp eq ptr @not_there_at_all, null
  ret i1 %r
}
define i32 @read_public() {
  %r = load i32, ptr @public
  ret i32 %r
}
define hidden i32 @hidden() {
  ret i32 0
}
"""
EXPORTS = ["apply", "third", "ramp", "text", "count", "through_bss", "none", "type_error", "weak_is_null",
           "read_public", "public"]


@pytest.fixture(scope="module")
def obj() -> bytes:
    return compile_object(PROGRAM, V3)


@pytest.fixture(scope="module")
def so(obj: bytes) -> bytes:
    return link(obj, EXPORTS, ALLOWED, soname="everything.so")


@pytest.fixture(scope="module")
def library(so: bytes) -> Library:
    return load(so)


def test_constants(library: Library) -> None:
    assert library.function("third", ctypes.c_double, [ctypes.c_double])(6.0) == 2.0
    out = (ctypes.c_float * 8)()
    library.function("ramp", None, [ctypes.c_void_p])(out)
    assert list(out) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert library.function("text", ctypes.c_char_p, [])() == b"hello"


def test_function_table(library: Library) -> None:
    apply = library.function("apply", ctypes.c_int64, [ctypes.c_int64] * 3)
    assert [apply(0, 30, 12), apply(1, 30, 12)] == [42, 18]


def test_variables(library: Library) -> None:
    count = library.function("count", ctypes.c_int64, [])
    assert count() + 1 == count()
    public = ctypes.c_int32.from_address(library.address("public"))
    public.value = -5
    assert library.function("read_public", ctypes.c_int32, [])() == -5


def test_zeroed_memory_and_memcpy(library: Library) -> None:
    values = (ctypes.c_float * 3)(1.5, 2.5, 3.5)
    through_bss = library.function("through_bss", ctypes.c_float, [ctypes.c_void_p, ctypes.c_int64])
    assert through_bss(values, 12) == 2.5


def test_imports(library: Library) -> None:
    assert library.function("none", ctypes.py_object, [])() is None
    assert library.function("type_error", ctypes.c_void_p, [])() == id(TypeError)
    assert library.function("weak_is_null", ctypes.c_bool, [])()


def test_each_load_is_a_library_of_its_own(so: bytes) -> None:
    """The loader remembers paths and descriptor numbers come back, so this fails if a path is ever reused."""
    loaded = [load(so) for _ in range(20)]
    assert len({library.address("count") for library in loaded}) == 20
    other = link(compile_object("define i32 @f() {\n  ret i32 9\n}", V3), ["f"])
    assert load(other).function("f", ctypes.c_int, [])() == 9


def test_deterministic(obj: bytes, so: bytes) -> None:
    assert link(compile_object(PROGRAM, V3), EXPORTS, ALLOWED, soname="everything.so") == so
    assert undefined_symbols(obj) == ["PyExc_TypeError", "Py_IncRef", "_Py_NoneStruct", "memcpy", "not_there_at_all"]


@pytest.mark.parametrize("text", [
    "@only = constant [3 x i32] [i32 1, i32 2, i32 3]",
    "@only = global i32 5",
    "@only = global [5 x i64] zeroinitializer, align 4096",
    "@only = constant [0 x i32] zeroinitializer",
    "define void @only() {\n  ret void\n}",
    "define void @only() uwtable {\n  ret void\n}",
])
def test_small_objects(text: str, tmp_path: Path) -> None:
    """Images in which most sections are absent."""
    so = link(compile_object(text, V3), ["only"])
    assert load(so).address("only")
    assert_well_formed(so, tmp_path)


def test_many_exports() -> None:
    """Long names and hash chains."""
    names = [f"{'long_' * 20}name_{i}" for i in range(300)]
    text = "".join(f"define i32 @{name}() {{\n  ret i32 {i}\n}}\n" for i, name in enumerate(names))
    library = load(link(compile_object(text, V3), names))
    assert [library.function(name, ctypes.c_int, [])() for name in names] == list(range(300))


def test_well_formed(so: bytes, tmp_path: Path) -> None:
    assert_well_formed(so, tmp_path)


def assert_well_formed(so: bytes, folder: Path) -> None:
    """The binutils, if present, read all of it without a warning, and no page is both writable and executable."""
    file = folder / "it.so"
    file.write_bytes(so)
    for command in (["readelf", "-aW"], ["readelf", "-W", "--debug-dump=frames"], ["objdump", "-dxT"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, file], capture_output=True, text=True, check=True)
            assert not done.stderr and "Warning" not in done.stdout and "bad" not in done.stdout
    count, = struct.unpack_from("<H", so, 56)
    segments = [struct.unpack_from("<IIQQQQQQ", so, 64 + 56 * i) for i in range(count)]
    loads = [segment for segment in segments if segment[0] == 1]
    assert all(flags & 3 != 3 and offset == address and address + held <= address + size
               for _, flags, offset, address, _, held, size, _ in loads)
    pages = [(segment[3] // 4096, (segment[3] + segment[6] + 4095) // 4096) for segment in loads]
    assert all(end <= start for (_, end), (start, _) in zip(pages, pages[1:]))
    assert [flags for kind, flags, *_ in segments if kind == 0x6474E551] == [6]  # GNU_STACK: not executable


def test_loaded_pages_are_protected(so: bytes) -> None:
    library = load(so)
    wanted = {library.address("count"): "r-xp", library.address("public"): "rw-p"}
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        assert not ("mlc" in line and "wx" in line)
        for address in [address for address in wanted if start <= address < end]:
            assert line.split()[1] == wanted.pop(address)
    assert not wanted


# --- what is refused ------------------------------------------------------------------------------------------------


def refused(obj: bytes, exports: list[str], code: str, match: str) -> None:
    with pytest.raises(BackendError, match=match) as caught:
        link(obj, exports, ALLOWED)
    assert caught.value.code == code


def test_refuses_unlisted_externals() -> None:
    obj = compile_object("declare i32 @system(ptr)\ndefine i32 @f() {\n  %r = call i32 @system(ptr null)\n"
                         "  ret i32 %r\n}", V3)
    refused(obj, ["f"], "MLC0522", "external symbol 'system'")


@pytest.mark.parametrize("name", ["hidden", "plus", "message", "absent", "memcpy"])
def test_refuses_to_export_what_is_not_public(obj: bytes, name: str) -> None:
    refused(obj, [name], "MLC0523", f"cannot export '{name}'")


@pytest.mark.parametrize(("text", "match"), [
    ("@x = thread_local global i32 1\n@f = global i32 1", "thread-local"),
    ("@llvm.global_ctors = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 1, ptr @f, ptr null}]\n"
     "@ran = global i32 0\ndefine void @f() {\n  store volatile i32 1, ptr @ran\n  ret void\n}", "on loading"),
    ("@x = common global i32 0\n@f = global i32 1", "common block"),
    ('module asm ".section .rodata"\nmodule asm ".globl f"\nmodule asm "f: .quad f"', "read-only section .rodata"),
    ('@memcpy = external dso_local global i8\ndefine i8 @f() {\n  %r = load i8, ptr @memcpy\n  ret i8 %r\n}',
     "dso_local"),
    ('define void @f() {\n  call void asm "movl $$f, %eax", "~{eax}"()\n  ret void\n}', "R_X86_64_32"),
    ('@f = ifunc void (), ptr @g\ndefine internal ptr @g() {\n  ret ptr null\n}', "symbol f of type 10"),
])
def test_refuses_unsupported_object_features(text: str, match: str) -> None:
    refused(compile_object(text, V3), ["f"], "MLC0521", match)


def test_refuses_files_that_are_not_objects(so: bytes, obj: bytes) -> None:
    refused(b"", [], "MLC0520", "file header")
    refused(b"MZ" + bytes(100), [], "MLC0520", "not 64-bit little endian ELF")
    refused(so, [], "MLC0521", "not a relocatable")
    for size in range(0, len(obj), 97):
        with pytest.raises(BackendError):
            link(obj[:size], EXPORTS, ALLOWED)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_objects_give_errors_only(obj: bytes, seed: int) -> None:
    """The outcome of a changed byte is a link or a BackendError; the result, if any, is not loaded."""
    draw = random.Random(seed)
    headers = struct.unpack_from("<Q", obj, 40)[0]
    for trial in range(100):
        damaged = bytearray(obj)
        for _ in range(draw.randint(1, 4)):  # every other trial aims at the headers, where the structure is
            damaged[draw.randrange(headers if trial % 2 else 0, len(obj))] = draw.randrange(256)
        try:
            assert link(bytes(damaged), EXPORTS, ALLOWED)
        except BackendError as error:
            assert error.code in ("MLC0520", "MLC0521", "MLC0522", "MLC0523")


def test_load_errors(so: bytes) -> None:
    with pytest.raises(BackendError) as caught:
        load(b"not a library")
    assert caught.value.code == "MLC0531"
    missing = compile_object("declare void @missing_mlc()\ndefine void @f() {\n  call void @missing_mlc()\n"
                             "  ret void\n}", V3)
    with pytest.raises(BackendError, match="missing_mlc") as caught:
        load(link(missing, ["f"], frozenset({"missing_mlc"})))
    assert caught.value.code == "MLC0531"
    with pytest.raises(BackendError) as caught:
        load(so).address("plus")
    assert caught.value.code == "MLC0532"


def test_load_without_memfd(so: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "memfd_create", forbidden)
    assert load(so).function("third", ctypes.c_double, [ctypes.c_double])(3.0) == 1.0


def test_load_leaves_no_descriptor_open(so: bytes) -> None:
    load(so)
    before = os.listdir("/proc/self/fd")
    load(so)
    assert len(os.listdir("/proc/self/fd")) == len(before)


# --- several objects ------------------------------------------------------------------------------------------------

CALLER = """
@table = internal constant [1 x ptr] [ptr @double_it]
@shared = external hidden global i32
declare hidden i32 @double_it(i32)
declare void @Py_IncRef(ptr)
define i32 @direct(i32 %x) {
  %r = call i32 @double_it(i32 %x)
  ret i32 %r
}
define i32 @through_table(i32 %x) {
  %f = load volatile ptr, ptr @table
  %r = call i32 %f(i32 %x)
  ret i32 %r
}
define i32 @read_shared() {
  %r = load i32, ptr @shared
  ret i32 %r
}
@visible = external global i32
define i32 @read_through_got() {
  %r = load i32, ptr @visible
  ret i32 %r
}
"""
CALLEE = """
@shared = hidden global i32 11
@visible = global i32 12
@private_constant = private constant [4 x i32] [i32 2, i32 2, i32 2, i32 2]
define hidden i32 @double_it(i32 %x) {
  %p = getelementptr i32, ptr @private_constant, i32 1
  %two = load volatile i32, ptr %p
  %r = mul i32 %x, %two
  ret i32 %r
}
"""
SEVERAL = ["direct", "through_table", "read_shared", "read_through_got"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_several_objects(order: tuple[int, ...], tmp_path: Path) -> None:
    made = [compile_object(CALLER, V3), compile_object(CALLEE, V3)]
    objects = [made[i] for i in order]
    so = link(objects, SEVERAL, ALLOWED)
    library = load(so)
    called = {name: library.function(name, ctypes.c_int, [ctypes.c_int]) for name in SEVERAL}
    assert [called["direct"](21), called["through_table"](4)] == [42, 8]
    assert [called["read_shared"](0), called["read_through_got"](0)] == [11, 12]
    assert link(objects, SEVERAL, ALLOWED) == so and undefined_symbols(objects) == []
    assert_well_formed(so, tmp_path)


def test_many_objects_with_unwind_tables(tmp_path: Path) -> None:
    """Each has a list of frames; the unwinder walks one."""
    objects = [compile_object(f"define i32 @f{i}() uwtable {{\n  ret i32 {i}\n}}", V3) for i in range(9)]
    names = [f"f{i}" for i in range(9)]
    so = link(objects, names)
    assert [load(so).function(name, ctypes.c_int, [])() for name in names] == list(range(9))
    assert_well_formed(so, tmp_path)
    if shutil.which("readelf"):
        frames = subprocess.run(["readelf", "-W", "--debug-dump=frames", tmp_path / "it.so"], capture_output=True,
                                text=True, check=True).stdout
        assert frames.count(" FDE ") == 9 and frames.count("ZERO terminator") == 1


def test_objects_may_share_private_names() -> None:
    text = "@c = private constant i32 {0}\ndefine internal i32 @g() noinline {{\n  %r = load volatile i32, ptr @c\n" \
           "  ret i32 %r\n}}\ndefine i32 @f{0}() {{\n  %r = call i32 @g()\n  ret i32 %r\n}}"
    library = load(link([compile_object(text.format(i), V3) for i in range(5)], [f"f{i}" for i in range(5)]))
    assert [library.function(f"f{i}", ctypes.c_int, [])() for i in range(5)] == list(range(5))


def test_a_name_is_defined_once(obj: bytes) -> None:
    with pytest.raises(BackendError, match="'apply' is defined twice") as caught:
        link([obj, obj], EXPORTS, ALLOWED)
    assert caught.value.code == "MLC0524"


def test_undefined_symbols_become_imports() -> None:
    with pytest.raises(BackendError, match="external symbol 'double_it'") as caught:
        link([compile_object(CALLER, V3)], SEVERAL, ALLOWED)
    assert caught.value.code == "MLC0522"


def test_damage_in_one_of_several_objects() -> None:
    draw, made = random.Random(0), [compile_object(CALLER, V3), compile_object(CALLEE, V3)]
    for trial in range(200):
        objects = list(made)
        damaged = bytearray(objects[trial % 2])
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        objects[trial % 2] = bytes(damaged)
        try:
            assert link(objects, SEVERAL, ALLOWED)
        except BackendError as error:
            assert error.code in ("MLC0520", "MLC0521", "MLC0522", "MLC0523", "MLC0524")
