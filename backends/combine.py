"""Combination of object files before linking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlc.backends.elf import (
    MAX_ALIGN,
    SHF,
    SHN_ABS,
    SHT,
    STB,
    STT,
    STV_DEFAULT,
    STV_PROTECTED,
    ObjectFile,
    Section,
    Symbol,
    read_object,
    unsupported,
)
from mlc.backends.machines import Machine
from mlc.ir.diag import BackendError


def imports(source: ObjectFile) -> list[str]:
    """The undefined symbols, sorted."""
    return sorted({symbol.name for symbol in source.symbols if symbol.imported})


def combined(files: Sequence[ObjectFile]) -> ObjectFile:
    """Merge object files; imports that another file defines are resolved."""
    if len(files) == 1:
        return files[0]
    out = ObjectFile(files[0].machine, {}, [], [])
    for file in files:
        if file.machine != out.machine:
            unsupported(f"objects for {file.machine.name} and {out.machine.name} together")
        place = {index: i for i, index in enumerate(file.sections, len(out.sections) + 1)}     # 0 is no section
        first = len(out.symbols)
        out.sections.update((place[index], section) for index, section in file.sections.items())
        out.symbols.extend(s if s.imported else replace(s, section=place.get(s.section, SHN_ABS)) for s in file.symbols)
        out.relocations.extend(replace(r, section=place[r.section], symbol=first + r.symbol)
                               for r in file.relocations)
    defined: dict[str, Symbol] = {}
    for symbol in out.symbols:
        if symbol.name and symbol.section in out.sections and symbol.binding != STB.LOCAL:
            if defined.get(symbol.name, symbol) != symbol:      # imports resolved earlier are definitions now
                raise BackendError(f"{symbol.name!r} is defined twice", code="MLC0524")
            defined[symbol.name] = symbol
    out.symbols[:] = [defined.get(s.name, s) if s.imported else s for s in out.symbols]
    return out


def exportable(source: ObjectFile) -> dict[str, Symbol]:
    """The public definitions by name."""
    return {symbol.name: symbol for symbol in source.symbols
            if symbol.section in source.sections and symbol.binding != STB.LOCAL
            and symbol.visibility in (STV_DEFAULT, STV_PROTECTED)}


def renamed(objects: Sequence[bytes], names: Sequence[Mapping[str, str]]) -> ObjectFile:
    """Several objects merged, with other names for the local symbols of each."""
    def read(obj: bytes, known: Mapping[str, str]) -> ObjectFile:
        file = read_object(obj)
        return replace(file, symbols=[replace(s, name=known.get(s.name, s.name)) if s.binding == STB.LOCAL else s
                                      for s in file.symbols])

    return combined([read(obj, known) for obj, known in zip(objects, names)])


def localized(source: ObjectFile, names: Mapping[str, str]) -> ObjectFile:
    """The object with only the symbols in `names` public, under new names, so that it cannot clash with others."""
    def seen(symbol: Symbol) -> Symbol:
        if symbol.imported or symbol.binding == STB.LOCAL:
            return symbol
        if symbol.name in names:
            return replace(symbol, name=names[symbol.name])
        return replace(symbol, binding=STB.LOCAL)

    return replace(source, symbols=[seen(symbol) for symbol in source.symbols])


def holding(section: str, symbol: str, content: bytes, machine: Machine) -> ObjectFile:
    """An object with one page-aligned read-only section, which starts at the symbol."""
    return ObjectFile(machine, {1: Section(section, SHT.PROGBITS, SHF.ALLOC, MAX_ALIGN, len(content), content)},
                      [Symbol("", 0, STB.LOCAL, 0, 0, 0, 0),
                       Symbol(symbol, STT.OBJECT, STB.GLOBAL, STV_DEFAULT, 1, 0, len(content))], [])


def variable(symbol: str, size: int, machine: Machine) -> ObjectFile:
    """An object that defines a variable of `size` bytes, which are zero at first."""
    return ObjectFile(machine, {1: Section(".bss", SHT.NOBITS, SHF.ALLOC | SHF.WRITE, 8, size, b"")},
                      [Symbol("", 0, STB.LOCAL, 0, 0, 0, 0),
                       Symbol(symbol, STT.OBJECT, STB.GLOBAL, STV_DEFAULT, 1, 0, size)], [])
