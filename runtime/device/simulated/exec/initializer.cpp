#include "runtime/device/simulated/exec/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device/simulated/exec/numbers.h"

namespace smt::runtime::device::simulated {
namespace {

using InitializerKind = ptx::Initializer::Kind;

class Writer {
public:
    Writer(const ptx::Variable& variable, std::byte* to, uint64_t bytes, const AddressOf& address_of)
        : variable_(variable),
          to_(to),
          bytes_(bytes),
          address_of_(address_of),
          element_(std::max(1, ptx::bits(variable.type) / 8)) {}

    // `level` dimensions are open already; `at` is where the value goes.
    void write(const ptx::Initializer& value, size_t level, uint64_t at) {
        if (error) return;
        if (value.kind != InitializerKind::kList) return scalar(value, at);
        const uint64_t stride = stride_of(level);
        for (const ptx::Initializer& element : value.elements) {
            write(element, level + 1, at);
            at += element.kind == InitializerKind::kList ? stride : element_;
        }
    }
    std::optional<LoadError> error;

private:
    // Bytes of one element of a list at this level.
    uint64_t stride_of(size_t level) const {
        uint64_t bytes = element_;
        if (level < variable_.dimensions.size()) bytes *= static_cast<uint64_t>(variable_.vector);
        for (size_t i = level + 1; i < variable_.dimensions.size(); ++i) bytes *= variable_.dimensions[i];
        return bytes;
    }
    void scalar(const ptx::Initializer& value, uint64_t at) {
        if (at + element_ > bytes_) {
            error = LoadError{variable_.line,
                              fmt::format("{} has more initial values than room", variable_.name)};
            return;
        }
        uint64_t bits = value.bits;
        if (value.kind == InitializerKind::kSymbol) bits = symbol(value);
        if (value.kind == InitializerKind::kFloat64 && element_ == 4)
            bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
        if (value.kind == InitializerKind::kFloat64 && element_ == 2)
            bits = double_to_half(std::bit_cast<double>(bits));
        if (value.kind == InitializerKind::kFloat32 && element_ == 8)
            bits = std::bit_cast<uint64_t>(
                static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
        std::memcpy(to_ + at, &bits, std::min<uint64_t>(element_, 8));
    }
    uint64_t symbol(const ptx::Initializer& value) {
        auto address = address_of_(value.name);
        if (!address) {
            error = LoadError{variable_.line,
                              fmt::format("{} begins with the address of {}, which is not defined",
                                          variable_.name, value.name)};
            return 0;
        }
        uint64_t bits = *address + static_cast<uint64_t>(value.offset);
        if (value.mask != 0) bits = (bits & value.mask) >> std::countr_zero(value.mask);
        return bits;
    }

    const ptx::Variable& variable_;
    std::byte* to_;
    uint64_t bytes_;
    const AddressOf& address_of_;
    uint64_t element_;
};

}  // namespace

std::optional<LoadError> write_initializer(const ptx::Variable& variable, std::byte* to, uint64_t bytes,
                                           const AddressOf& address_of) {
    if (ptx::bits(variable.type) == 0) return std::nullopt;  // a sampler's settings: nothing executes them
    Writer writer(variable, to, bytes, address_of);
    writer.write(*variable.initializer, 0, 0);
    return writer.error;
}

uint64_t initialised_bytes(const ptx::Variable& variable) {
    if (!variable.initializer || variable.initializer->kind != InitializerKind::kList ||
        variable.dimensions.empty())
        return 0;
    uint64_t bytes = std::max(1, ptx::bits(variable.type) / 8) * static_cast<uint64_t>(variable.vector);
    for (size_t i = 1; i < variable.dimensions.size(); ++i) bytes *= variable.dimensions[i];
    return bytes * variable.initializer->elements.size();
}

}  // namespace smt::runtime::device::simulated
