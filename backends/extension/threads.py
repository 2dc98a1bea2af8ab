"""The thread pool of an extension module: the pool of backends/cpu/pool.py, with startup code that needs no Python.

    mlc_start_threads()               sets the number of threads to MLC_NUM_THREADS, else to the available processors:
                                      the affinity mask, limited by the quota of the container's cgroup
    mlc_share(part, env, count)       the pool's `share`, which also works in a forked child, where no threads exist
    NAME_set_num_threads(count)       for C programs

Every module has a pool of its own, which creates threads on the first parallel work.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.backends.cpu.pool import CODE, MAX_THREADS
from mlc.backends.cpu.targets import TRIPLE
from mlc.backends.cpu.threads import SPIN_CYCLES
from mlc.backends.target import Target

START, SHARE = "mlc_start_threads", "mlc_share"


def set_threads_symbol(name: str) -> str:
    return f"{name}_set_num_threads"


def pool(name: str, hooks: Sequence[str]) -> str:
    """LLVM IR of a module's pool; `hooks` are the variables through which its code calls the pool."""
    stores = "\n".join(f"  store ptr @{SHARE}, ptr @{hook}" for hook in hooks)
    declared = "\n".join(f"@{hook} = external global ptr" for hook in hooks)
    return "\n".join([f'target triple = "{TRIPLE}"', CODE, declared, _START.replace("STORES", stores).replace(
        "SPIN", str(SPIN_CYCLES)).replace("MOST", str(MAX_THREADS)).replace("SET_THREADS", set_threads_symbol(name))])


def none(name: str, target: Target) -> str:
    """LLVM IR for a module without parallel work."""
    return (f'target triple = "{target.triple}"\n'
            f"define void @{set_threads_symbol(name)}(i32 %count) nounwind {{\n  ret void\n}}\n")


_START = """
@variable = internal constant [16 x i8] c"MLC_NUM_THREADS\\00"
@quota = internal constant [23 x i8] c"/sys/fs/cgroup/cpu.max\\00"
@owner = internal global i32 0
@available = internal global i64 1
declare ptr @getenv(ptr)
declare i64 @llvm.ctpop.i64(i64)

define void @mlc_share(ptr %part, ptr %env, i64 %count) nounwind {
  %number = call i64 (i64, ...) @syscall(i64 39)
  %process = trunc i64 %number to i32
  %owner = load atomic i32, ptr @owner acquire, align 4
  %same = icmp eq i32 %owner, %process
  br i1 %same, label %go, label %other
other:
  %changing = icmp eq i32 %owner, -1
  br i1 %changing, label %alone, label %claim
claim:
  %claimed = cmpxchg ptr @owner, i32 %owner, i32 -1 acq_rel monotonic
  %mine = extractvalue { i32, i1 } %claimed, 1
  br i1 %mine, label %renew, label %alone
renew:
  call void @reset()
  store atomic i32 %process, ptr @owner release, align 4
  br label %go
go:
  call void @share(ptr %part, ptr %env, i64 %count)
  ret void
alone:
  call void %part(ptr %env, i64 0, i64 %count)
  ret void
}

define void @SET_THREADS(i32 %count) nounwind {
  %low = icmp slt i32 %count, 1
  %least = select i1 %low, i32 1, i32 %count
  %high = icmp sgt i32 %least, MOST
  %allowed = select i1 %high, i32 MOST, i32 %least
  store atomic i32 %allowed, ptr @threads monotonic, align 4
  %processors = load i64, ptr @available
  %wide = sext i32 %allowed to i64
  %fits = icmp sle i64 %wide, %processors
  %spin = select i1 %fits, i64 SPIN, i64 0
  store atomic i64 %spin, ptr @spin monotonic, align 8
  ret void
}

define void @mlc_start_threads() nounwind {
  %processors = call i64 @processors()
  store i64 %processors, ptr @available
  %text = call ptr @getenv(ptr @variable)
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %all, label %told
told:
  %asked = call i64 @number(ptr %text)
  %none = icmp eq i64 %asked, 0
  %many = icmp ugt i64 %asked, MOST
  %unusable = or i1 %none, %many
  br i1 %unusable, label %all, label %start
all:
  br label %start
start:
  %count = phi i64 [ %asked, %told ], [ %processors, %all ]
  %short = trunc i64 %count to i32
  call void @SET_THREADS(i32 %short)
STORES
  ret void
}

define internal i64 @number(ptr %text) nounwind {         ; the decimal number that a text starts with, or 0
entry:
  br label %look
look:
  %at = phi ptr [ %text, %entry ], [ %next, %digit ]
  %sum = phi i64 [ 0, %entry ], [ %more, %digit ]
  %letter = load i8, ptr %at
  %value = sub i8 %letter, 48                             ; '0'
  %is = icmp ult i8 %value, 10
  %small = icmp ult i64 %sum, 1000000000000
  %go = and i1 %is, %small
  br i1 %go, label %digit, label %done
digit:
  %next = getelementptr i8, ptr %at, i64 1
  %ten = mul i64 %sum, 10
  %wide = zext i8 %value to i64
  %more = add i64 %ten, %wide
  br label %look
done:
  ret i64 %sum
}

define internal i64 @processors() nounwind {
entry:                                                    ; sched_getaffinity(0, 1024, set): bytes, or an error
  %set = alloca [128 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 1024, i1 false)
  %written = call i64 (i64, ...) @syscall(i64 204, i64 0, i64 1024, ptr %set)
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %sum = phi i64 [ 0, %entry ], [ %more, %look ]
  %at = getelementptr i64, ptr %set, i64 %i
  %word = load i64, ptr %at
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %more = add i64 %sum, %bits
  %i.next = add i64 %i, 1
  %over = icmp eq i64 %i.next, 128
  br i1 %over, label %quota, label %look
quota:                                                    ; open, read, close; "QUOTA PERIOD" in microseconds, or "max"
  %text = alloca [64 x i8], align 8
  call void @llvm.memset.p0.i64(ptr %text, i8 0, i64 64, i1 false)
  %file = call i64 (i64, ...) @syscall(i64 2, ptr @quota, i64 524288, i64 0)
  %open = icmp sge i64 %file, 0
  br i1 %open, label %read, label %free
read:
  %held = call i64 (i64, ...) @syscall(i64 0, i64 %file, ptr %text, i64 63)
  %closed = call i64 (i64, ...) @syscall(i64 3, i64 %file)
  %allowed = call i64 @number(ptr %text)
  %limited = icmp ugt i64 %allowed, 0
  br i1 %limited, label %blank, label %free
blank:
  %p = phi ptr [ %text, %read ], [ %p.next, %blank ]
  %letter = load i8, ptr %p
  %p.next = getelementptr i8, ptr %p, i64 1
  %digit = icmp ugt i8 %letter, 32
  br i1 %digit, label %blank, label %period
period:
  %time = call i64 @number(ptr %p.next)
  %timed = icmp ugt i64 %time, 0
  %divisor = select i1 %timed, i64 %time, i64 1
  %whole = udiv i64 %allowed, %divisor
  %fewer = icmp ult i64 %whole, %more
  %least = select i1 %fewer, i64 %whole, i64 %more
  br label %free
free:
  %found = phi i64 [ %more, %quota ], [ %more, %read ], [ %least, %period ]
  %zero = icmp eq i64 %found, 0
  %count = select i1 %zero, i64 1, i64 %found
  ret i64 %count
}
"""
