#include "runtime/device/simulated/exec/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/device/simulated/exec/families/control.h"
#include "runtime/device/simulated/exec/local_memory.h"
#include "runtime/device/simulated/exec/memory.h"
#include "runtime/device/simulated/exec/specials.h"
#include "runtime/device/simulated/exec/table.h"

namespace smt::runtime::device::simulated {
namespace {

// As on hardware. Of a block's shared memory the kernel's own; the launch has a say in the rest.
constexpr uint32_t kMostParameterBytes = 32764;
constexpr uint32_t kMostSharedBytes = 227 << 10;

}  // namespace

std::string spelled(const ptx::Instruction& source) {
    std::string text = ptx::name(source.opcode);
    for (ptx::Modifier modifier : source.modifiers) text += fmt::format(".{}", ptx::name(modifier));
    for (ptx::Type type : source.types) text += fmt::format(".{}", ptx::name(type));
    return text;
}

Decoder::Decoder(Module::Linked& linked, Program& program, const ptx::Function& function, Code& code)
    : linked_(linked), program_(program), function_(function), code_(code) {}

void Decoder::refuse(std::string why) {
    if (error_) return;
    if (source_ != nullptr) why = fmt::format("{}: {}", spelled(*source_), why);
    error_ = LoadError{line_, std::move(why)};
}

uint32_t Decoder::bytes_within(const ptx::Variable& variable, uint64_t before, uint64_t most) {
    const uint64_t bytes = bytes_of(variable);
    if (bytes <= most && before + bytes <= most) return static_cast<uint32_t>(bytes);
    refuse(fmt::format("{} has {} bytes behind {} others, of {} that there may be", variable.name, bytes,
                       before, most));
    return 0;
}

std::optional<LoadError> Decoder::run() {
    code_.kernel = function_.kernel;
    line_ = function_.line;
    scopes_.emplace_back();
    declare_parameters();
    walk(*function_.body);
    source_ = nullptr;
    if (!error_) add_last();
    if (!error_) finish();
    return error_;
}

// ---- declarations

uint32_t Decoder::frame_variable(uint32_t bytes, uint32_t alignment) {
    const uint32_t offset = round_up(code_.local_bytes, std::max(1u, alignment));
    code_.local_bytes = offset + bytes;
    return offset;
}

Place Decoder::formal(const ptx::Variable& variable) {
    Place place;
    place.bytes = bytes_within(variable, 0, kMostParameterBytes);
    if (variable.space == ptx::Space::kRegister) {
        declare_registers(variable);
        const Register& made = scopes_.back().registers.at(variable.name);
        place.slot = Slot(Slot::Base::kVirtual, made.number);
        if (ptx::bits(variable.type) == 1) place.bytes = 0;  // a predicate
        return place;
    }
    place.local = true;
    place.offset = frame_variable(place.bytes, std::max(8u, alignment_of(variable)));
    scopes_.back().symbols[variable.name] = {Space::kLocal, place.offset, place.bytes,
                                             true,          false,        &variable};
    return place;
}

void Decoder::declare_parameters() {
    if (function_.kernel) {
        uint32_t offset = 0;
        for (const ptx::Variable& parameter : function_.parameters) {
            const uint32_t bytes = bytes_within(parameter, offset, kMostParameterBytes);
            offset = round_up(offset, alignment_of(parameter));
            scopes_.back().symbols[parameter.name] = {Space::kParameter, offset, bytes, false, false,
                                                      &parameter};
            offset += bytes;
        }
        return;
    }
    for (const ptx::Variable& parameter : function_.parameters) {
        code_.parameters.push_back(formal(parameter));
        if (!code_.parameters.back().local) entry_.push_back(code_.parameters.back().slot.offset());
    }
    for (const ptx::Variable& result : function_.results) {
        code_.results.push_back(formal(result));
        if (!code_.results.back().local) leaving_.push_back(code_.results.back().slot.offset());
    }
}

void Decoder::declare_registers(const ptx::Variable& variable) {
    const int bits = ptx::bits(variable.type);
    const int width = bits == 1 ? 1 : std::max(16, bits);
    const auto add = [&](const std::string& name) {
        scopes_.back().registers[name] = {static_cast<uint32_t>(virtuals_.size()), width, variable.vector};
        for (int i = 0; i < variable.vector; ++i) virtuals_.push_back({width});
    };
    if (!variable.count) return add(variable.name);
    for (uint32_t i = 0; i < *variable.count; ++i) add(variable.name + std::to_string(i));
}

Symbol Decoder::shared_symbol(const ptx::Variable& variable) {
    const uint64_t bytes = bytes_of(variable);
    const bool open = bytes == 0 && !variable.initializer;  // extern __shared__ T name[]
    if (open || variable.linkage == ptx::Linkage::kExtern) {
        program_.dynamic_shared = true;
        program_.shared_alignment = std::max(program_.shared_alignment, alignment_of(variable));
        return {Space::kShared, 0, bytes, false, true, &variable};
    }
    auto [at, fresh] = program_.shared_places.try_emplace(&variable, 0);
    if (fresh) {
        at->second = round_up(program_.shared_bytes, alignment_of(variable));
        program_.shared_bytes = at->second + bytes_within(variable, at->second, kMostSharedBytes);
    }
    return {Space::kShared, kReservedBytes + at->second, bytes, false, false, &variable};
}

void Decoder::declare(const ptx::Variable& variable) {
    line_ = variable.line;
    switch (variable.space) {
        case ptx::Space::kRegister:
            return declare_registers(variable);
        case ptx::Space::kShared:
            scopes_.back().symbols[variable.name] = shared_symbol(variable);
            return;
        case ptx::Space::kLocal:
        case ptx::Space::kParameter: {
            const uint32_t bytes = bytes_within(variable, code_.local_bytes, LocalMemory::kMost);
            const uint32_t alignment =
                std::max(variable.space == ptx::Space::kParameter ? 8u : 1u, alignment_of(variable));
            scopes_.back().symbols[variable.name] = {
                Space::kLocal, frame_variable(bytes, alignment), bytes, !function_.kernel, false, &variable};
            return;
        }
        default:
            return refuse(
                fmt::format("variable {} in a function is not supported in its state space", variable.name));
    }
}

// ---- statements

void Decoder::enter(const ptx::Scope& scope) {
    scopes_.emplace_back();
    Names& names = scopes_.back();
    for (const ptx::Statement& statement : scope.statements) {
        if (const auto* label = std::get_if<ptx::Label>(&statement)) {
            names.labels[label->name] = static_cast<uint32_t>(label_places_.size());
            label_places_.push_back(kNowhere);
        }
        if (const auto* targets = std::get_if<ptx::Targets>(&statement))
            names.targets[targets->name] = targets;
        if (const auto* prototype = std::get_if<ptx::Prototype>(&statement))
            names.prototypes[prototype->name] = prototype;
    }
}

void Decoder::walk(const ptx::Scope& scope) {
    enter(scope);
    for (const ptx::Statement& each : scope.statements) {
        if (error_) break;
        statement(each);
    }
    scopes_.pop_back();
}

void Decoder::statement(const ptx::Statement& statement) {
    if (const auto* source = std::get_if<ptx::Instruction>(&statement)) return instruction(*source);
    if (const auto* variable = std::get_if<ptx::Variable>(&statement)) return declare(*variable);
    if (const auto* inner = std::get_if<ptx::Scope>(&statement)) return walk(*inner);
    if (const auto* label = std::get_if<ptx::Label>(&statement))
        label_places_[scopes_.back().labels.at(label->name)] =
            static_cast<uint32_t>(code_.instructions.size());
}

void Decoder::instruction(const ptx::Instruction& source) {
    source_ = &source;
    line_ = source.line;
    const Row* row = find_row(source, *this);
    if (row == nullptr) return;
    note_ = {};
    Instruction in;
    in.unit = row->unit;
    in.line = source.line;
    Slot guard;
    if (source.guard) {
        ptx::Operand predicate;
        predicate.kind = ptx::Operand::Kind::kRegister;
        predicate.name = source.guard->name;
        guard = read_predicate(predicate);
    }
    row->decode(*this, source, in);
    if (error_) return;
    if (in.run == nullptr) return refuse("this combination is not supported");
    if (source.guard) {
        in.guard = guard;
        in.guarded = note_.guarded = true;
        in.negated = source.guard->negated;
    }
    append(in);
}

void Decoder::append(const Instruction& in) {
    code_.instructions.push_back(in);
    notes_.push_back(std::move(note_));
    note_ = {};
}

void Decoder::prepare(Instruction in, std::initializer_list<Slot> read, std::initializer_list<Slot> written) {
    Note mine;
    std::swap(mine, note_);
    in.line = line_;
    for (Slot slot : read) reads(slot);
    for (Slot slot : written) writes(slot);
    append(in);
    note_ = std::move(mine);
}

void Decoder::reads(Slot slot) {
    if (slot.base() == Slot::Base::kVirtual && slot != kSink) note_.reads.push_back(slot.offset());
}

void Decoder::writes(Slot slot) {
    if (slot.base() == Slot::Base::kVirtual && slot != kSink) note_.writes.push_back(slot.offset());
}

uint32_t Decoder::list(const std::vector<Slot>& slots) {
    const auto first = static_cast<uint32_t>(code_.slots.size());
    code_.slots.insert(code_.slots.end(), slots.begin(), slots.end());
    return first;
}

void Decoder::branch_to(Instruction& in, const std::string& label) {
    const uint32_t* number = find(&Names::labels, label);
    if (number == nullptr) return refuse(fmt::format("no label {} here", label));
    in.target = *number;
    note_.targets.push_back(*number);
    note_.flow = Flow::kBranch;
}

void Decoder::leave(Instruction& in) {
    in.target = kNowhere;
    note_.targets.push_back(kNowhere);
    note_.flow = Flow::kBranch;
}

uint32_t Decoder::table(const std::vector<std::string>& labels) {
    std::vector<uint32_t> numbers;
    for (const std::string& label : labels) {
        const uint32_t* number = find(&Names::labels, label);
        if (number == nullptr) {
            refuse(fmt::format("no label {} here", label));
            return 0;
        }
        numbers.push_back(*number);
        note_.targets.push_back(*number);
    }
    note_.flow = Flow::kBranch;
    code_.tables.push_back(std::move(numbers));
    return static_cast<uint32_t>(code_.tables.size()) - 1;
}

const ptx::Targets* Decoder::targets(const std::string& name) const {
    const auto* found = find(&Names::targets, name);
    return found == nullptr ? nullptr : *found;
}

const ptx::Prototype* Decoder::prototype(const std::string& name) const {
    const auto* found = find(&Names::prototypes, name);
    return found == nullptr ? nullptr : *found;
}

// ---- the end: places instead of names

void Decoder::add_last() {
    Instruction in;
    in.run = function_.kernel ? leave_kernel() : leave_function();
    in.unit = Unit::kBranch;
    in.always = true;
    in.line = code_.instructions.empty() ? function_.line : code_.instructions.back().line;
    note_ = {};
    append(in);
}

void Decoder::finish() {
    patch_targets();
    if (error_) return;
    code_.reconvergence = reconvergence(notes_);
    // Threads need not meet only to exit the kernel, and barriers do not wait for exited threads.
    if (code_.kernel)
        for (uint32_t& meet : code_.reconvergence)
            if (meet != kNowhere && leads_out(meet)) meet = kNowhere;
    const Allocation allocation = allocate(notes_, virtuals_, entry_, leaving_);
    code_.frame_bytes = allocation.frame_bytes;
    code_.live_words = allocation.live_words;
    code_.local_bytes = round_up(code_.local_bytes, 16);
    patch_slots(allocation);
    fill_facts(allocation);
    code_.constant_base = code_.constants.data();
}

// Whether there is nothing at the place but a return.
bool Decoder::leads_out(uint32_t place) const {
    const Note& note = notes_[place];
    if (place == code_.last()) return true;
    if (note.guarded) return false;
    return note.flow == Flow::kLeave ||
           (note.flow == Flow::kBranch && note.targets.size() == 1 && note.targets[0] == code_.last());
}

void Decoder::patch_targets() {
    const auto place = [&](uint32_t& target) {
        // A label at the very end is the way out.
        target = target == kNowhere ? code_.last() : std::min(label_places_[target], code_.last());
    };
    for (size_t i = 0; i < notes_.size(); ++i) {
        if (notes_[i].flow != Flow::kBranch) continue;
        for (uint32_t& target : notes_[i].targets) place(target);
        if (notes_[i].targets.size() == 1) code_.instructions[i].target = notes_[i].targets[0];
    }
    for (auto& table : code_.tables)
        for (uint32_t& target : table) place(target);
}

void Decoder::patch_slots(const Allocation& allocation) {
    const auto patch = [&](Slot& slot) {
        if (slot.base() == Slot::Base::kVirtual && slot != kSink)
            slot = Slot(Slot::Base::kFrame, allocation.offsets[slot.offset()]);
    };
    for (Instruction& in : code_.instructions)
        for (Slot* slot : {&in.d, &in.a, &in.b, &in.c, &in.guard}) patch(*slot);
    for (Slot& slot : code_.slots) patch(slot);
    for (Call& call : code_.calls) {
        for (Place& place : call.arguments) patch(place.slot);
        for (Place& place : call.results) patch(place.slot);
    }
    for (Place& place : code_.parameters) patch(place.slot);
    for (Place& place : code_.results) patch(place.slot);
}

void Decoder::fill_facts(const Allocation& allocation) {
    std::vector<std::array<size_t, 3>> ends;
    for (const Note& note : notes_) {
        const size_t begin = code_.registers.size();
        for (uint32_t i : note.reads) code_.registers.push_back(allocation.numbers[i]);
        const size_t middle = code_.registers.size();
        for (uint32_t i : note.writes) code_.registers.push_back(allocation.numbers[i]);
        ends.push_back({begin, middle, code_.registers.size()});
    }
    const std::span<const uint16_t> all(code_.registers);
    for (size_t i = 0; i < notes_.size(); ++i) {
        const auto [begin, middle, end] = ends[i];
        code_.facts.push_back({code_.instructions[i].unit, all.subspan(begin, middle - begin),
                               all.subspan(middle, end - middle)});
    }
}

}  // namespace smt::runtime::device::simulated
