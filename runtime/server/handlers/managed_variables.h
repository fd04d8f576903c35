// The __managed__ variables of an image, moved to the session's arena.
//
// The driver keeps them in memory that only its own process can access, but the program reads and writes them
// directly. So the image is changed before it is loaded: each address of such a variable in its code, which
// is a relocation in the cubin, is replaced by an address in the arena, and the relocation is removed. The
// driver's own variable stays unused.
//
//   ManagedVariables managed;
//   if (managed.find(image, 90)) {                     // variables for an sm_90 device
//       ... zeroed memory of managed.bytes() at `address` that the device can access
//       managed.place(image, address);                 // changes the image, writes the initial values
//   }
//
// All cubins of a container are changed, since the driver picks one. The image is not changed if the driver
// might pick another kind of entry: PTX or a compressed cubin. The variables are then not served.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace smt::runtime::server::handlers {

class ManagedVariables {
public:
    // The image is not trusted. False: it has no such variables, or they cannot be moved.
    bool find(const std::vector<char>& image, int architecture);
    uint64_t bytes() const { return bytes_; }
    // `image` must be the one that find() got.
    void place(std::vector<char>& image, uint64_t address);

    // Records the memory of the variables if the device itself has placed them there.
    void keep(uint64_t memory) { memory_ = memory; }

    uint64_t memory() const { return memory_; }   // 0: not placed
    bool look_up(const char* name, uint64_t* address, uint64_t* bytes) const;

private:
    struct Variable {
        uint64_t offset, bytes;   // in the arena's block
    };
    struct Initial {              // a variable's initial value
        uint64_t offset, bytes, at;   // `at`: in the image
    };
    enum class Kind { kWhole, kLow, kHigh };
    struct Fixup {
        Kind kind;
        uint64_t at;              // in the image
        uint64_t value;           // offset in the block, and the addend
    };
    struct Trimmed {              // a relocation section from which entries are dropped
        uint64_t size_at;         // offset of its header's sh_size
        uint64_t at, entry_bytes;
        std::vector<bool> dropped;
    };
    class Cubin;

    bool find_cubins(const std::vector<char>& image, int architecture, bool* found);
    uint64_t offset_of(const std::string& name, uint64_t bytes);   // of a known or new variable

    std::map<std::string, Variable> variables_;
    std::vector<Initial> initials_;
    std::vector<Fixup> fixups_;
    std::vector<Trimmed> trimmed_;
    uint64_t bytes_ = 0;
    uint64_t memory_ = 0;
};

}  // namespace smt::runtime::server::handlers
