// The messages about an image that is opened (messages.h).
#include <algorithm>

#include "runtime/jit/messages.h"
#include "runtime/jit/packer.h"

namespace smt::runtime::jit {

using image::ManagedPlan;
using protocol::Reader;

namespace {

constexpr uint32_t kMostParameterBytes = 32764;  // of a kernel

template <typename T>
void pack_array(Packer& to, const std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T>);
    to.array({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

template <typename T>
std::vector<T> read_values(Reader& reader) {
    const std::string bytes = read_array(reader);
    if (bytes.size() % sizeof(T) != 0) reader.reject();
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

uint64_t read_count(Reader& reader) {
    const uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) reader.reject();
    return reader.good() ? count : 0;
}

void pack(Packer& to, const ManagedPlan& plan) {
    to.scalar(plan.bytes);
    to.scalar<uint64_t>(plan.variables.size());
    for (const auto& [name, variable] : plan.variables)
        to.string(name), to.scalar(variable.offset), to.scalar(variable.bytes);
    pack_array(to, plan.initials);
    pack_array(to, plan.fixups);
    to.scalar<uint64_t>(plan.trimmed.size());
    for (const ManagedPlan::Trimmed& section : plan.trimmed) {
        to.scalar(section.size_at);
        to.scalar(section.at);
        to.scalar(section.entry_bytes);
        to.array(std::string(section.dropped.begin(), section.dropped.end()));
    }
}

ManagedPlan read_plan(Reader& reader) {
    ManagedPlan plan;
    plan.bytes = reader.scalar<uint64_t>();
    const uint64_t variables = read_count(reader);
    for (uint64_t i = 0; i < variables && reader.good(); ++i) {
        const std::string name = read_string(reader);
        const uint64_t offset = reader.scalar<uint64_t>();
        plan.variables[name] = {offset, reader.scalar<uint64_t>()};
    }
    plan.initials = read_values<ManagedPlan::Initial>(reader);
    plan.fixups = read_values<ManagedPlan::Fixup>(reader);
    const uint64_t trimmed = read_count(reader);
    for (uint64_t i = 0; i < trimmed && reader.good(); ++i) {
        ManagedPlan::Trimmed section{};
        section.size_at = reader.scalar<uint64_t>();
        section.at = reader.scalar<uint64_t>();
        section.entry_bytes = reader.scalar<uint64_t>();
        const std::string dropped = read_array(reader);
        section.dropped.assign(dropped.begin(), dropped.end());
        plan.trimmed.push_back(std::move(section));
    }
    return plan;
}

void pack(Packer& to, const std::map<std::string, uint32_t>& registers) {
    to.scalar<uint64_t>(registers.size());
    for (const auto& [kernel, number] : registers) to.string(kernel), to.scalar(number);
}

std::map<std::string, uint32_t> read_registers(Reader& reader) {
    std::map<std::string, uint32_t> registers;
    const uint64_t count = read_count(reader);
    for (uint64_t i = 0; i < count && reader.good(); ++i) {
        const std::string kernel = read_string(reader);
        registers[kernel] = reader.scalar<uint32_t>();
    }
    return registers;
}

// The code lies in the image or is what was unpacked, and the plan keeps to the code. Doors are in a cubin
// that was changed.
bool is_within(const Opened& opened, uint64_t image_bytes, bool is_unpacked) {
    const uint64_t all = is_unpacked ? image::kMostBytes : image_bytes;
    if (opened.at > all || opened.bytes > all - opened.at || (is_unpacked && opened.at != 0)) return false;
    const bool doors = std::any_of(opened.doors.begin(), opened.doors.end(),
                                   [](const Door& door) { return door.reason.empty(); });
    if (doors && (opened.code != Code::kCubin || !is_unpacked)) return false;
    const uint64_t changed = opened.code == Code::kCubin ? opened.bytes : 0;
    return opened.managed.fits(changed) && opened.moved.fits(changed);
}

}  // namespace

std::string encode(const ImageOrder& image) {
    const OpenOrder& asked = image.asked;
    Packer to;
    to.scalar(image.bytes);
    to.scalar(asked.device.architecture);
    to.scalar<uint32_t>(asked.device.takes_cubins);
    to.scalar<uint32_t>(asked.device.takes_ptx);
    to.scalar(asked.target.architecture);
    to.scalar<uint32_t>(asked.target.text_only);
    to.scalar(asked.most_ptx_bytes);
    to.scalar<uint32_t>(asked.prints);
    to.scalar<uint32_t>(asked.links);
    to.scalar<uint32_t>(asked.doors);
    to.scalar<uint32_t>(asked.moves);
    to.scalar<uint32_t>(asked.tables);
    to.scalar<uint32_t>(asked.fences);
    return to.take();
}

std::optional<ImageOrder> decode_image_order(std::string_view bytes) {
    Reader reader(bytes.data(), bytes.size());
    ImageOrder image;
    image.bytes = reader.scalar<uint64_t>();
    image.asked.device.architecture = reader.scalar<int>();
    image.asked.device.takes_cubins = reader.scalar<uint32_t>() != 0;
    image.asked.device.takes_ptx = reader.scalar<uint32_t>() != 0;
    image.asked.target.architecture = reader.scalar<int>();
    image.asked.target.text_only = reader.scalar<uint32_t>() != 0;
    image.asked.most_ptx_bytes = reader.scalar<uint64_t>();
    image.asked.prints = reader.scalar<uint32_t>() != 0;
    image.asked.links = reader.scalar<uint32_t>() != 0;
    image.asked.doors = reader.scalar<uint32_t>() != 0;
    image.asked.moves = reader.scalar<uint32_t>() != 0;
    image.asked.tables = reader.scalar<uint32_t>() != 0;
    image.asked.fences = reader.scalar<uint32_t>() != 0;
    return if_whole(reader, image);
}

std::string encode(const Opened& opened) {
    Packer to;
    to.string(opened.problem);
    to.scalar(opened.code);
    to.scalar(opened.at);
    to.scalar(opened.bytes);
    to.scalar<uint32_t>(!opened.unpacked.empty());
    to.scalar(opened.architecture);
    to.scalar<uint32_t>(static_cast<unsigned char>(opened.variant));
    const bool many = opened.printing.kernels.size() > kMostItems;
    to.scalar<uint32_t>(opened.printing.all || many);
    to.string(many ? "too many of them do" : opened.printing.why);
    to.list(many ? std::vector<std::string>()
                 : std::vector<std::string>(opened.printing.kernels.begin(), opened.printing.kernels.end()));
    to.scalar(opened.variable_bytes);
    pack(to, opened.managed);
    to.scalar<uint64_t>(opened.doors.size());
    for (const Door& door : opened.doors)
        to.string(door.kernel), to.string(door.reason), to.scalar(door.registers), to.scalar(door.offset),
            to.scalar<uint32_t>(door.waits);
    to.scalar<uint64_t>(opened.fenced.size());
    for (const FencedFunction& each : opened.fenced) to.string(each.name), to.string(each.reason);
    pack(to, opened.own.registers);
    to.array(opened.own.ptx);
    to.scalar<uint32_t>(opened.uses_variables);
    pack(to, opened.moved);
    to.string(opened.stays);
    to.scalar<uint32_t>(opened.unplaced);
    to.list(opened.constants.size() <= kMostItems ? opened.constants : std::vector<std::string>());
    const bool few = opened.system_atomics.size() <= kMostItems;
    to.list(few ? std::vector<std::string>(opened.system_atomics.begin(), opened.system_atomics.end())
                : std::vector<std::string>());
    to.string(opened.choices.code);
    to.array(opened.choices.ptx.text);
    pack(to, opened.choices.ptx.registers);
    to.string(opened.choices.ptx.reason);
    to.string(opened.choices.ptx.code);
    return to.take();
}

std::optional<Opened> decode_opened(std::string_view bytes, uint64_t image_bytes, bool* is_unpacked) {
    Reader reader(bytes.data(), bytes.size());
    Opened opened;
    opened.problem = read_string(reader);
    opened.code = reader.scalar<Code>();
    opened.at = reader.scalar<uint64_t>();
    opened.bytes = reader.scalar<uint64_t>();
    *is_unpacked = reader.scalar<uint32_t>() != 0;
    opened.architecture = reader.scalar<int>();
    opened.variant = static_cast<char>(reader.scalar<uint32_t>());
    opened.printing.all = reader.scalar<uint32_t>() != 0;
    opened.printing.why = read_string(reader);
    for (std::string& kernel : read_list(reader)) opened.printing.kernels.insert(std::move(kernel));
    opened.variable_bytes = reader.scalar<uint64_t>();
    opened.managed = read_plan(reader);
    const uint64_t doors = read_count(reader);
    for (uint64_t i = 0; i < doors && reader.good(); ++i) {
        Door door;
        door.kernel = read_string(reader);
        door.reason = read_string(reader);
        door.registers = reader.scalar<uint32_t>();
        door.offset = reader.scalar<uint32_t>();
        door.waits = reader.scalar<uint32_t>() != 0;
        if (door.reason.empty() && (door.offset % 16 != 0 || door.offset > kMostParameterBytes))
            reader.reject();
        opened.doors.push_back(std::move(door));
    }
    const uint64_t fenced = read_count(reader);
    for (uint64_t i = 0; i < fenced && reader.good(); ++i) {
        std::string name = read_string(reader);
        opened.fenced.push_back({std::move(name), read_string(reader)});
    }
    opened.own.registers = read_registers(reader);
    opened.own.ptx = read_array(reader);
    opened.uses_variables = reader.scalar<uint32_t>() != 0;
    opened.moved = read_plan(reader);
    opened.stays = read_string(reader);
    opened.unplaced = reader.scalar<uint32_t>() != 0;
    opened.constants = read_list(reader);
    for (std::string& kernel : read_list(reader)) opened.system_atomics.insert(std::move(kernel));
    opened.choices.code = read_string(reader);
    opened.choices.ptx.text = read_array(reader);
    opened.choices.ptx.registers = read_registers(reader);
    opened.choices.ptx.reason = read_string(reader);
    opened.choices.ptx.code = read_string(reader);
    if (opened.code > Code::kPtx || (opened.variant && opened.variant != 'a' && opened.variant != 'f'))
        return std::nullopt;
    if (!is_within(opened, image_bytes, *is_unpacked)) return std::nullopt;
    return if_whole(reader, std::move(opened));
}

}  // namespace smt::runtime::jit
