#include "schedule.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <ocelot/executive/CooperativeThreadArray.h>
#include <ocelot/executive/EmulatedKernel.h>
#include <ocelot/executive/RuntimeException.h>
#include <sstream>

namespace executive {
namespace schedule {

Settings settings;

static void arrive(std::vector<Copy>& copies) {
    for (Copy& c : copies) std::memcpy(c.to, c.bytes, c.size);
    copies.clear();
}

void Part::begin(int threads) {
    waits = ForNothing;
    open.assign(threads, {});
    groups.assign(threads, {});
    arrival = settings.seed ? Arrival((*random)() % 3) : AtOnce;
}

void Part::copy(const Copy& c, int thread) {
    bool late = arrival == AsLateAsAllowed || (arrival == Either && (*random)() % 2);
    if (late) open[thread].push_back(c);
    else std::memcpy(c.to, c.bytes, c.size);
}

void event(CooperativeThreadArray& cta, CTAContext& context, const ir::PTXInstruction& instr) {
    Part& part = cta.part;
    unsigned number = instr.d.imm_uint;
    if (number == SyncWarp) {
        if (settings.size >= WARP) return;                    // a part has its lanes in step
        part.waits = ForWarp;
        context.executionState = CTAContext::Barrier;
        return;
    }
    for (int t = 0; t < cta.threadCount; ++t) {
        if (!context.predicated(t, instr)) continue;
        auto& groups = part.groups[t];
        if (number == Commit) {
            groups.push_back(std::move(part.open[t]));
            part.open[t].clear();
            continue;
        }
        for (size_t kept = number == WaitAll ? 0 : number; groups.size() > kept; groups.pop_front())
            arrive(groups.front());
        if (number == WaitAll) arrive(part.open[t]);
    }
}

void check(CooperativeThreadArray& cta, const ir::PTXInstruction& instr, const char* at, size_t size) {
    uint64_t address = (uint64_t)at;
    bool inside = true;
    if (instr.addressSpace == ir::PTXInstruction::Shared) {
        address -= (uint64_t)cta.functionCallStack.sharedMemoryPointer();
        inside = address + size <= cta.functionCallStack.sharedMemorySize() && address + size >= size;
    } else if (instr.addressSpace == ir::PTXInstruction::Global) {
        auto& memory = settings.memory;
        auto next = std::upper_bound(memory.begin(), memory.end(), std::make_pair(address, ~uint64_t(0)));
        inside = next != memory.begin() && address + size <= (next - 1)->second;
    } else {
        return;
    }
    if (inside && address % size == 0) return;
    std::stringstream said;
    said << (inside ? "misaligned" : "outside of memory") << ": " << size << " bytes at " << address;
    throw RuntimeException(said.str(), cta.getPC(), instr);
}

// -- blocks ----------------------------------------------------------------------------------------------------------
using Parts = std::vector<std::unique_ptr<CooperativeThreadArray>>;

static Parts cut(CooperativeThreadArray& whole, const ir::Dim3& grid, std::mt19937& random) {
    Parts parts;
    EmulatedKernel* k = whole.kernel;
    for (int first = 0; first < whole.threadCount; first += settings.size) {
        int threads = std::min(settings.size, whole.threadCount - first);
        parts.emplace_back(new CooperativeThreadArray(k, grid, ir::Dim3(threads, 1, 1), k->argumentMemorySize(),
            k->parameterMemorySize(), k->registerCount(), k->localMemorySize(), k->globalLocalMemorySize(), 0, false));
        CooperativeThreadArray& part = *parts.back();
        part.blockDim = whole.blockDim;
        part.part.first = first;
        part.part.random = &random;
        part.functionCallStack.borrow(whole.functionCallStack);
    }
    return parts;
}

// Let those go on that wait for each other and are all there; false where nobody does.
static bool release(Parts& parts) {
    size_t together = std::max<size_t>(1, WARP / settings.size);
    bool all = std::all_of(parts.begin(), parts.end(), [](auto& p) { return p->part.waits == ForBlock; });
    bool any = false;
    for (size_t i = 0; i < parts.size(); i += together) {
        auto first = parts.begin() + i, last = parts.begin() + std::min(parts.size(), i + together);
        if (!all && !std::all_of(first, last, [](auto& p) { return p->part.waits == ForWarp; })) continue;
        any = true;
        for (auto p = first; p != last; ++p) {
            (*p)->part.waits = ForNothing;
            (*p)->setExecutionState(CTAContext::Running);
        }
    }
    return any;
}

static void runBlock(Parts& parts, const ir::Dim3& place, std::mt19937& random) {
    for (auto& p : parts) {
        p->initialize(place);
        p->part.begin(p->threadCount);
    }
    for (;;) {
        std::vector<CooperativeThreadArray*> ready;
        bool done = true;
        for (auto& p : parts) {
            if (p->getExecutionState() == CTAContext::Running) ready.push_back(p.get());
            done = done && p->getExecutionState() == CTAContext::Exit;
        }
        if (done) return;
        if (ready.empty()) {
            if (release(parts)) continue;
            throw std::runtime_error("some threads of a block wait at a barrier that others do not come to");
        }
        CooperativeThreadArray* next = ready[settings.seed ? random() % ready.size() : 0];
        next->part.left = !settings.seed || random() % 2 ? LONG_MAX : 1 + random() % 64;
        next->kernel->setCTA(next);
        next->execute(next->getPC());
    }
}

void run(CooperativeThreadArray& whole, const ir::Dim3& grid) {
    std::mt19937 random(settings.seed);
    Parts parts = cut(whole, grid, random);
    std::vector<ir::Dim3> places;
    for (int z = 0; z < grid.z; ++z)
        for (int y = 0; y < grid.y; ++y)
            for (int x = 0; x < grid.x; ++x) places.emplace_back(x, y, z);
    if (settings.seed) std::shuffle(places.begin(), places.end(), random);
    for (const ir::Dim3& place : places) {                    // nothing is in shared memory until somebody writes it
        std::memset(whole.functionCallStack.sharedMemoryPointer(), 0xFF, whole.functionCallStack.sharedMemorySize());
        runBlock(parts, place, random);
    }
    whole.kernel->setCTA(&whole);
}

}
}
