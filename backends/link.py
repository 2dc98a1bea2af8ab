"""Link one relocatable x86-64 ELF object into a shared object, without a linker on the machine.

The object is one that LLVM wrote (position independent, small code model) for code of ours. The result has:

    segment     holds                                                                        protection
    read-only   headers, .hash .dynsym .dynstr .rela.dyn, constants, .eh_frame               R
    code        .text, and .plt: one jump through the GOT for each imported function         R X
    data        .data.rel.ro .dynamic .got, then, on pages of their own, .data and .bss      R W (first part: R)

Every imported name must be on the caller's allow-list. References between symbols of the object are bound here, so
no other library can take their place. Names are imported without a version: fine for memcpy and for CPython's stable
ABI; glibc then gives the oldest version that a symbol has. The result depends on nothing but the arguments.

The input may be corrupt: every offset and size is checked as a Python int, and what is wrong is a BackendError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, NoReturn

from mlc.ir.diag import BackendError

ALLOWED_EXTERNALS = frozenset({"memcpy", "memset", "memmove"})
"""What any code may import: LLVM itself introduces calls of these."""

PAGE = 4096
MAX_IMAGE = 1 << 31
"""Code reaches data by signed 32-bit displacements, so an image is smaller than this."""


# --- ELF, as the System V ABI and its x86-64 supplement define it ---------------------------------------------------

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
DYNAMIC = struct.Struct("<qQ")
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little endian, version 1
ET_REL, ET_DYN, EM_X86_64 = 1, 3, 62
SHN_UNDEF, SHN_LORESERVE, SHN_ABS = 0, 0xFF00, 0xFFF1


class SHT(IntEnum):
    """Section types."""

    NULL, PROGBITS, SYMTAB, STRTAB, RELA, HASH, DYNAMIC, NOTE, NOBITS = range(9)
    REL, DYNSYM = 9, 11
    X86_64_UNWIND = 0x70000001


class SHF(IntFlag):
    """Section flags."""

    WRITE, ALLOC, EXEC = 1, 2, 4
    TLS, COMPRESSED = 0x400, 0x800


class PT(IntEnum):
    """Segment types."""

    LOAD, DYNAMIC = 1, 2
    GNU_EH_FRAME, GNU_STACK, GNU_RELRO = 0x6474E550, 0x6474E551, 0x6474E552


class DT(IntEnum):
    """Entries of the dynamic section."""

    NULL, HASH, STRTAB, SYMTAB, RELA, RELASZ, RELAENT, STRSZ, SYMENT = 0, 4, 5, 6, 7, 8, 9, 10, 11
    SONAME, FLAGS, FLAGS_1, RELACOUNT = 14, 30, 0x6FFFFFFB, 0x6FFFFFF9


DF_BIND_NOW, DF_1_NOW = 8, 1


class STB(IntEnum):
    """Symbol bindings."""

    LOCAL, GLOBAL, WEAK = range(3)


class STT(IntEnum):
    """Symbol types that we link."""

    NOTYPE, OBJECT, FUNC, SECTION, FILE = range(5)


STV_DEFAULT, STV_PROTECTED = 0, 3


class R(IntEnum):
    """Relocation types that we link, or write for the loader."""

    NONE, ABS64, PC32, PLT32 = 0, 1, 2, 4
    GLOB_DAT, RELATIVE, GOTPCREL, PC64 = 6, 8, 9, 24
    GOTPCRELX, REX_GOTPCRELX = 41, 42


WIDTH = {R.NONE: 0, R.ABS64: 8, R.PC64: 8, R.PC32: 4, R.PLT32: 4, R.GOTPCREL: 4, R.GOTPCRELX: 4, R.REX_GOTPCRELX: 4}
THROUGH_GOT = frozenset({R.GOTPCREL, R.GOTPCRELX, R.REX_GOTPCRELX})
RUNS_ON_LOADING = (".init", ".fini", ".preinit", ".ctors", ".dtors")
ABSOLUTE_32 = {10: "R_X86_64_32", 11: "R_X86_64_32S"}


# --- reading the object ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A section of the object that becomes part of the image."""

    name: str
    kind: int
    flags: int
    align: int
    size: int
    content: bytes  # empty for NOBITS


@dataclass(frozen=True)
class Symbol:
    """An entry of the object's symbol table; `section` is an index, SHN_UNDEF or SHN_ABS."""

    name: str
    kind: int
    binding: int
    visibility: int
    section: int
    value: int
    size: int

    @property
    def imported(self) -> bool:
        """Whether another library must define it."""
        return self.section == SHN_UNDEF and bool(self.name)

    def __str__(self) -> str:
        return self.name or f"section {self.section}"


@dataclass(frozen=True)
class Relocation:
    """At `offset` in section `section`: a reference of type `kind` to symbol number `symbol`, plus `addend`."""

    section: int
    offset: int
    kind: R
    symbol: int
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """What the image is made of: the allocated sections by index, all symbols, the sections' relocations."""

    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read_object(obj: bytes) -> ObjectFile:
    """Parse and check a relocatable x86-64 object."""
    return _ObjectReader(obj).read()


def undefined_symbols(obj: bytes) -> list[str]:
    """The names that the object leaves to other libraries, sorted."""
    return sorted({symbol.name for symbol in read_object(obj).symbols if symbol.imported})


def _corrupt(what: str) -> NoReturn:
    raise BackendError(f"corrupt object file: {what}", code="MLC0520", hint="delete the cached object and recompile")


def _unsupported(what: str) -> NoReturn:
    raise BackendError(f"cannot link: {what}", code="MLC0521")


@dataclass(frozen=True)
class _Header:
    """A section header, as stored."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class _ObjectReader:
    """Reads an object; every access to its bytes goes through `slice`, which checks bounds."""

    def __init__(self, obj: bytes) -> None:
        self.obj = obj
        self.headers: list[_Header] = []
        self.section_names = b""

    def slice(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self.obj):
            _corrupt(f"{what} ends at byte {offset + size} of {len(self.obj)}")
        return self.obj[offset : offset + size]

    def read(self) -> ObjectFile:
        self.read_headers()
        if sum(h.size for h in self.headers if h.kind not in (SHT.NULL, SHT.NOBITS)) > len(self.obj):
            _corrupt("sections overlap")
        sections = {i: self.read_section(i) for i, header in enumerate(self.headers) if header.flags & SHF.ALLOC}
        tables = [i for i, header in enumerate(self.headers) if header.kind == SHT.SYMTAB]
        if len(tables) != 1:
            _corrupt(f"{len(tables)} symbol tables")
        symbols = self.read_symbols(tables[0], sections)
        relocations = [relocation for header in self.headers
                       if header.kind in (SHT.RELA, SHT.REL) and header.info in sections
                       for relocation in self.read_relocations(header, tables[0], sections[header.info], symbols)]
        return ObjectFile(sections, symbols, relocations)

    def read_headers(self) -> None:
        fields = FILE_HEADER.unpack(self.slice(0, FILE_HEADER.size, "file header"))
        ident, kind, machine, offset, entry_size, count, names = (fields[i] for i in (0, 1, 2, 6, 11, 12, 13))
        if ident[:7] != IDENT[:7]:
            _corrupt("not 64-bit little endian ELF")
        if (kind, machine) != (ET_REL, EM_X86_64):
            _unsupported(f"ELF type {kind} for machine {machine} is not a relocatable x86-64 object")
        if entry_size != SECTION_HEADER.size or not 0 < names < count:
            _corrupt("section header table")
        table = self.slice(offset, entry_size * count, "section header table")
        self.headers = [_Header(*entry) for entry in SECTION_HEADER.iter_unpack(table)]
        self.section_names = self.content(names, "section names")
        for header in self.headers:
            if header.kind == SHT.PROGBITS and header.flags & SHF.EXEC and not header.flags & SHF.ALLOC:
                _unsupported("the object asks for an executable stack")

    def content(self, index: int, what: str) -> bytes:
        if index >= len(self.headers):
            _corrupt(f"{what} in section {index} of {len(self.headers)}")
        header = self.headers[index]
        return b"" if header.kind == SHT.NOBITS else self.slice(header.offset, header.size, what)

    def read_section(self, index: int) -> Section:
        header = self.headers[index]
        name = _string(self.section_names, header.name)
        if name.startswith(RUNS_ON_LOADING):
            _unsupported(f"section {name}: nothing may run on loading or unloading")
        if header.kind not in (SHT.PROGBITS, SHT.NOBITS, SHT.NOTE, SHT.X86_64_UNWIND):
            _unsupported(f"section {name} of type {header.kind:#x}")
        if header.flags & (SHF.TLS | SHF.COMPRESSED):
            _unsupported(f"section {name} is thread-local or compressed")
        if header.flags & SHF.WRITE and header.flags & SHF.EXEC:
            _unsupported(f"section {name} is both writable and executable")
        if header.kind == SHT.NOBITS and not header.flags & SHF.WRITE:
            _unsupported(f"section {name} has no content and is read-only")
        align = max(header.align, 1)
        if align & (align - 1) or align > PAGE:
            _unsupported(f"section {name} is aligned to {align}")
        if header.size >= MAX_IMAGE:
            _unsupported(f"section {name} of {header.size} bytes")
        return Section(name, header.kind, header.flags, align, header.size, self.content(index, f"section {name}"))

    def read_symbols(self, index: int, sections: dict[int, Section]) -> list[Symbol]:
        header = self.headers[index]
        table, names = self.content(index, "symbol table"), self.content(header.link, "symbol names")
        if header.entry_size != SYMBOL.size or len(table) % SYMBOL.size or not table:
            _corrupt("size of the symbol table")
        symbols = []
        for name, info, other, section, value, size in SYMBOL.iter_unpack(table):
            symbol = Symbol(_string(names, name), info & 15, info >> 4, other & 3, section, value, size)
            if symbol.kind > STT.FILE or symbol.binding > STB.WEAK:
                _unsupported(f"symbol {symbol} of type {symbol.kind}, binding {symbol.binding}")
            if section >= len(self.headers) and section != SHN_ABS:
                if section >= SHN_LORESERVE:
                    _unsupported(f"symbol {symbol} in special section {section:#x} (a common block, for one)")
                _corrupt(f"symbol {symbol} in section {section}")
            if section in sections and value + size > sections[section].size:
                _corrupt(f"symbol {symbol} ends behind section {sections[section].name}")
            symbols.append(symbol)
        return symbols

    def read_relocations(self, header: _Header, table: int, section: Section,
                         symbols: list[Symbol]) -> Iterable[Relocation]:
        if header.kind == SHT.REL or header.entry_size != RELA.size or header.size % RELA.size:
            _corrupt(f"relocations of {section.name}")
        if header.link != table:
            _corrupt(f"relocations of {section.name} use symbol table {header.link}")
        for offset, info, addend in RELA.iter_unpack(self.slice(header.offset, header.size, "relocations")):
            number, symbol = info & 0xFFFFFFFF, info >> 32
            where = f"{section.name}+{offset:#x}"
            if symbol >= len(symbols):
                _corrupt(f"relocation at {where} refers to symbol {symbol} of {len(symbols)}")
            if number in ABSOLUTE_32:
                _unsupported(f"{ABSOLUTE_32[number]} of {symbols[symbol]} at {where}: compile with reloc=pic")
            if number not in WIDTH:
                _unsupported(f"relocation type {number} of {symbols[symbol]} at {where}")
            kind = R(number)
            if offset + WIDTH[kind] > len(section.content):
                _corrupt(f"relocation at {where} is outside the section's {len(section.content)} bytes")
            yield Relocation(header.info, offset, kind, symbol, addend)


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if end < 0:
        _corrupt(f"string at {offset} of {len(table)}")
    try:
        return table[offset:end].decode()
    except UnicodeDecodeError:
        _corrupt(f"string at {offset} is not UTF-8")


# --- laying out and writing the image -------------------------------------------------------------------------------


@dataclass
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


@dataclass
class _Segment:
    """A run of pieces, mapped together with one protection, starting on a page of its own."""

    flags: int  # PF_*: 4 read, 2 write, 1 execute
    pieces: list[_Piece] = field(default_factory=list)


def link(obj: bytes, exports: Sequence[str], allowed: frozenset[str] = ALLOWED_EXTERNALS,
         soname: str | None = None) -> bytes:
    """The shared object that exports `exports` from `obj`; it may import the names in `allowed` and no others."""
    source = read_object(obj)
    for name in sorted({symbol.name for symbol in source.symbols if symbol.imported} - allowed):
        raise BackendError(f"the code uses external symbol {name!r}, which it may not import", code="MLC0522",
                           hint="lower the operation that calls it; LLVM turns some casts and mathematics into calls")
    return _Linker(source, _exported(source, exports), soname).link()


def _exported(source: ObjectFile, names: Sequence[str]) -> list[Symbol]:
    """The definitions of `names`, in that order."""
    visible = {symbol.name: symbol for symbol in source.symbols
               if symbol.section in source.sections and symbol.binding != STB.LOCAL
               and symbol.visibility in (STV_DEFAULT, STV_PROTECTED)}
    for name in names:
        if name not in visible:
            raise BackendError(f"cannot export {name!r}: the object has no such public definition", code="MLC0523")
    return [visible[name] for name in dict.fromkeys(names)]


class _Linker:
    """The steps of one link: what is needed, where it goes, what is written there."""

    def __init__(self, source: ObjectFile, exported: list[Symbol], soname: str | None) -> None:
        self.source = source
        self.soname = soname
        self.exported = exported
        self.imported = list({symbol.name: symbol for symbol in source.symbols if symbol.imported}.values())
        self.dynamic_index = {symbol.name: i for i, symbol in enumerate(self.imported, start=1)}
        self.got: dict[str | int, int] = {}  # symbol -> number of its slot
        self.stubs: dict[str, int] = {}  # imported function -> number of its jump in .plt
        self.address_words = 0
        self.loader_work: list[tuple[int, int, int]] = []  # (address, symbol << 32 | type, addend)
        self.placed = {index: self.input_piece(section) for index, section in source.sections.items()}
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
        if section.name == ".eh_frame" and content is not None:
            content += bytes(4)  # an entry of length 0 ends the list that the unwinder walks
        return _Piece(section.name, kind, flags, section.align, content,
                      max(section.size, 1) if content is None else len(content))

    def got_key(self, symbol: int) -> str | int:
        """Imports share a slot by name; a definition has one by its number in the object's table."""
        return self.source.symbols[symbol].name if self.source.symbols[symbol].imported else symbol

    def scan(self, relocation: Relocation) -> None:
        """Note the GOT slots, jumps and words for the loader that a relocation calls for, and refuse what cannot be."""
        symbol, section = self.source.symbols[relocation.symbol], self.source.sections[relocation.section]
        where = f"{section.name}+{relocation.offset:#x}"
        if relocation.kind == R.NONE:
            return
        if not symbol.imported and symbol.section not in self.placed:
            _unsupported(f"reference at {where} to {symbol}, which is not part of the image")
        if relocation.kind in THROUGH_GOT:
            self.got.setdefault(self.got_key(relocation.symbol), len(self.got))
        elif relocation.kind == R.ABS64:
            if not section.flags & SHF.WRITE:
                _unsupported(f"address of {symbol} stored in read-only section {section.name}")
            self.address_words += 1
        elif symbol.imported:
            if relocation.kind != R.PLT32:
                _unsupported(f"direct access to external {symbol} at {where}: declare it without dso_local")
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
        self.plt = synthetic(".plt", SHT.PROGBITS, 8 * len(self.stubs), SHF.EXEC, align=16, entry_size=8)
        self.dynamic = synthetic(".dynamic", SHT.DYNAMIC, DYNAMIC.size * len(self.dynamic_entries()), SHF.WRITE,
                                 entry_size=DYNAMIC.size, link=".dynstr")
        self.got_piece = synthetic(".got", SHT.PROGBITS, 8 * len(self.got), SHF.WRITE, entry_size=8)

        inputs = list(self.placed.values())
        constants = [piece for piece in inputs if not piece.flags & (SHF.WRITE | SHF.EXEC)]
        unwind = [piece for piece in constants if piece.name == ".eh_frame"]
        if len(unwind) > 1:
            _unsupported(f"{len(unwind)} sections .eh_frame")
        self.eh_frame = unwind[0] if unwind else None
        writable = [piece for piece in inputs if piece.flags & SHF.WRITE]
        self.relro = [*(p for p in writable if p.name.startswith(".data.rel.ro") and p.content is not None),
                      self.dynamic, self.got_piece]
        # .bss last: the file does not hold it
        variables = sorted((p for p in writable if p not in self.relro), key=lambda piece: piece.content is None)
        self.first_variable = variables[0] if variables else None
        self.segments = [
            _Segment(4, _nonempty([self.hash, self.dynsym, self.dynstr, self.rela,
                                   *(p for p in constants if p is not self.eh_frame),
                                   *([self.eh_frame_header, self.eh_frame] if self.eh_frame else [])])),
            _Segment(5, _nonempty([*(p for p in inputs if p.flags & SHF.EXEC), self.plt])),
            _Segment(6, _nonempty([*self.relro, *variables])),
        ]

    def lay_out(self) -> None:
        """Give every piece its address, which is also its offset in the file."""
        cursor = FILE_HEADER.size + PROGRAM_HEADER.size * len(self.program_headers())
        index = 0
        for segment in self.segments:
            cursor = cursor if segment is self.segments[0] else _align(cursor, PAGE)
            for piece in segment.pieces:
                cursor = _align(cursor, PAGE if piece is self.first_variable else piece.align)
                index += 1
                piece.address, piece.index = cursor, index
                cursor += piece.size
        if cursor >= MAX_IMAGE:
            _unsupported(f"an image of {cursor} bytes")

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
        if relocation.kind == R.NONE:
            return
        piece, symbol = self.placed[relocation.section], self.source.symbols[relocation.symbol]
        place = piece.address + relocation.offset
        if relocation.kind == R.ABS64:
            if symbol.imported:
                self.loader_work.append((place, self.dynamic_index[symbol.name] << 32 | R.ABS64, relocation.addend))
            else:
                target = _signed(self.address(symbol) + relocation.addend, 64, symbol)
                self.loader_work.append((place, R.RELATIVE, int.from_bytes(target, "little", signed=True)))
            return
        if relocation.kind in THROUGH_GOT:
            target_address = self.slot(self.got_key(relocation.symbol))
        elif symbol.imported:
            target_address = self.plt.address + 8 * self.stubs[symbol.name]
        else:
            target_address = self.address(symbol)
        value = _signed(target_address + relocation.addend - place, 8 * WIDTH[relocation.kind], symbol)
        _put(piece, relocation.offset, value)

    def fill_got_and_plt(self) -> None:
        for key in self.got:
            if isinstance(key, str):
                self.loader_work.append((self.slot(key), self.dynamic_index[key] << 32 | R.GLOB_DAT, 0))
            else:
                self.loader_work.append((self.slot(key), R.RELATIVE, self.address(self.source.symbols[key])))
        for name, number in self.stubs.items():
            after_jump = self.plt.address + 8 * number + 6
            jump = b"\xff\x25" + struct.pack("<i", self.slot(name) - after_jump)  # jmp *slot(%rip)
            _put(self.plt, 8 * number, jump + b"\x66\x90")  # two-byte nop

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
        self.loader_work.sort(key=lambda work: (work[1] != R.RELATIVE, work[0]))  # DT_RELACOUNT: these come first
        _put(self.rela, 0, b"".join(RELA.pack(*work) for work in self.loader_work))
        if self.eh_frame:
            # version 1; the frames' address as a signed 32-bit displacement from its field; no search table
            distance = self.eh_frame.address - (self.eh_frame_header.address + 4)
            _put(self.eh_frame_header, 0, b"\x01\x1b\xff\xff" + struct.pack("<i", distance))
        _put(self.dynamic, 0, b"".join(DYNAMIC.pack(tag, value) for tag, value in self.dynamic_entries()))

    def dynamic_entries(self) -> list[tuple[int, int]]:
        entries = [(DT.SONAME, self.string_offset[self.soname])] if self.soname else []
        entries += [(DT.HASH, self.hash.address), (DT.STRTAB, self.dynstr.address), (DT.SYMTAB, self.dynsym.address),
                    (DT.STRSZ, self.dynstr.size), (DT.SYMENT, SYMBOL.size)]
        if self.rela.size:
            relative = sum(kind == R.RELATIVE for _, kind, _ in self.loader_work)
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
            end = _align(segment.pieces[-1].end, PAGE) if segment.flags & 2 else segment.pieces[-1].end
            headers.append(_program_header(PT.LOAD, segment.flags, start, file_end - start, end - start, PAGE))
        headers.append(_program_header(PT.DYNAMIC, 6, self.dynamic.address, self.dynamic.size, self.dynamic.size, 8))
        start = self.segments[-1].pieces[0].address
        held = self.relro_end - start
        headers.append(_program_header(PT.GNU_RELRO, 4, start, held, _align(held, PAGE), 1))
        headers.append(_program_header(PT.GNU_STACK, 6, 0, 0, 0, 16))
        if self.eh_frame:
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
            IDENT, ET_DYN, EM_X86_64, 1, 0, FILE_HEADER.size, table_at, 0, FILE_HEADER.size, PROGRAM_HEADER.size,
            len(headers), SECTION_HEADER.size, len(pieces) + 2, len(pieces) + 1)
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


def _signed(value: int, bits: int, symbol: Symbol) -> bytes:
    """`value` as a little endian two's complement number, refused if it has more than `bits` bits."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        _unsupported(f"{symbol} is too far away for a {bits}-bit reference")
    return value.to_bytes(bits // 8, "little", signed=True)


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
