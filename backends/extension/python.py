"""CPython's stable ABI for emitted code: functions, variables, and structures.

All of it is in the limited API of 3.11, so one file serves 3.11 to 3.14. The symbols are weak, so that a C program
without Python can load the same file.
"""

from __future__ import annotations

from mlc.backends.cpu.assemble import F64, I32, I64, PTR, Signature

FUNCTIONS: dict[str, Signature] = {
    "PyModuleDef_Init": (PTR, (PTR,)),
    "PyModule_GetState": (PTR, (PTR,)),
    "PySys_GetObject": (PTR, (PTR,)),
    "PyImport_ImportModule": (PTR, (PTR,)),
    "PyObject_GetAttrString": (PTR, (PTR, PTR)),
    "PyObject_CallObject": (PTR, (PTR, PTR)),
    "PyObject_RichCompareBool": (I32, (PTR, PTR, I32)),
    "PyType_GetFlags": (I64, (PTR,)),
    "PyType_GetName": (PTR, (PTR,)),
    "PyTuple_New": (PTR, (I64,)),
    "PyTuple_Size": (I64, (PTR,)),
    "PyTuple_GetItem": (PTR, (PTR, I64)),
    "PyTuple_SetItem": (I32, (PTR, I64, PTR)),
    "PyList_New": (PTR, (I64,)),
    "PyList_Size": (I64, (PTR,)),
    "PyList_GetItem": (PTR, (PTR, I64)),
    "PyList_SetItem": (I32, (PTR, I64, PTR)),
    "PyDict_New": (PTR, ()),
    "PyDict_Size": (I64, (PTR,)),
    "PyDict_GetItemWithError": (PTR, (PTR, PTR)),
    "PyDict_SetItem": (I32, (PTR, PTR, PTR)),
    "PyUnicode_FromString": (PTR, (PTR,)),
    "PyUnicode_InternFromString": (PTR, (PTR,)),
    "PyUnicode_Compare": (I32, (PTR, PTR)),
    "PyUnicode_FindChar": (I64, (PTR, I32, I64, I64, I32)),
    "PyUnicode_GetLength": (I64, (PTR,)),
    "PyUnicode_Format": (PTR, (PTR, PTR)),
    "PyLong_AsLong": (I64, (PTR,)),
    "PyLong_FromLongLong": (PTR, (I64,)),
    "PyLong_FromString": (PTR, (PTR, PTR, I32)),
    "PyFloat_FromDouble": (PTR, (F64,)),
    "PyErr_Clear": (None, ()),
    "PyErr_NoMemory": (PTR, ()),
    "PyErr_Occurred": (PTR, ()),
    "PyErr_SetObject": (None, (PTR, PTR)),
    "PyErr_SetString": (None, (PTR, PTR)),
    "PyObject_GetBuffer": (I32, (PTR, PTR, I32)),
    "PyBuffer_IsContiguous": (I32, (PTR, I32)),
    "PyBuffer_Release": (None, (PTR,)),
    "PyEval_SaveThread": (PTR, ()),
    "PyEval_RestoreThread": (None, (PTR,)),
    "PyMem_RawMalloc": (PTR, (I64,)),
    "PyMem_RawFree": (None, (PTR,)),
    "Py_IncRef": (None, (PTR,)),
    "Py_DecRef": (None, (PTR,)),
}

ERRORS = ("AssertionError", "ImportError", "IndexError", "MemoryError", "TypeError", "ValueError")
VARIABLES = frozenset({"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "PyLong_Type", "PyFloat_Type",
                       *(f"PyExc_{name}" for name in ERRORS)})
"""Variables of the interpreter: objects, and pointers to exceptions."""

EXTERNALS = frozenset(FUNCTIONS) | VARIABLES

OB_TYPE = 8
"""Offset of an object's type, which is stable across versions."""

VIEW_SIZE = 80
VIEW_DATA, VIEW_OBJECT, VIEW_ITEMSIZE, VIEW_READONLY, VIEW_NDIM, VIEW_FORMAT, VIEW_SHAPE = 0, 8, 24, 32, 36, 40, 48
"""struct Py_buffer."""

BUFFER_FLAGS = 0x1C
"""PyBUF_FORMAT | PyBUF_STRIDES: request shape, strides and element type; the buffer may be read-only."""

TYPE_FLAGS = {"list": 1 << 25, "tuple": 1 << 26, "dict": 1 << 29}
"""Py_TPFLAGS_LIST_SUBCLASS and similar flags."""

METH_FASTCALL_KEYWORDS = 0x80 | 0x02
PY_MOD_EXEC = 2
EQUAL = 2
"""Py_EQ"""
