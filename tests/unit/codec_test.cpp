#include "runtime/protocol/codec.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace smt::protocol {
namespace {

TEST_CASE("what is written comes back in order", "[codec]") {
    alignas(8) char data[256];
    Writer writer(data, sizeof(data));
    const double values[] = {1.5, -2.0, 3.25};
    writer.scalar<uint8_t>(7);
    writer.array(values, 3);
    writer.string("kernel");
    writer.array<int>(nullptr, 9);
    writer.scalar<uint64_t>(~0ull);
    REQUIRE(writer.good());
    CHECK(writer.used() == 8 + (8 + 24) + (8 + 8) + 8 + 8);

    Reader reader(data, writer.used());
    CHECK(reader.scalar<uint8_t>() == 7);
    uint64_t count = 0;
    const double* array = reader.array<double>(count);
    REQUIRE(count == 3);
    CHECK(std::memcmp(array, values, sizeof(values)) == 0);
    CHECK(std::strcmp(reader.string(), "kernel") == 0);
    CHECK(reader.array<int>(count) == nullptr);
    CHECK(count == 0);
    CHECK(reader.scalar<uint64_t>() == ~0ull);
    CHECK(reader.good());
    CHECK(reader.left() == 0);
}

TEST_CASE("padding carries no bytes of the sender's memory", "[codec]") {
    std::array<unsigned char, 16> data;
    data.fill(0xff);
    Writer writer(data.data(), data.size());
    writer.scalar<uint8_t>(1);
    for (int i = 1; i < 8; ++i) CHECK(data[i] == 0);
    CHECK(data[8] == 0xff);
}

TEST_CASE("a writer never passes its end", "[codec]") {
    std::array<char, 24> data{};
    data[16] = 'x';
    Writer writer(data.data(), 16);
    writer.scalar<uint64_t>(1);
    CHECK(writer.good());
    writer.bytes("123456789", 9);
    CHECK_FALSE(writer.good());
    CHECK(data[16] == 'x');
    Writer empty(nullptr, 0);
    empty.scalar(1);
    CHECK_FALSE(empty.good());
    Writer huge(data.data(), 16);
    huge.bytes(data.data(), ~0ull);  // rounding up must not wrap to nothing
    CHECK_FALSE(huge.good());
}

TEST_CASE("a reader never passes its end, and stays bad", "[codec]") {
    alignas(8) const uint64_t data[2] = {1, 2};
    Reader reader(data, sizeof(data));
    CHECK(reader.take(24) == nullptr);
    CHECK_FALSE(reader.good());
    CHECK(reader.scalar<uint64_t>() == 0);
    Reader huge(data, sizeof(data));
    CHECK(huge.take(~0ull) == nullptr);
    CHECK_FALSE(huge.good());
}

TEST_CASE("an array's count is checked before it is used", "[codec]") {
    for (uint64_t lie : {2ull, 1ull << 32, 1ull << 61, ~0ull - 1}) {
        const uint64_t data[2] = {lie, 42};
        Reader reader(data, sizeof(data));
        uint64_t count = 99;
        CHECK(reader.array<uint64_t>(count) == nullptr);
        CHECK(count == 0);
        CHECK_FALSE(reader.good());
    }
}

TEST_CASE("a string without its end is bad", "[codec]") {
    uint64_t data[2] = {8, 0};
    std::memset(&data[1], 'a', 8);
    Reader open(data, sizeof(data));
    CHECK(open.string() == nullptr);
    CHECK_FALSE(open.good());
    data[0] = 0;
    Reader empty(data, sizeof(data));
    CHECK(empty.string() == nullptr);
    CHECK_FALSE(empty.good());
    data[0] = kNull;
    Reader null(data, sizeof(data));
    CHECK(null.string() == nullptr);
    CHECK(null.good());
}

}  // namespace
}  // namespace smt::protocol
