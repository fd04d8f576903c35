// The __managed__ variables of an image, moved to the session's arena.
//
// The driver keeps them in memory that only its own process can touch, but the program reads and writes
// them like its own. So the image is changed before it is loaded: wherever its code has the address of
// such a variable, which is a relocation in the cubin, the address of a place in the arena is written
// and the relocation taken out. The variable that the driver makes stays behind, unused.
//
//   ManagedVariables managed;
//   if (managed.find(image, 90)) {                     // what there is, for an sm_90 device
//       ... memory of managed.bytes() at `address`, zeroed, that the device reaches
//       managed.place(image, address);                 // changes the image, writes the initial values
//   }
//
// All cubins of a container are changed, since the driver picks one. Nothing is changed when it might
// pick something else: PTX, or a compressed cubin. Then the variables are not served at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace smt::runtime::server::handlers {

class ManagedVariables {
public:
    // Trusts nothing in the image. False: it has no such variables, or they cannot be moved.
    bool find(const std::vector<char>& image, int architecture);
    uint64_t bytes() const { return bytes_; }
    // `image` is the one that find() saw.
    void place(std::vector<char>& image, uint64_t address);

    // The device has placed the variables of its own accord: what is kept here is the memory.
    void keep(uint64_t memory) { memory_ = memory; }

    uint64_t memory() const { return memory_; }   // 0: not placed
    bool look_up(const char* name, uint64_t* address, uint64_t* bytes) const;

private:
    struct Variable {
        uint64_t offset, bytes;   // in the arena's block
    };
    struct Initial {              // a variable's first value
        uint64_t offset, bytes, at;   // `at`: in the image
    };
    enum class Kind { kWhole, kLow, kHigh };
    struct Fixup {
        Kind kind;
        uint64_t at;              // in the image
        uint64_t value;           // offset in the block, and the addend
    };
    struct Trimmed {              // a relocation section without some of its entries
        uint64_t size_at;         // of its header's sh_size
        uint64_t at, entry_bytes;
        std::vector<bool> dropped;
    };
    class Cubin;

    bool find_cubins(const std::vector<char>& image, int architecture, bool* found);
    uint64_t offset_of(const std::string& name, uint64_t bytes);   // of a variable, known or new

    std::map<std::string, Variable> variables_;
    std::vector<Initial> initials_;
    std::vector<Fixup> fixups_;
    std::vector<Trimmed> trimmed_;
    uint64_t bytes_ = 0;
    uint64_t memory_ = 0;
};

}  // namespace smt::runtime::server::handlers
