// Kernels that nvcc compiled, run and checked: the optimised PTX and the one of a debug build.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/ptx/exec/bench_device.h"

#ifdef SMT_COMPILED_KERNELS

using namespace smt::test;

namespace {

struct Compiled : BenchDevice {
    explicit Compiled(const std::string& build) {
        std::ifstream stream(std::string(SMT_COMPILED_KERNELS) + "/" + build + ".ptx");
        const std::string text(std::istreambuf_iterator<char>(stream), {});
        const bool loaded = load(text);
        INFO(error);
        REQUIRE(loaded);
    }
    template <class... T>
    void run(const std::string& name, sim::Dim3 grid, sim::Dim3 block, uint32_t shared, T... arguments) {
        const bool ran = launch(name, grid, block, shared, arguments...);
        INFO(error);
        REQUIRE(ran);
    }
};

template <class T>
std::vector<T> zeros(size_t count) {
    return std::vector<T>(count);
}

}  // namespace

TEST_CASE("compiled: tiled matrix product") {
    Compiled device(GENERATE("optimized", "debug"));
    const int n = 32;
    std::vector<float> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) {
        a[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3);
        b[static_cast<size_t>(i)] = static_cast<float>(i % 5 - 2);
    }
    const uint64_t da = device.copy_in(a), db = device.copy_in(b), dc = device.copy_in(zeros<float>(n * n));
    device.run("matmul", {2, 2}, {16, 16}, 0, da, db, dc, n);
    const auto c = device.copy_out<float>(dc, n * n);
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            float sum = 0;
            for (int k = 0; k < n; ++k)
                sum += a[static_cast<size_t>(row * n + k)] * b[static_cast<size_t>(k * n + column)];
            REQUIRE(c[static_cast<size_t>(row * n + column)] == sum);
        }
}

TEST_CASE("compiled: reduction with shuffles and dynamic shared memory") {
    Compiled device(GENERATE("optimized", "debug"));
    std::vector<int> values(5000);
    int sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] = static_cast<int>(i * 37 % 1000) - 300;
    const uint64_t in = device.copy_in(values), out = device.copy_in(zeros<int>(1));
    device.run("reduce", {3}, {256}, 32, in, static_cast<int>(values.size()), out);
    REQUIRE(device.copy_out<int>(out, 1)[0] == sum);
}

TEST_CASE("compiled: printf") {
    Compiled device(GENERATE("optimized", "debug"));
    const uint64_t word = device.copy_in(std::vector<char>{'h', 'i', 0});
    device.run("tell", {1}, {32}, 0, 7, word);
    REQUIRE(device.printed ==
            "7 10.50 [hi  ] a -5000000000 4000000000 beef %\n8 10.50 [hi  ] b -5000000000 4000000000 beef "
            "%\nno arguments\n");
}

TEST_CASE("compiled: assert and trap end the kernel") {
    Compiled device(GENERATE("optimized", "debug"));
    REQUIRE(device.launch("check", {1}, {32}, 0, 32));
    REQUIRE_FALSE(device.launch("check", {2}, {32}, 0, 20));
    REQUIRE(device.fault->kind == sim::Fault::Kind::kAssert);
    REQUIRE(device.fault->result == 710);
    REQUIRE(device.fault->thread == sim::Dim3{20, 0, 0});
    REQUIRE(device.printed.find("block: [0,0,0], thread: [20,0,0] Assertion `(int)threadIdx.x < limit && "
                                "\"too many\"` failed.") != std::string::npos);
    REQUIRE_FALSE(device.launch("trap_at", {1}, {64}, 0, 40));
    REQUIRE(device.fault->kind == sim::Fault::Kind::kTrap);
    REQUIRE(device.fault->result == 719);
    REQUIRE(device.fault->thread == sim::Dim3{40, 0, 0});
}

TEST_CASE("compiled: malloc and free in kernels") {
    Compiled device(GENERATE("optimized", "debug"));
    const uint64_t out = device.copy_in(zeros<int>(64));
    device.run("lists", {1}, {64}, 0, out);
    const auto sums = device.copy_out<int>(out, 64);
    for (int i = 0; i < 64; ++i) REQUIRE(sums[static_cast<size_t>(i)] == i * (i + 1) / 2);
}

TEST_CASE("compiled: virtual functions and recursion") {
    Compiled device(GENERATE("optimized", "debug"));
    const uint64_t out = device.copy_in(zeros<float>(32));
    device.run("areas", {1}, {32}, 0, out);
    const auto areas = device.copy_out<float>(out, 32);
    for (int i = 0; i < 32; ++i)
        REQUIRE(areas[static_cast<size_t>(i)] == static_cast<float>(i * i) * (i % 3 == 0 ? 1.0f : 3.0f));
    const uint64_t numbers = device.copy_in(zeros<int>(32));
    device.run("recursive", {1}, {32}, 0, numbers);
    const auto values = device.copy_out<int>(numbers, 32);
    for (int i = 0; i < 32; ++i)
        REQUIRE(values[static_cast<size_t>(i)] ==
                std::vector<int>{i % 7 + 1, i % 7 + 2, 2 * (i % 7) + 3}[static_cast<size_t>(i % 3)]);
}

TEST_CASE("compiled: the mathematical functions") {
    Compiled device(GENERATE("optimized", "debug"));
    std::vector<double> in(32);
    for (size_t i = 0; i < in.size(); ++i) in[i] = (static_cast<double>(i) - 15.5) * 0.61;
    const uint64_t din = device.copy_in(in), dout = device.copy_in(zeros<double>(12 * 32));
    device.run("functions", {1}, {32}, 0, din, dout, 32);
    const auto out = device.copy_out<double>(dout, 12 * 32);
    for (size_t i = 0; i < in.size(); ++i) {
        const double x = in[i], a = std::fabs(x);
        const auto f = static_cast<float>(x);
        const double expected[] = {std::sin(x),
                                   std::cos(x),
                                   std::exp(x),
                                   std::log(a + 0.5),
                                   std::pow(a, 1.7),
                                   std::sqrt(a),
                                   std::sin(f),
                                   std::exp(f),
                                   std::log(std::fabs(f) + 0.5f),
                                   std::pow(std::fabs(f), 1.7f),
                                   std::tanh(x),
                                   std::erf(f)};
        for (size_t k = 0; k < 12; ++k) {
            INFO(k << " of " << x);
            const bool single = (k >= 6 && k <= 9) || k == 11;
            REQUIRE(out[12 * i + k] ==
                    Approx(expected[k]).epsilon(single ? 1e-6 : 1e-14).margin(single ? 1e-7 : 1e-15));
        }
    }
}

TEST_CASE("compiled: symbols, structs by value, halves") {
    Compiled device(GENERATE("optimized", "debug"));
    const auto* digits = device.module->global("digits");
    REQUIRE(digits != nullptr);
    REQUIRE(digits->constant);
    REQUIRE(digits->bytes == 40);
    for (int i = 0; i < 10; ++i) reinterpret_cast<int*>(digits->address)[i] = i * i;
    const uint64_t out = device.copy_in(zeros<int>(32));
    device.run("symbols", {1}, {32}, 0, out);
    REQUIRE(device.copy_out<int>(out, 32)[13] == 49);

    struct Big {
        int values[40];
        double scale;
    } big{};
    for (int i = 0; i < 40; ++i) big.values[i] = i;
    big.scale = 0.5;
    const uint64_t scaled = device.copy_in(zeros<double>(32));
    device.run("by_value", {1}, {32}, 0, big, scaled);
    REQUIRE(device.copy_out<double>(scaled, 32)[9] == 4.5);

    const uint64_t in = device.copy_in(std::vector<float>(32, 0.75f)),
                   results = device.copy_in(zeros<float>(96));
    device.run("halves", {1}, {32}, 0, in, results);
    REQUIRE(device.copy_out<float>(results, 3) == std::vector<float>{0.8125f, 2.5f, 1.5f});
}

TEST_CASE("compiled: cooperative groups, local arrays, early return") {
    Compiled device(GENERATE("optimized", "debug"));
    const uint64_t out = device.copy_in(zeros<int>(64));
    device.run("groups", {1}, {64}, 0, out);
    auto values = device.copy_out<int>(out, 64);
    for (int i = 0; i < 64; ++i) {
        const int tile = 8 * (i / 8 * 8) + 28;
        REQUIRE(values[static_cast<size_t>(i)] == (i % 2 == 0 ? tile + 16000 + i % 32 / 2 : tile));
    }
    std::vector<int> numbers(32);
    for (size_t i = 0; i < 32; ++i) numbers[i] = static_cast<int>(i * 11 % 32);
    const uint64_t in = device.copy_in(numbers);
    device.run("sort_local", {1}, {32}, 0, in, out);
    values = device.copy_out<int>(out, 32);
    for (int i = 0; i < 32; ++i) REQUIRE(values[static_cast<size_t>(i)] == i);
    device.run("early", {1}, {64}, 0, out, 37);
    values = device.copy_out<int>(out, 64);
    REQUIRE(values[36] == 37);
}

TEST_CASE("compiled: a bad index is a fault with its place") {
    Compiled device(GENERATE("optimized", "debug"));
    const uint64_t out = device.copy_in(zeros<int>(4));
    REQUIRE_FALSE(device.launch("out_of_bounds", {1}, {32}, 0, out, 4));
    REQUIRE(device.fault->kind == sim::Fault::Kind::kOutOfBounds);
    REQUIRE(device.fault->address == out + 16);
    REQUIRE(device.fault->thread == sim::Dim3{5, 0, 0});
    REQUIRE(device.fault->line > 0);
    REQUIRE(device.fault->result == 700);
}

#endif
