// A block whose threads do not go together, and copies to shared memory that arrive late.
//
// The emulator runs all threads of a block in step, and so never sees that a barrier is missing. Here a block is cut into
// parts (warps, or single threads), each with registers and a place in the program of its own, and all with one shared
// memory. A part runs to its next barrier or for a few instructions, then one that is drawn goes on. Seed 0 draws
// nothing: parts go in order, from barrier to barrier, and copies arrive at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace ir { class Dim3; class PTXInstruction; }

namespace executive {
class CooperativeThreadArray;
class CTAContext;

namespace schedule {

const int WARP = 32;
// Numbers of pmevent, which stands for what PTX 3 has no instruction for; smaller ones are cp.async.wait_group.
enum Event { Commit = 100, WaitAll, SyncWarp };
enum Waits { ForNothing, ForBlock, ForWarp };
enum Arrival { AtOnce, AsLateAsAllowed, Either };

struct Copy {
    char* to;
    size_t size;
    char bytes[16];
};

struct Settings {
    unsigned seed = 0;
    int size = WARP;                                          // threads of a part
    std::vector<std::pair<uint64_t, uint64_t>> memory;        // where global memory starts and ends, in order
};
extern Settings settings;

struct Part {
    int first = 0;                                            // its first thread's place in the block
    long left = 0;                                            // instructions until others have their turn
    Waits waits = ForNothing;
    Arrival arrival = AtOnce;
    std::mt19937* random = nullptr;
    std::vector<std::vector<Copy>> open;                      // of each thread, copies that are in no group yet
    std::vector<std::deque<std::vector<Copy>>> groups;        // and those that it has not waited for

    void begin(int threads);
    void copy(const Copy&, int thread);
};

// All blocks of a grid, for a kernel that `whole` is one block of.
void run(CooperativeThreadArray& whole, const ir::Dim3& grid);
void event(CooperativeThreadArray&, CTAContext&, const ir::PTXInstruction&);
// Throws unless an access is within its memory and aligned.
void check(CooperativeThreadArray&, const ir::PTXInstruction&, const char* at, size_t size);

}
}
