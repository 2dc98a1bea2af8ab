// What tests/emulated_device.py calls: kernels of PTX text, launched on memory of this process. A function that fails
// returns what went wrong, in place of ending the process.
#include "schedule.h"

#include <ocelot/executive/EmulatedKernel.h>
#include <ocelot/ir/Module.h>
#include <ocelot/parser/PTXParser.h>
#include <memory>
#include <sstream>

namespace {

struct Loaded {
    std::stringstream text;
    std::unique_ptr<ir::Module> module;
    std::unique_ptr<executive::EmulatedKernel> kernel;
};

std::string said;

template <typename Work> const char* guarded(Work work) {
    try {
        work();
        return nullptr;
    } catch (const parser::PTXParser::Exception& error) {
        said = error.message;
    } catch (const std::exception& error) {
        said = error.what();
    }
    return said.c_str();
}

}

extern "C" const char* emulator_load(const char* text, void** out) {
    return guarded([&] {
        std::unique_ptr<Loaded> made(new Loaded);
        made->text << text;
        made->module.reset(new ir::Module(made.get(), made->text));
        made->kernel.reset(new executive::EmulatedKernel(made->module->kernels().begin()->second, nullptr));
        *out = made.release();
    });
}

extern "C" void emulator_unload(Loaded* loaded) { delete loaded; }

// `extent`: threads of a block and blocks of the grid, along x, y and z; `memory`: pairs of where memory starts and
// ends, in order; `size`: threads that go in step.
extern "C" const char* emulator_launch(Loaded* loaded, int words, const uint64_t* values, const int* extent, int shared,
                                       int pieces, const uint64_t* memory, unsigned seed, int size) {
    return guarded([&] {
        auto& settings = executive::schedule::settings;
        settings.seed = seed;
        settings.size = size;
        settings.memory.clear();
        for (int i = 0; i < pieces; ++i) settings.memory.emplace_back(memory[2 * i], memory[2 * i + 1]);
        executive::EmulatedKernel& kernel = *loaded->kernel;
        auto prototype = loaded->module->kernels().begin()->second->getPrototype();
        for (int i = 0; i < words; ++i) {
            ir::Parameter* parameter = kernel.getParameter(prototype.arguments[i].name);
            parameter->arrayValues.resize(1);
            parameter->arrayValues[0].val_u64 = values[i];
        }
        kernel.updateArgumentMemory();
        kernel.setExternSharedMemorySize(shared);
        kernel.setKernelShape(extent[0], extent[1], extent[2]);
        kernel.launchGrid(extent[3], extent[4], extent[5]);
    });
}
