// The door in machine code, on broken cubins: what is written is a cubin again, of the same parts, in which
// no entry gets a second door.
#include <cstdio>
#include <cstdlib>

#include "rewriter/machine_code/elf_editor.h"
#include "rewriter/machine_code/patch.h"
#include "tests/fuzz/prologues.h"

namespace {

using namespace smt::machine_code;

void must(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "door: %s\n", what);
    std::abort();
}

template <typename T>
T* whole(std::variant<T, Problem>& either) {
    if (auto* problem = std::get_if<Problem>(&either))
        must(!problem->text.empty(), "a problem without words");
    return std::get_if<T>(&either);
}

void check_copy(std::string_view bytes) {
    auto editor = ElfEditor::read(bytes);
    if (!whole(editor)) return;
    auto copy = std::get<ElfEditor>(editor).write();
    if (auto* same = whole(copy)) must(*same == bytes, "an unchanged file is written otherwise");
}

void check_patched(const Patched& before, Prologues& prologues) {
    auto again = patch(before.cubin, prologues);
    if (auto* problem = whole(again); !problem)
        std::fprintf(stderr, "%s\n", std::get<Problem>(again).text.c_str());
    must(whole(again) != nullptr, "what was patched is no cubin");
    const auto& after = std::get<Patched>(again);
    must(after.entries.size() == before.entries.size(), "other entries");
    for (size_t i = 0; i < after.entries.size(); ++i) {
        must(after.entries[i].name == before.entries[i].name, "another name");
        if (before.entries[i].reason.empty()) must(!after.entries[i].reason.empty(), "a second door");
    }
    check_copy(before.cubin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    static Prologues& prologues = *new Prologues(read_prologue);
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    check_copy(bytes);
    (void)cut_prologue(bytes);
    auto attributes = read_attributes(bytes);
    if (auto* read = whole(attributes))
        must(write_attributes(*read) == bytes, "attributes are written otherwise");
    auto patched = patch(bytes, prologues);
    if (auto* result = whole(patched))
        if (!result->cubin.empty()) check_patched(*result, prologues);
    return 0;
}
