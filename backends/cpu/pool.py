"""The thread pool, in LLVM IR, which compiled modules call through @mlc_parallel.

    share(part, env, count)   call part(env, i, i + 1) for every i in [0, count), from several threads
    share_up_to(limit, part, env, count)   the same, from at most `limit` threads
    reset()                   discard all threads; for the child of a fork, which has none
    @threads, @spin           maximum number of threads, including the caller; number of cycles that an idle thread
                              spins before it sleeps; the caller spins CALLER_SPINS times as long for the others: where
                              a processor that sleeps is a virtual one, waking it can take milliseconds

Share i of n is [i * count / n, (i + 1) * count / n): equal, contiguous, and deterministic. A thread executes its own
share and then steals single iterations from others, so that none waits for a delayed one. Thread i has a box, a cache
line of its own, with the next and the last iteration of its share and its state:

    IDLE 0  <-> ASLEEP 3              spinning, or sleeping in a futex on the box
    IDLE 0, ASLEEP 3 -> OFFERED 1     by the caller, which wakes a sleeping thread
    OFFERED 1 -> TAKEN 2 -> IDLE 0    working
    OFFERED 1 -> IDLE 0               by the caller, if all work is done before the thread takes it

@pending counts the threads that have an offer or are working; its sign bit is set while the caller sleeps on it. One
call at a time owns the pool (@busy); any other, including nested ones, runs sequentially. Threads are created on demand
and never end; they block all signals except synchronous faults and the two of the C library, and use the caller's
floating-point modes.
"""

MAX_THREADS = 1024
CALLER_SPINS = 20
"""How many times as long as an idle thread the caller spins for the others before it sleeps, too."""

CODE = """
%box = type { i32, i64, i64, [5 x i64] }                   ; state, next, end

@threads = global i32 1, align 64
@spin = global i64 0, align 8
@busy = internal global i32 0, align 64
@pending = internal global i32 0, align 64
@part = internal global ptr null, align 64
@env = internal global ptr null
@shares = internal global i64 0
@modes = internal global i32 0
@made = internal global i64 0
@boxes = internal global [1024 x %box] zeroinitializer, align 64
@signals = internal constant i64 -6442452185

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i64 @syscall(i64, ...)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @share(ptr %part, ptr %env, i64 %count) nounwind {
  call void @share_up_to(i64 1024, ptr %part, ptr %env, i64 %count)
  ret void
}

define void @share_up_to(i64 %limit, ptr %part, ptr %env, i64 %count) nounwind {
entry:
  %allowed = load atomic i32, ptr @threads monotonic, align 4
  %allowed.wide = zext i32 %allowed to i64
  %most = call i64 @llvm.umin.i64(i64 %limit, i64 %allowed.wide)
  %wanted = call i64 @llvm.umin.i64(i64 %most, i64 %count)
  %several = icmp ugt i64 %wanted, 1
  br i1 %several, label %claim, label %alone
alone:
  call void %part(ptr %env, i64 0, i64 %count)
  ret void
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %claimed, 1
  br i1 %mine, label %staff, label %alone
staff:
  %asked = sub i64 %wanted, 1
  %helpers = call i64 @hire(i64 %asked)
  %shares = add i64 %helpers, 1
  store ptr %part, ptr @part
  store ptr %env, ptr @env
  store i64 %shares, ptr @shares
  call void @llvm.x86.sse.stmxcsr(ptr @modes)
  %helpers.short = trunc i64 %helpers to i32
  store atomic i32 %helpers.short, ptr @pending monotonic, align 4
  br label %divide
divide:
  %d = phi i64 [ 0, %staff ], [ %d.next, %divide ]
  %begin = phi i64 [ 0, %staff ], [ %end, %divide ]
  %d.next = add i64 %d, 1
  %high = mul i64 %d.next, %count
  %end = udiv i64 %high, %shares
  %next.at = getelementptr %box, ptr @boxes, i64 %d, i32 1
  %end.at = getelementptr %box, ptr @boxes, i64 %d, i32 2
  store atomic i64 %begin, ptr %next.at monotonic, align 8
  store i64 %end, ptr %end.at
  %divided = icmp eq i64 %d.next, %shares
  br i1 %divided, label %offers, label %divide
offers:
  %i = phi i64 [ 1, %divide ], [ %i.next, %offer ]
  %more = icmp ult i64 %i, %shares
  br i1 %more, label %offer, label %own
offer:
  call void @offer(i64 %i)
  %i.next = add i64 %i, 1
  br label %offers
own:
  call void @work(i64 0)
  br label %rest
rest:
  %k = phi i64 [ %helpers, %own ], [ %k.next, %withdrawn ], [ %k.next, %withdraw ]
  %left = icmp ugt i64 %k, 0
  br i1 %left, label %withdraw, label %wait
withdraw:
  %k.next = sub i64 %k, 1
  %box = getelementptr %box, ptr @boxes, i64 %k
  %back = cmpxchg ptr %box, i32 1, i32 0 acquire monotonic
  %got = extractvalue { i32, i1 } %back, 1
  br i1 %got, label %withdrawn, label %rest
withdrawn:
  %before = atomicrmw sub ptr @pending, i32 1 acq_rel
  br label %rest
wait:
  call void @wait_for_all()
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

define internal void @work(i64 %own) nounwind {
entry:
  %part = load ptr, ptr @part
  %env = load ptr, ptr @env
  %shares = load i64, ptr @shares
  %last = add i64 %own, %shares
  br label %share
share:
  %k = phi i64 [ %own, %entry ], [ %k.next, %through ]
  %over = icmp uge i64 %k, %shares
  %wrapped = sub i64 %k, %shares
  %i = select i1 %over, i64 %wrapped, i64 %k
  %next.at = getelementptr %box, ptr @boxes, i64 %i, i32 1
  %end.at = getelementptr %box, ptr @boxes, i64 %i, i32 2
  %end = load i64, ptr %end.at
  br label %claim
claim:
  %n = atomicrmw add ptr %next.at, i64 1 monotonic
  %mine = icmp slt i64 %n, %end
  br i1 %mine, label %run, label %through
run:
  %following = add i64 %n, 1
  call void %part(ptr %env, i64 %n, i64 %following)
  br label %claim
through:
  %k.next = add i64 %k, 1
  %done = icmp eq i64 %k.next, %last
  br i1 %done, label %finished, label %share
finished:
  ret void
}

define internal void @offer(i64 %i) nounwind {
  %box = getelementptr %box, ptr @boxes, i64 %i
  %was = atomicrmw xchg ptr %box, i32 1 acq_rel
  %slept = icmp eq i32 %was, 3
  br i1 %slept, label %wake, label %done
wake:                                                     ; futex(box, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1 thread)
  %woken = call i64 (i64, ...) @syscall(i64 202, ptr %box, i64 129, i64 1)
  br label %done
done:
  ret void
}

define internal void @wait_for_all() nounwind {
entry:
  %short = load atomic i64, ptr @spin monotonic, align 8
  %limit = mul i64 %short, CALLER_SPINS                   ; for shares that others are working on
  %start = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %pending = load atomic i32, ptr @pending acquire, align 4
  %done = icmp eq i32 %pending, 0
  br i1 %done, label %finished, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %start
  %on = icmp ult i64 %spent, %limit
  br i1 %on, label %look, label %tell
tell:                                                     ; the last to finish wakes whom it sees asleep
  %was = atomicrmw or ptr @pending, i32 -2147483648 acq_rel
  br label %check
check:
  %number = phi i32 [ %was, %tell ], [ %again, %sleep ]
  %shares = and i32 %number, 2147483647
  %none = icmp eq i32 %shares, 0
  br i1 %none, label %finished, label %sleep
sleep:                                                    ; futex(pending, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected)
  %expected = or i32 %number, -2147483648
  %slept = call i64 (i64, ...) @syscall(i64 202, ptr @pending, i64 128, i32 %expected, ptr null)
  %again = load atomic i32, ptr @pending acquire, align 4
  br label %check
finished:
  ret void
}

define internal i64 @hire(i64 %wanted) nounwind {
entry:
  %thread = alloca i64
  %old = alloca i64
  %have = load i64, ptr @made
  br label %look
look:
  %n = phi i64 [ %have, %entry ], [ %one.more, %next ]
  %enough = icmp uge i64 %n, %wanted
  br i1 %enough, label %done, label %make
make:                                                     ; rt_sigprocmask(SIG_SETMASK, new, old): a thread inherits it
  %one.more = add i64 %n, 1
  %name = inttoptr i64 %one.more to ptr
  %set = call i64 (i64, ...) @syscall(i64 14, i64 2, ptr @signals, ptr %old, i64 8)
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %name)
  %restored = call i64 (i64, ...) @syscall(i64 14, i64 2, ptr %old, ptr null, i64 8)
  %made = icmp eq i32 %failed, 0
  br i1 %made, label %next, label %done
next:
  store i64 %one.more, ptr @made
  br label %look
done:
  %found = call i64 @llvm.umin.i64(i64 %n, i64 %wanted)
  ret i64 %found
}

define internal ptr @worker(ptr %name) nounwind {
entry:
  %i = ptrtoint ptr %name to i64
  %box = getelementptr %box, ptr @boxes, i64 %i
  br label %look
look:
  call void @wait_for_offer(ptr %box)
  %taken = cmpxchg ptr %box, i32 1, i32 2 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %work, label %look
work:
  call void @llvm.x86.sse.ldmxcsr(ptr @modes)
  call void @work(i64 %i)
  store atomic i32 0, ptr %box release, align 4
  %before = atomicrmw sub ptr @pending, i32 1 acq_rel
  %last = icmp eq i32 %before, -2147483647                ; the caller sleeps, and this was the last share
  br i1 %last, label %wake, label %look
wake:
  %woken = call i64 (i64, ...) @syscall(i64 202, ptr @pending, i64 129, i64 1)
  br label %look
}

define internal void @wait_for_offer(ptr %box) nounwind {
entry:
  br label %watch
watch:
  %limit = load atomic i64, ptr @spin monotonic, align 8
  %start = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %state = load atomic i32, ptr %box acquire, align 4
  %offered = icmp eq i32 %state, 1
  br i1 %offered, label %done, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %start
  %on = icmp ult i64 %spent, %limit
  br i1 %on, label %look, label %rest
rest:
  %resting = cmpxchg ptr %box, i32 0, i32 3 acq_rel acquire
  %may = extractvalue { i32, i1 } %resting, 1
  br i1 %may, label %sleep, label %done
sleep:
  %slept = call i64 (i64, ...) @syscall(i64 202, ptr %box, i64 128, i32 3, ptr null)
  %now.state = load atomic i32, ptr %box acquire, align 4
  %still = icmp eq i32 %now.state, 3
  br i1 %still, label %sleep, label %watch
done:
  ret void
}

define void @reset() nounwind {
  store i32 0, ptr @busy
  store i64 0, ptr @made
  call void @llvm.memset.p0.i64(ptr @boxes, i8 0, i64 65536, i1 false)
  ret void
}
""".replace("CALLER_SPINS", str(CALLER_SPINS))

LIMITED = """
@pool = global ptr null, align 8

define void @share(ptr %part, ptr %env, i64 %count) nounwind {{
  %share_up_to = load ptr, ptr @pool
  tail call void %share_up_to(i64 {limit}, ptr %part, ptr %env, i64 %count)
  ret void
}}
"""
"""`share` with a limit of its own, for libraries that may use fewer threads than the process; @pool is @share_up_to."""
