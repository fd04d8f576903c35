// ptx_load FILE ...: loads each PTX file as the simulated device would and decodes all its kernels.
// One line for each kernel; exit status 1: something was refused.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/ptx/exec/bench_device.h"

int main(int count, char** files) {
    bool all = true;
    for (int i = 1; i < count; ++i) {
        std::ifstream stream(files[i]);
        const std::string text(std::istreambuf_iterator<char>(stream), {});
        smt::test::BenchDevice device;
        if (!device.load(text)) {
            std::printf("%s: %s\n", files[i], device.error.c_str());
            all = false;
            continue;
        }
        for (const std::string& name : device.module->kernel_names()) {
            const auto* kernel = device.kernel(name);
            if (kernel == nullptr)
                std::printf("%s: %s\n", files[i], device.error.c_str());
            else
                std::printf("%s: %s: %u registers, %u bytes shared, %u local\n", files[i], name.c_str(),
                            kernel->registers, kernel->static_shared, kernel->local_bytes);
            all = all && kernel != nullptr;
        }
    }
    return all ? 0 : 1;
}
