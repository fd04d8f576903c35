// The memory mappings of this process, read line by line from /proc/self/maps.
//
//   Mappings mappings;
//   Mapping mapping;
//   while (mappings.next(mapping)) ...       // in the order of addresses
//
// Allocates no memory and takes no lock, so a forked child may use it as well.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace smt::interpose::driver {

struct Mapping {
    uint64_t from, to;
    uint64_t offset;  // of `from` in the file
    uint64_t device;  // of the file; 0 and 0: no file
    uint64_t inode;
    bool readable, writable, shared;
    bool main_stack;

    bool own_and_writable() const { return readable && writable && !shared; }
};

class Mappings {
public:
    Mappings();
    ~Mappings();
    Mappings(const Mappings&) = delete;
    Mappings& operator=(const Mappings&) = delete;

    bool next(Mapping& mapping);

private:
    int get();
    bool number(int base, char end, uint64_t& value);

    int file_;
    char buffer_[4096];
    ssize_t filled_ = 0;
    ssize_t at_ = 0;
};

// Finds the file of this_session()'s arena. Must be called before a fork if the child calls arena_behind().
bool find_arena();
// The place in that arena of the pages that the mapping shows elsewhere in the process; 0: it is the arena
// itself or something else.
uint64_t arena_behind(const Mapping& mapping);

}  // namespace smt::interpose::driver
