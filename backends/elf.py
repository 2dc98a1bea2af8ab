"""ELF: constants of the format, and a reader of relocatable objects that checks every offset and size.

The object may be corrupt: every defect raises BackendError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NoReturn

from mlc.backends.machines import MACHINES, X86_64, Kind, Machine
from mlc.ir.diag import BackendError

MAX_ALIGN = 4096
MAX_IMAGE = 1 << 31
"""Code reaches data by signed 32-bit displacements, so an image is smaller than this."""

# --- ELF, as the System V ABI defines it -------------------------------------------------------------------------

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
DYNAMIC = struct.Struct("<qQ")
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little endian, version 1
ET_REL, ET_DYN = 1, 3
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
    """Supported symbol types."""

    NOTYPE, OBJECT, FUNC, SECTION, FILE = range(5)


STV_DEFAULT, STV_PROTECTED = 0, 3


RUNS_ON_LOADING = (".init", ".fini", ".preinit", ".ctors", ".dtors")


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
    """An entry of the symbol table; `section` is an index, SHN_UNDEF or SHN_ABS."""

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
    """A reference at `offset` in section `section`, of type `kind`, to symbol number `symbol` plus `addend`."""

    section: int
    offset: int
    kind: Kind
    symbol: int
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """Input of the linker: the allocated sections by index, all symbols, and the sections' relocations."""

    machine: Machine
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read_object(obj: bytes) -> ObjectFile:
    """Parse and check a relocatable object."""
    return _ObjectReader(obj).read()


@dataclass(frozen=True)
class DebugSection:
    """A section of an object that describes its code to debuggers.

    content   its bytes, in which references to other such sections are offsets already
    places    references to code: the offset of 8 bytes, the name of the section, the offset in that
    """

    name: str
    content: bytes
    places: tuple[tuple[int, str, int], ...]


def read_debug(obj: bytes) -> list[DebugSection]:
    """The sections of a relocatable object that debuggers read, checked like the rest."""
    return _ObjectReader(obj).read_debug()


def corrupt(what: str) -> NoReturn:
    raise BackendError(f"corrupt object file: {what}", code="MLC0520", hint="delete the cached object and recompile")


def unsupported(what: str) -> NoReturn:
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
    """Reader of an object; every access to its bytes goes through `slice`, which checks bounds."""

    def __init__(self, obj: bytes) -> None:
        self.obj = obj
        self.machine = X86_64
        self.headers: list[_Header] = []
        self.section_names = b""

    def slice(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self.obj):
            corrupt(f"{what} ends at byte {offset + size} of {len(self.obj)}")
        return self.obj[offset : offset + size]

    def read(self) -> ObjectFile:
        self.read_headers()
        if sum(h.size for h in self.headers if h.kind not in (SHT.NULL, SHT.NOBITS)) > len(self.obj):
            corrupt("sections overlap")
        sections = {i: self.read_section(i) for i, header in enumerate(self.headers) if header.flags & SHF.ALLOC}
        tables = [i for i, header in enumerate(self.headers) if header.kind == SHT.SYMTAB]
        if len(tables) != 1:
            corrupt(f"{len(tables)} symbol tables")
        symbols = self.read_symbols(tables[0], sections)
        relocations = [relocation for header in self.headers
                       if header.kind in (SHT.RELA, SHT.REL) and header.info in sections
                       for relocation in self.read_relocations(header, tables[0], sections[header.info], symbols)]
        return ObjectFile(self.machine, sections, symbols, relocations)

    def read_debug(self) -> list[DebugSection]:
        self.read_headers()
        names = [_string(self.section_names, header.name) for header in self.headers]
        table = next(i for i, header in enumerate(self.headers) if header.kind == SHT.SYMTAB)
        symbols = self.read_symbols(table, {})
        out = []
        for index, header in enumerate(self.headers):
            if header.kind != SHT.PROGBITS or not names[index].startswith(".debug_"):
                continue
            content, places = bytearray(self.content(index, names[index])), list[tuple[int, str, int]]()
            for relocations in self.headers:
                if relocations.kind != SHT.RELA or relocations.info != index:
                    continue
                if relocations.entry_size != RELA.size or relocations.size % RELA.size:
                    corrupt(f"relocations of {names[index]}")
                table_of = self.slice(relocations.offset, relocations.size, "relocations")
                for offset, info, addend in RELA.iter_unpack(table_of):
                    if info >> 32 >= len(symbols) or offset + 4 > len(content):
                        corrupt(f"a reference of {names[index]}")
                    symbol, width = symbols[info >> 32], self.machine.in_debug.get(info & 0xFFFFFFFF)
                    if width is None or not 0 < symbol.section < len(names):
                        unsupported(f"relocation type {info & 0xFFFFFFFF} in {names[index]}")
                    if names[symbol.section].startswith(".debug_"):        # the only one of its name
                        content[offset:offset + width] = (symbol.value + addend).to_bytes(width, "little")
                    else:
                        places.append((offset, names[symbol.section], symbol.value + addend))
            out.append(DebugSection(names[index], bytes(content), tuple(places)))
        return out

    def read_headers(self) -> None:
        fields = FILE_HEADER.unpack(self.slice(0, FILE_HEADER.size, "file header"))
        ident, kind, machine, offset, entry_size, count, names = (fields[i] for i in (0, 1, 2, 6, 11, 12, 13))
        if ident[:7] != IDENT[:7]:
            corrupt("not 64-bit little endian ELF")
        if kind != ET_REL or machine not in MACHINES:
            unsupported(f"ELF type {kind} for machine {machine} is not a relocatable object for "
                        + " or ".join(m.name for m in MACHINES.values()))
        self.machine = MACHINES[machine]
        if entry_size != SECTION_HEADER.size or not 0 < names < count:
            corrupt("section header table")
        table = self.slice(offset, entry_size * count, "section header table")
        self.headers = [_Header(*entry) for entry in SECTION_HEADER.iter_unpack(table)]
        self.section_names = self.content(names, "section names")
        for header in self.headers:
            if header.kind == SHT.PROGBITS and header.flags & SHF.EXEC and not header.flags & SHF.ALLOC:
                unsupported("the object asks for an executable stack")

    def content(self, index: int, what: str) -> bytes:
        if index >= len(self.headers):
            corrupt(f"{what} in section {index} of {len(self.headers)}")
        header = self.headers[index]
        return b"" if header.kind == SHT.NOBITS else self.slice(header.offset, header.size, what)

    def read_section(self, index: int) -> Section:
        header = self.headers[index]
        name = _string(self.section_names, header.name)
        if name.startswith(RUNS_ON_LOADING):
            unsupported(f"section {name}: code that runs on loading or unloading is not supported")
        if header.kind not in (SHT.PROGBITS, SHT.NOBITS, SHT.NOTE, SHT.X86_64_UNWIND):
            unsupported(f"section {name} of type {header.kind:#x}")
        if header.flags & (SHF.TLS | SHF.COMPRESSED):
            unsupported(f"section {name} is thread-local or compressed")
        if header.flags & SHF.WRITE and header.flags & SHF.EXEC:
            unsupported(f"section {name} is both writable and executable")
        if header.kind == SHT.NOBITS and not header.flags & SHF.WRITE:
            unsupported(f"section {name} has no content and is read-only")
        align = max(header.align, 1)
        if align & (align - 1) or align > MAX_ALIGN:
            unsupported(f"section {name} is aligned to {align}")
        if header.size >= MAX_IMAGE:
            unsupported(f"section {name} of {header.size} bytes")
        return Section(name, header.kind, header.flags, align, header.size, self.content(index, f"section {name}"))

    def read_symbols(self, index: int, sections: dict[int, Section]) -> list[Symbol]:
        header = self.headers[index]
        table, names = self.content(index, "symbol table"), self.content(header.link, "symbol names")
        if header.entry_size != SYMBOL.size or len(table) % SYMBOL.size or not table:
            corrupt("size of the symbol table")
        symbols = []
        for name, info, other, section, value, size in SYMBOL.iter_unpack(table):
            symbol = Symbol(_string(names, name), info & 15, info >> 4, other & 3, section, value, size)
            if symbol.kind > STT.FILE or symbol.binding > STB.WEAK:
                unsupported(f"symbol {symbol} of type {symbol.kind}, binding {symbol.binding}")
            if section >= len(self.headers) and section != SHN_ABS:
                if section >= SHN_LORESERVE:
                    unsupported(f"symbol {symbol} in special section {section:#x} (a common block, for one)")
                corrupt(f"symbol {symbol} in section {section}")
            if section in sections and value + size > sections[section].size:
                corrupt(f"symbol {symbol} ends behind section {sections[section].name}")
            symbols.append(symbol)
        return symbols

    def read_relocations(self, header: _Header, table: int, section: Section,
                         symbols: list[Symbol]) -> Iterable[Relocation]:
        if header.kind == SHT.REL or header.entry_size != RELA.size or header.size % RELA.size:
            corrupt(f"relocations of {section.name}")
        if header.link != table:
            corrupt(f"relocations of {section.name} use symbol table {header.link}")
        for offset, info, addend in RELA.iter_unpack(self.slice(header.offset, header.size, "relocations")):
            number, symbol = info & 0xFFFFFFFF, info >> 32
            where = f"{section.name}+{offset:#x}"
            if symbol >= len(symbols):
                corrupt(f"relocation at {where} refers to symbol {symbol} of {len(symbols)}")
            if number in self.machine.not_independent:
                unsupported(f"{self.machine.not_independent[number]} of {symbols[symbol]} at {where}: compile with "
                            "reloc=pic")
            if number not in self.machine.relocations:
                unsupported(f"relocation type {number} of {symbols[symbol]} at {where}")
            kind = self.machine.relocations[number]
            if offset + kind.width > len(section.content):
                corrupt(f"relocation at {where} is outside the section's {len(section.content)} bytes")
            yield Relocation(header.info, offset, kind, symbol, addend)


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if end < 0:
        corrupt(f"string at {offset} of {len(table)}")
    try:
        return table[offset:end].decode()
    except UnicodeDecodeError:
        corrupt(f"string at {offset} is not UTF-8")
