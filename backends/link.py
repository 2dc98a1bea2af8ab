"""Link relocatable ELF objects, for x86-64 or AArch64, into a shared object, without a linker on the machine.

The objects are ones that LLVM wrote (position independent, small code model) for code of ours. The result has:

    segment     holds                                                                        protection
    read-only   headers, .hash .dynsym .dynstr .rela.dyn, constants, .eh_frame               R
    code        .text, and .plt: one jump through the GOT for each imported function         R X
    data        .data.rel.ro .dynamic .got, then, on pages of their own, .data and .bss      R W (first part: R)

Every imported name must be on the caller's allow-list. References between symbols of the objects are bound here, so
no other library can take their place; a name may be defined once. Names are imported without a version: fine for memcpy
and for CPython's stable ABI; glibc then gives the oldest version that a symbol has. The result depends on nothing but
the arguments.

The input may be corrupt: every offset and size is checked as a Python int, and what is wrong is a BackendError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlc.backends.combine import combined, exportable, imports
from mlc.backends.elf import (
    DF_1_NOW,
    DF_BIND_NOW,
    DT,
    DYNAMIC,
    ET_DYN,
    FILE_HEADER,
    IDENT,
    MAX_IMAGE,
    PROGRAM_HEADER,
    PT,
    RELA,
    SECTION_HEADER,
    SHF,
    SHN_UNDEF,
    SHT,
    STB,
    SYMBOL,
    ObjectFile,
    Relocation,
    Section,
    Symbol,
    read_object,
    unsupported,
)
from mlc.backends.machines import patched
from mlc.ir.abi import ALLOWED_EXTERNALS
from mlc.ir.diag import BackendError


@dataclass(eq=False)
class _Piece:
    """A section of the image. `content` is None where memory starts as zeros that the file does not hold."""

    name: str
    kind: int
    flags: int
    align: int
    content: bytearray | None
    size: int
    entry_size: int = 0
    link: str = ""
    info: int = 0
    address: int = 0
    index: int = 0

    @property
    def end(self) -> int:
        return self.address + self.size

    def end_list(self) -> None:
        """Add the entry of length 0 that ends the list of frames that an unwinder walks."""
        assert self.content is not None
        self.content += bytes(4)
        self.size += 4


@dataclass
class _Segment:
    """A run of pieces, mapped together with one protection, starting on a page of its own."""

    flags: int  # PF_*: 4 read, 2 write, 1 execute
    pieces: list[_Piece] = field(default_factory=list)


def link(objects: bytes | Sequence[bytes], exports: Sequence[str], allowed: frozenset[str] = ALLOWED_EXTERNALS,
         soname: str | None = None) -> bytes:
    """The shared object that exports `exports` from one or several objects, in their order.

    It may import the names in `allowed` and no others.
    """
    return link_file(read_objects(objects), exports, allowed, soname)


def link_file(source: ObjectFile, exports: Sequence[str], allowed: frozenset[str] = ALLOWED_EXTERNALS,
              soname: str | None = None, optional: frozenset[str] = frozenset()) -> bytes:
    """As `link`, of what `read_objects` gave.

    optional  names it may import besides, that need not be there when it is loaded: their addresses are then null
    """
    source = replace(source, symbols=[replace(s, binding=STB.WEAK) if s.imported and s.name in optional else s
                                      for s in source.symbols])
    for name in imports(source):
        if name not in allowed | optional:
            raise BackendError(f"the code uses external symbol {name!r}, which it may not import", code="MLC0522",
                               hint="lower the operation that calls it; LLVM turns some casts and mathematics into "
                                    "calls")
    return _Linker(source, _exported(source, exports), soname).link()


def read_objects(objects: bytes | Sequence[bytes]) -> ObjectFile:
    """One object or several, as one."""
    return combined([read_object(obj) for obj in ([objects] if isinstance(objects, bytes) else objects)])


def undefined_symbols(objects: bytes | Sequence[bytes]) -> list[str]:
    """The names that one object, or several together, leave to other libraries, sorted."""
    return imports(read_objects(objects))


def _exported(source: ObjectFile, names: Sequence[str]) -> list[Symbol]:
    """The definitions of `names`, in that order."""
    visible = exportable(source)
    for name in names:
        if name not in visible:
            raise BackendError(f"cannot export {name!r}: the object has no such public definition", code="MLC0523")
    return [visible[name] for name in dict.fromkeys(names)]


class _Linker:
    """The steps of one link: what is needed, where it goes, what is written there."""

    def __init__(self, source: ObjectFile, exported: list[Symbol], soname: str | None) -> None:
        self.source = source
        self.machine = source.machine
        self.soname = soname
        self.exported = exported
        self.imported = list({symbol.name: symbol for symbol in source.symbols if symbol.imported}.values())
        self.dynamic_index = {symbol.name: i for i, symbol in enumerate(self.imported, start=1)}
        self.got: dict[str | int, int] = {}  # symbol -> number of its slot
        self.stubs: dict[str, int] = {}  # imported function -> number of its jump in .plt
        self.address_words = 0
        self.loader_work: list[tuple[int, int, int]] = []  # (address, symbol << 32 | type, addend)
        self.placed = {index: self.input_piece(section) for index, section in source.sections.items()}
        self.unwind = [piece for piece in self.placed.values() if piece.name == ".eh_frame"]
        if any(piece.size % piece.align for piece in self.unwind):
            unsupported("a gap between two sections .eh_frame, which the unwinder would take for their end")
        if self.unwind:
            self.unwind[-1].end_list()
        for relocation in source.relocations:
            self.scan(relocation)

    def link(self) -> bytes:
        self.make_pieces()
        self.lay_out()
        for relocation in self.source.relocations:
            self.relocate(relocation)
        self.fill_got_and_plt()
        self.fill_dynamic_tables()
        return self.write()

    # what is needed

    def input_piece(self, section: Section) -> _Piece:
        content = None if section.kind == SHT.NOBITS else bytearray(section.content or b"\0")  # symbols need a place
        kind = SHT.PROGBITS if section.kind == SHT.X86_64_UNWIND else section.kind
        flags = section.flags & (SHF.ALLOC | SHF.WRITE | SHF.EXEC)
        return _Piece(section.name, kind, flags, section.align, content,
                      max(section.size, 1) if content is None else len(content))

    def got_key(self, symbol: int) -> str | int:
        """Imports share a slot by name; a definition has one by its number in the object's table."""
        return self.source.symbols[symbol].name if self.source.symbols[symbol].imported else symbol

    def scan(self, relocation: Relocation) -> None:
        """Note the GOT slots, jumps and words for the loader that a relocation calls for, and refuse what cannot be."""
        symbol, section = self.source.symbols[relocation.symbol], self.source.sections[relocation.section]
        where = f"{section.name}+{relocation.offset:#x}"
        if relocation.kind.form == "none":
            return
        if not symbol.imported and symbol.section not in self.placed:
            unsupported(f"reference at {where} to {symbol}, which is not part of the image")
        if relocation.kind.through == "got":
            self.got.setdefault(self.got_key(relocation.symbol), len(self.got))
        elif relocation.kind.form == "absolute":
            if not section.flags & SHF.WRITE:
                unsupported(f"address of {symbol} stored in read-only section {section.name}")
            self.address_words += 1
        elif symbol.imported:
            if relocation.kind.through != "call":
                unsupported(f"direct access to external {symbol} at {where}: declare it without dso_local")
            self.stubs.setdefault(symbol.name, len(self.stubs))
            self.got.setdefault(symbol.name, len(self.got))

    # where it goes

    def make_pieces(self) -> None:
        """All sections of the image in their order, with final sizes; contents of the synthetic ones come later."""
        count = 1 + len(self.imported) + len(self.exported)
        names = [symbol.name for symbol in self.imported + self.exported] + ([self.soname] if self.soname else [])
        self.strings, self.string_offset = _string_table(names)
        work = self.address_words + len(self.got)

        def synthetic(name: str, kind: int, size: int, flags: int = 0, **more: Any) -> _Piece:
            return _Piece(name, kind, SHF.ALLOC | flags, more.pop("align", 8), bytearray(size), size, **more)

        self.hash = synthetic(".hash", SHT.HASH, 4 * (2 + _bucket_count(count) + count), entry_size=4, link=".dynsym")
        self.dynsym = synthetic(".dynsym", SHT.DYNSYM, SYMBOL.size * count, entry_size=SYMBOL.size, link=".dynstr",
                                info=1)
        self.dynstr = synthetic(".dynstr", SHT.STRTAB, len(self.strings), align=1)
        self.rela = synthetic(".rela.dyn", SHT.RELA, RELA.size * work, entry_size=RELA.size, link=".dynsym")
        self.eh_frame_header = synthetic(".eh_frame_hdr", SHT.PROGBITS, 8, align=4)
        self.plt = synthetic(".plt", SHT.PROGBITS, self.machine.stub_size * len(self.stubs), SHF.EXEC, align=16,
                             entry_size=self.machine.stub_size)
        self.dynamic = synthetic(".dynamic", SHT.DYNAMIC, DYNAMIC.size * len(self.dynamic_entries()), SHF.WRITE,
                                 entry_size=DYNAMIC.size, link=".dynstr")
        self.got_piece = synthetic(".got", SHT.PROGBITS, 8 * len(self.got), SHF.WRITE, entry_size=8)

        inputs = list(self.placed.values())
        constants = [piece for piece in inputs if not piece.flags & (SHF.WRITE | SHF.EXEC)]
        writable = [piece for piece in inputs if piece.flags & SHF.WRITE]
        self.relro = [*(p for p in writable if p.name.startswith(".data.rel.ro") and p.content is not None),
                      self.dynamic, self.got_piece]
        # .bss last: the file does not hold it
        variables = sorted((p for p in writable if p not in self.relro), key=lambda piece: piece.content is None)
        self.first_variable = variables[0] if variables else None
        self.segments = [
            _Segment(4, _nonempty([self.hash, self.dynsym, self.dynstr, self.rela,
                                   *(p for p in constants if p not in self.unwind),
                                   *([self.eh_frame_header, *self.unwind] if self.unwind else [])])),
            _Segment(5, _nonempty([*(p for p in inputs if p.flags & SHF.EXEC), self.plt])),
            _Segment(6, _nonempty([*self.relro, *variables])),
        ]

    def lay_out(self) -> None:
        """Give every piece its address, which is also its offset in the file."""
        cursor = FILE_HEADER.size + PROGRAM_HEADER.size * len(self.program_headers())
        index = 0
        for segment in self.segments:
            cursor = cursor if segment is self.segments[0] else _align(cursor, self.machine.page)
            for piece in segment.pieces:
                cursor = _align(cursor, self.machine.page if piece is self.first_variable else piece.align)
                index += 1
                piece.address, piece.index = cursor, index
                cursor += piece.size
        if cursor >= MAX_IMAGE:
            unsupported(f"an image of {cursor} bytes")

    @property
    def relro_end(self) -> int:
        return max(piece.end for piece in self.relro)

    def address(self, symbol: Symbol) -> int:
        """Where a symbol of the object came to lie."""
        return self.placed[symbol.section].address + symbol.value

    def slot(self, key: str | int) -> int:
        return self.got_piece.address + 8 * self.got[key]

    # what is written there

    def relocate(self, relocation: Relocation) -> None:
        kind = relocation.kind
        if kind.form == "none":
            return
        piece, symbol = self.placed[relocation.section], self.source.symbols[relocation.symbol]
        place = piece.address + relocation.offset
        if kind.form == "absolute":
            if symbol.imported:
                self.loader_work.append((place, self.dynamic_index[symbol.name] << 32 | self.machine.absolute,
                                         relocation.addend))
            else:
                self.loader_work.append((place, self.machine.relative, self.address(symbol) + relocation.addend))
            return
        if kind.through == "got":
            target = self.slot(self.got_key(relocation.symbol))
        elif symbol.imported:
            target = self.plt.address + self.machine.stub_size * self.stubs[symbol.name]
        else:
            target = self.address(symbol)
        assert piece.content is not None
        old = piece.content[relocation.offset:relocation.offset + kind.width]
        value = patched(kind, int.from_bytes(old, "little"), target + relocation.addend, place)
        if value is None:
            unsupported(f"{symbol} is too far away for a reference at {piece.name}+{relocation.offset:#x}")
        _put(piece, relocation.offset, value.to_bytes(kind.width, "little"))

    def fill_got_and_plt(self) -> None:
        for key in self.got:
            if isinstance(key, str):
                self.loader_work.append((self.slot(key), self.dynamic_index[key] << 32 | self.machine.glob_dat, 0))
            else:
                self.loader_work.append((self.slot(key), self.machine.relative,
                                         self.address(self.source.symbols[key])))
        for name, number in self.stubs.items():
            place = self.plt.address + self.machine.stub_size * number
            _put(self.plt, self.machine.stub_size * number, self.machine.stub(place, self.slot(name)))

    def fill_dynamic_tables(self) -> None:
        symbols = [bytes(SYMBOL.size)]
        for symbol in self.imported:
            symbols.append(SYMBOL.pack(self.string_offset[symbol.name], symbol.binding << 4, 0, SHN_UNDEF, 0, 0))
        for symbol in self.exported:
            symbols.append(SYMBOL.pack(self.string_offset[symbol.name], STB.GLOBAL << 4 | symbol.kind, 0,
                                       self.placed[symbol.section].index, self.address(symbol), symbol.size))
        _put(self.dynsym, 0, b"".join(symbols))
        _put(self.dynstr, 0, self.strings)
        _put(self.hash, 0, _hash_table([symbol.name for symbol in self.imported + self.exported]))
        self.loader_work.sort(key=lambda work: (work[1] != self.machine.relative, work[0]))  # as DT_RELACOUNT wants it
        _put(self.rela, 0, b"".join(RELA.pack(*work) for work in self.loader_work))
        if self.unwind:
            # version 1; the frames' address as a signed 32-bit displacement from its field; no search table
            distance = self.unwind[0].address - (self.eh_frame_header.address + 4)
            _put(self.eh_frame_header, 0, b"\x01\x1b\xff\xff" + struct.pack("<i", distance))
        _put(self.dynamic, 0, b"".join(DYNAMIC.pack(tag, value) for tag, value in self.dynamic_entries()))

    def dynamic_entries(self) -> list[tuple[int, int]]:
        entries = [(DT.SONAME, self.string_offset[self.soname])] if self.soname else []
        entries += [(DT.HASH, self.hash.address), (DT.STRTAB, self.dynstr.address), (DT.SYMTAB, self.dynsym.address),
                    (DT.STRSZ, self.dynstr.size), (DT.SYMENT, SYMBOL.size)]
        if self.rela.size:
            relative = sum(kind == self.machine.relative for _, kind, _ in self.loader_work)
            entries += [(DT.RELA, self.rela.address), (DT.RELASZ, self.rela.size), (DT.RELAENT, RELA.size),
                        (DT.RELACOUNT, relative)]
        return [*entries, (DT.FLAGS, DF_BIND_NOW), (DT.FLAGS_1, DF_1_NOW), (DT.NULL, 0)]

    def program_headers(self) -> list[bytes]:
        headers = []
        for segment in self.segments:
            if not segment.pieces:
                continue
            start = 0 if segment is self.segments[0] else segment.pieces[0].address
            file_end = max(piece.end for piece in segment.pieces if piece.content is not None)
            # Whole pages for the data, so that the part that becomes read-only ends inside the segment.
            end = _align(segment.pieces[-1].end, self.machine.page) if segment.flags & 2 else segment.pieces[-1].end
            headers.append(_program_header(PT.LOAD, segment.flags, start, file_end - start, end - start,
                                           self.machine.page))
        headers.append(_program_header(PT.DYNAMIC, 6, self.dynamic.address, self.dynamic.size, self.dynamic.size, 8))
        start = self.segments[-1].pieces[0].address
        held = self.relro_end - start
        headers.append(_program_header(PT.GNU_RELRO, 4, start, held, _align(held, self.machine.page), 1))
        headers.append(_program_header(PT.GNU_STACK, 6, 0, 0, 0, 16))
        if self.unwind:
            header = self.eh_frame_header
            headers.append(_program_header(PT.GNU_EH_FRAME, 4, header.address, header.size, header.size, 4))
        return headers

    def write(self) -> bytes:
        """The file: headers, pieces at their addresses, then section names and headers for debuggers and objdump."""
        pieces = [piece for segment in self.segments for piece in segment.pieces]
        names, name_offset = _string_table([*(piece.name for piece in pieces), ".shstrtab"])
        names_at = max(piece.end for piece in pieces if piece.content is not None)
        table_at = _align(names_at + len(names), 8)
        headers = self.program_headers()
        image = bytearray(table_at)
        image[: FILE_HEADER.size] = FILE_HEADER.pack(
            IDENT, ET_DYN, self.machine.number, 1, 0, FILE_HEADER.size, table_at, 0, FILE_HEADER.size,
            PROGRAM_HEADER.size, len(headers), SECTION_HEADER.size, len(pieces) + 2, len(pieces) + 1)
        image[FILE_HEADER.size : FILE_HEADER.size + PROGRAM_HEADER.size * len(headers)] = b"".join(headers)
        by_name = {piece.name: piece.index for piece in pieces}
        sections = [bytes(SECTION_HEADER.size)]
        for piece in pieces:
            if piece.content is not None:
                image[piece.address : piece.end] = piece.content
            sections.append(SECTION_HEADER.pack(
                name_offset[piece.name], piece.kind, piece.flags, piece.address, min(piece.address, names_at),
                piece.size, by_name.get(piece.link, 0), piece.info, piece.align, piece.entry_size))
        image[names_at : names_at + len(names)] = names
        sections.append(SECTION_HEADER.pack(
            name_offset[".shstrtab"], SHT.STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0))
        return bytes(image) + b"".join(sections)


def _nonempty(pieces: list[_Piece]) -> list[_Piece]:
    return [piece for piece in pieces if piece.size]


def _align(value: int, align: int) -> int:
    return (value + align - 1) // align * align


def _put(piece: _Piece, offset: int, data: bytes) -> None:
    """Write `data` into a piece without changing its size."""
    content = piece.content
    if content is None or offset + len(data) > len(content):
        raise AssertionError(f"{len(data)} bytes at {offset} do not fit in {piece.name}")
    content[offset : offset + len(data)] = data


def _program_header(kind: PT, flags: int, address: int, file_size: int, memory_size: int, align: int) -> bytes:
    return PROGRAM_HEADER.pack(kind, flags, address, address, address, file_size, memory_size, align)


def _string_table(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """NUL-terminated strings after an empty one, and the offset of each."""
    table, offsets = bytearray(1), {}
    for name in dict.fromkeys(names):
        offsets[name] = len(table)
        table += name.encode() + b"\0"
    return bytes(table), offsets


def _bucket_count(symbols: int) -> int:
    return max(1, symbols // 2) | 1


def _hash_table(names: Sequence[str]) -> bytes:
    """The System V hash table (DT_HASH) over dynamic symbols 1, 2, ... named `names`."""
    count = len(names) + 1
    buckets, chains = [0] * _bucket_count(count), [0] * count
    for i, name in enumerate(names, start=1):
        bucket = _elf_hash(name) % len(buckets)
        chains[i], buckets[bucket] = buckets[bucket], i
    return struct.pack(f"<{2 + len(buckets) + count}I", len(buckets), count, *buckets, *chains)


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value
