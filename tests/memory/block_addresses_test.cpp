#include "runtime/server/memory/block_addresses.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace smt::runtime::server {

namespace {

constexpr uint64_t kPiece = 4ull << 20;

size_t pages_there(char* piece) {
    std::vector<unsigned char> there(kPiece / static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
    if (mincore(piece, kPiece, there.data()) != 0) return 0;  // there is no mapping
    size_t count = 0;
    for (const unsigned char each : there) count += each & 1;
    return count;
}

}  // namespace

TEST_CASE("block addresses: pieces of one mapping, and more of their own", "[block_addresses]") {
    BlockAddresses addresses(kPiece, 2 * kPiece + 5);
    char* const first = addresses.take();
    char* const second = addresses.take();
    char* const third = addresses.take();
    REQUIRE((first && second && third));
    CHECK(second - first == static_cast<ptrdiff_t>(kPiece));
    for (char* const piece : {first, second, third}) {
        CHECK(reinterpret_cast<uint64_t>(piece) % (2 << 20) == 0);
        std::memset(piece, 1, kPiece);
        CHECK(pages_there(piece) > 0);
    }
    for (char* const piece : {first, third}) addresses.give_back(piece);
    CHECK(pages_there(first) == 0);
    CHECK(pages_there(third) == 0);
    CHECK(second[kPiece - 1] == 1);
    CHECK(addresses.take() == first);
    CHECK(first[0] == 0);
    addresses.give_back(first);
    addresses.give_back(second);
}

TEST_CASE("block addresses: without a reservation", "[block_addresses]") {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 60}) {
        BlockAddresses addresses(kPiece, bytes);
        char* const piece = addresses.take();
        REQUIRE(piece);
        std::memset(piece, 1, kPiece);
        addresses.give_back(piece);
        CHECK(pages_there(piece) == 0);
    }
}

}  // namespace smt::runtime::server
