"""Sections for debuggers in a linked shared object: those of the object that it was made of, which tell its lines.

The loader does not map them. gdb and perf find them by the table of sections, at the end of the file.
"""

from __future__ import annotations

from mlc.backends.elf import FILE_HEADER, SECTION_HEADER, SHT, read_debug

_TABLE, _COUNT, _NAMES = 6, 12, 13
"""Fields of the header of a file: where the table of sections is, how many there are, and which has their names."""


def attached(library: bytes, obj: bytes) -> bytes:
    """A shared object with the sections for debuggers of the object that it was linked from.

    Args:
        library: The shared object.
        obj: The object whose code it has; each section of code has its name in the shared object, too.

    Returns:
        The shared object with them.
    """
    header = list(FILE_HEADER.unpack_from(library))
    sections = [list(SECTION_HEADER.unpack_from(library, header[_TABLE] + SECTION_HEADER.size * i))
                for i in range(header[_COUNT])]
    holder = sections[header[_NAMES]]
    names = bytearray(library[holder[4]:holder[4] + holder[5]])
    address = {names[s[0]:names.index(0, s[0])].decode(): s[3] for s in reversed(sections)}
    out = bytearray(library)
    for section in read_debug(obj):
        content = bytearray(section.content)
        for offset, name, at in section.places:
            content[offset:offset + 8] = (address[name] + at).to_bytes(8, "little")
        sections.append([len(names), SHT.PROGBITS, 0, 0, len(out), len(content), 0, 0, 1, 0])
        names += section.name.encode() + b"\0"
        out += content
    holder[4], holder[5] = len(out), len(names)
    out += names + bytes(-len(names) % 8)
    out += bytes(-len(out) % 8)
    header[_TABLE], header[_COUNT] = len(out), len(sections)
    out[:FILE_HEADER.size] = FILE_HEADER.pack(*header)
    return bytes(out + b"".join(SECTION_HEADER.pack(*s) for s in sections))
