"""The share of each thread in the parallel work of timed code: a layer between the code and the thread pool.

The hook of a timed library is `share` here, which has the pool call a part of its own in place of the code's. That
reads the clock before and after, and adds up the cycles of each thread, which it knows by its thread pointer. When the
work is done, a row of the ring @regions says

    the thread that called (as gettid numbers it), the clock before and after, the cycles of all threads together, those
    of the busiest thread, and how many threads took part

Code that a profile does not time has the pool's own hook.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mlc.backends.load import Library

ROWS, WORDS, MOST = 1 << 14, 6, 1024
"""Rows of the ring, words of a row, and the most threads of a region."""
TIMED = f"""
@pool = global ptr null, align 8
@count = global i64 0, align 64
@regions = global [{ROWS * WORDS} x i64] zeroinitializer, align 64

declare i64 @syscall(i64, ...)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @share(ptr %part, ptr %env, i64 %count) nounwind {{
entry:
  %own = alloca {{ ptr, ptr, [{2 * MOST} x i64] }}, align 64
  %env.at = getelementptr ptr, ptr %own, i64 1
  %table = getelementptr ptr, ptr %own, i64 2
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 {16 * MOST}, i1 false)
  store ptr %part, ptr %own
  store ptr %env, ptr %env.at
  %pool = load ptr, ptr @pool
  %start = call i64 @llvm.readcyclecounter()
  call void %pool(ptr @timed, ptr %own, i64 %count)
  %stop = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %add ]
  %all = phi i64 [ 0, %entry ], [ %all.next, %add ]
  %most = phi i64 [ 0, %entry ], [ %most.next, %add ]
  %at = mul i64 %i, 2
  %who.at = getelementptr i64, ptr %table, i64 %at
  %who = load i64, ptr %who.at
  %none = icmp eq i64 %who, 0
  br i1 %none, label %write, label %add
add:
  %cycles.at = getelementptr i64, ptr %who.at, i64 1
  %cycles = load i64, ptr %cycles.at
  %all.next = add i64 %all, %cycles
  %most.next = call i64 @llvm.umax.i64(i64 %most, i64 %cycles)
  %i.next = add i64 %i, 1
  %full = icmp eq i64 %i.next, {MOST}
  br i1 %full, label %write, label %look
write:
  %threads = phi i64 [ %i, %look ], [ {MOST}, %add ]
  %busy = phi i64 [ %all, %look ], [ %all.next, %add ]
  %longest = phi i64 [ %most, %look ], [ %most.next, %add ]
  %caller = call i64 (i64, ...) @syscall(i64 186)
  %row = atomicrmw add ptr @count, i64 1 monotonic
  %place = urem i64 %row, {ROWS}
  %first = mul i64 %place, {WORDS}
  %at.0 = getelementptr i64, ptr @regions, i64 %first
  %at.1 = getelementptr i64, ptr %at.0, i64 1
  %at.2 = getelementptr i64, ptr %at.0, i64 2
  %at.3 = getelementptr i64, ptr %at.0, i64 3
  %at.4 = getelementptr i64, ptr %at.0, i64 4
  %at.5 = getelementptr i64, ptr %at.0, i64 5
  store i64 %caller, ptr %at.0
  store i64 %start, ptr %at.1
  store i64 %stop, ptr %at.2
  store i64 %busy, ptr %at.3
  store i64 %longest, ptr %at.4
  store i64 %threads, ptr %at.5
  ret void
}}

define internal void @timed(ptr %own, i64 %begin, i64 %end) nounwind {{
entry:
  %self = call i64 asm sideeffect "movq %fs:0, $0", "=r"()
  %part = load ptr, ptr %own
  %env.at = getelementptr ptr, ptr %own, i64 1
  %env = load ptr, ptr %env.at
  %table = getelementptr ptr, ptr %own, i64 2
  %start = call i64 @llvm.readcyclecounter()
  call void %part(ptr %env, i64 %begin, i64 %end)
  %stop = call i64 @llvm.readcyclecounter()
  %cycles = sub i64 %stop, %start
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %other ]
  %at = mul i64 %i, 2
  %who.at = getelementptr i64, ptr %table, i64 %at
  %taken = cmpxchg ptr %who.at, i64 0, i64 %self monotonic monotonic
  %was = extractvalue {{ i64, i1 }} %taken, 0
  %new = icmp eq i64 %was, 0
  %known = icmp eq i64 %was, %self
  %mine = or i1 %new, %known
  br i1 %mine, label %add, label %other
other:
  %i.next = add i64 %i, 1
  %full = icmp eq i64 %i.next, {MOST}
  br i1 %full, label %done, label %look
add:
  %cycles.at = getelementptr i64, ptr %who.at, i64 1
  %before = load i64, ptr %cycles.at
  %after = add i64 %before, %cycles
  store i64 %after, ptr %cycles.at
  br label %done
done:
  ret void
}}
"""
"""The code; @pool is the `share` of the pool, and 186 is gettid."""


class Regions:
    """The rows of the ring of a library of this code."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._count = ctypes.c_int64.from_address(library.address("count"))
        words = (ctypes.c_int64 * (ROWS * WORDS)).from_address(library.address("regions"))
        self._rows: np.ndarray[Any, Any] = np.ctypeslib.as_array(words).reshape(ROWS, WORDS)

    @property
    def count(self) -> int:
        """How many rows have been written so far."""
        return int(self._count.value)

    def since(self, before: int, thread: int) -> np.ndarray[Any, Any]:
        """The rows of a thread that have been written since there were `before`, as far as the ring still has them."""
        now = self.count
        rows = self._rows[np.arange(max(before, now - ROWS), now) % ROWS]
        mine: np.ndarray[Any, Any] = rows[rows[:, 0] == thread]
        return mine
