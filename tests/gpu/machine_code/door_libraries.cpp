// The parts of door_check that need files: ptxas, and NVIDIA's libraries.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "door_check.h"
#include "runtime/image/container.h"
#include "runtime/image/image.h"

using namespace smt::machine_code;
namespace image = smt::image;

namespace {

constexpr int kArchitecture = 90;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Sums {
    size_t cubins = 0, left_whole = 0, loaded = 0, refused = 0, refused_unpatched_too = 0;
    size_t entries = 0, patched = 0, found = 0, not_found = 0, parameter_wrong = 0, registers_wrong = 0;
    size_t bytes = 0;
    double patch_seconds = 0, load_seconds = 0;
    std::map<std::string, size_t> reasons, errors;
};

void look_at_entries(CUmodule module, const Patched& patched, Sums& sums) {
    for (const PatchedEntry& entry : patched.entries) {
        CUfunction function;
        if (cuModuleGetFunction(&function, module, entry.name.c_str()) != CUDA_SUCCESS) {
            ++sums.not_found;
            continue;
        }
        ++sums.found;
        if (!entry.reason.empty()) continue;
        size_t offset = 0, size = 0;
        const CUresult status = cuFuncGetParamInfo(function, entry.parameters - 1, &offset, &size);
        sums.parameter_wrong +=
            status != CUDA_SUCCESS || offset != entry.door_offset || size != sizeof(smt::DoorLaunch);
        int registers = 0;
        cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
        sums.registers_wrong += registers != static_cast<int>(entry.registers);
    }
}

void load(const std::string& cubin, Prologues& prologues, Sums& sums) {
    ++sums.cubins;
    sums.bytes += cubin.size();
    auto begin = Clock::now();
    auto result = patch(cubin, prologues);
    sums.patch_seconds += since(begin);
    if (auto* problem = std::get_if<Problem>(&result)) {
        ++sums.left_whole;
        ++sums.reasons[problem->text];
        return;
    }
    const auto& patched = std::get<Patched>(result);
    for (const PatchedEntry& entry : patched.entries) {
        ++sums.entries;
        entry.reason.empty() ? ++sums.patched : ++sums.reasons[entry.reason];
    }
    if (patched.cubin.empty()) return;
    CUmodule module;
    begin = Clock::now();
    const CUresult status = cuModuleLoadData(&module, patched.cubin.data());
    sums.load_seconds += since(begin);
    if (status == CUDA_SUCCESS) {
        ++sums.loaded;
        look_at_entries(module, patched, sums);
        cuModuleUnload(module);
        return;
    }
    ++sums.errors[error_text(status)];
    const CUresult unpatched = cuModuleLoadData(&module, cubin.data());
    if (unpatched == CUDA_SUCCESS) cuModuleUnload(module);
    unpatched == CUDA_SUCCESS ? ++sums.refused : ++sums.refused_unpatched_too;
}

std::string json(const std::map<std::string, size_t>& counts) {
    std::string text;
    for (const auto& [what, count] : counts)
        text += (text.empty() ? "\"" : ",\"") + what + "\":" + std::to_string(count);
    return "{" + text + "}";
}

void check_file(const std::string& path, std::string_view bytes, Clock::time_point begin, double seconds,
                Prologues& prologues) {
    auto found = image::find_images(bytes);
    Sums sums;
    bool whole = true;
    if (auto* container = std::get_if<image::Container>(&found)) {
        for (const image::Found& each : container->images) {
            auto entries = image::read(each.bytes);
            if (each.place == image::Place::kRelocatable ||
                !std::holds_alternative<std::vector<image::Entry>>(entries))
                continue;
            for (const image::Entry& entry : std::get<0>(entries)) {
                if (entry.kind != image::Kind::kCubin || entry.architecture != kArchitecture) continue;
                if (since(begin) > seconds) whole = false;
                if (!whole) continue;
                auto cubin = image::expand(entry);
                if (auto* text = std::get_if<std::string>(&cubin)) load(*text, prologues, sums);
            }
        }
    }
    failures +=
        sums.refused != 0 || sums.not_found != 0 || sums.parameter_wrong != 0 || sums.registers_wrong != 0;
    row(R"({"part":"library","file":"%s","whole":%s,"cubins":%zu,"left_whole":%zu,"loaded":%zu,)"
        R"("refused":%zu,"refused_unpatched_too":%zu,"entries":%zu,"patched":%zu,)"
        R"("found":%zu,"not_found":%zu,"parameter_wrong":%zu,"registers_wrong":%zu,"mb":%.1f,)"
        R"("patch_s":%.2f,"load_s":%.2f,"reasons":%s,"errors":%s})",
        path.substr(path.rfind('/') + 1).c_str(), whole ? "true" : "false", sums.cubins, sums.left_whole,
        sums.loaded, sums.refused, sums.refused_unpatched_too, sums.entries, sums.patched, sums.found,
        sums.not_found, sums.parameter_wrong, sums.registers_wrong, static_cast<double>(sums.bytes) / 1e6,
        sums.patch_seconds, sums.load_seconds, json(sums.reasons).c_str(), json(sums.errors).c_str());
}

}  // namespace

// What was assembled before lies in the folder PROLOGUES, if there is one: a machine may have another ptxas.
std::variant<std::string, Problem> assemble_with_ptxas(const std::string& ptx,
                                                       const std::string& architecture) {
    const char* folder = std::getenv("PROLOGUES");
    const std::string kept = std::string(folder ? folder : "/tmp") + "/" +
                             std::to_string(std::hash<std::string>()(ptx)) + ".cubin";
    const auto read = [&]() -> std::string {
        std::ifstream file(kept, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    if (std::string cubin = read(); !cubin.empty()) return cubin;
    const char* named = std::getenv("PTXAS");
    const std::string text = "/tmp/door_check." + std::to_string(getpid()) + ".ptx";
    std::ofstream(text) << ptx;
    const std::string command =
        std::string(named ? named : "ptxas") + " -arch=" + architecture + " -O3 " + text + " -o " + kept;
    const int status = std::system(command.c_str());
    unlink(text.c_str());
    if (status != 0) return Problem{command};
    return read();
}

void check_library(const std::string& path, double seconds, Prologues& prologues) {
    const int file = open(path.c_str(), O_RDONLY);
    struct stat facts{};
    if (file < 0 || fstat(file, &facts) != 0) {
        std::printf("no file %s\n", path.c_str());
        return;
    }
    void* bytes = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    check_file(path, {static_cast<const char*>(bytes), static_cast<size_t>(facts.st_size)}, Clock::now(),
               seconds, prologues);
    munmap(bytes, static_cast<size_t>(facts.st_size));
    close(file);
}
