#include "runtime/device/simulated/machine/instruction_stream.h"

#include <algorithm>
#include <istream>
#include <ostream>
#include <sstream>

namespace smt::runtime::device::simulated {

namespace {

constexpr const char* kMagic = "smt-instruction-stream-1";

void write(std::ostream& out, const std::vector<uint16_t>& slots) {
    out << ' ' << slots.size();
    for (const uint16_t slot : slots) out << ' ' << slot;
}

bool read(std::istream& in, std::vector<uint16_t>& slots) {
    size_t count = 0;
    if (!(in >> count) || count > 0xffff) return false;
    slots.resize(count);
    for (uint16_t& slot : slots) in >> slot;
    return static_cast<bool>(in);
}

}  // namespace

uint64_t InstructionStream::executed() const {
    uint64_t all = 0;
    for (const Block& block : blocks) {
        for (const Warp& warp : block.warps) all += warp.size();
    }
    return all;
}

std::ostream& operator<<(std::ostream& out, const InstructionStream& stream) {
    out << kMagic << ' ' << stream.kernel << ' ' << stream.needs.threads << ' ' << stream.needs.registers
        << ' ' << stream.needs.shared_bytes << ' ' << stream.needs.barriers << ' ' << stream.grid_blocks
        << ' ' << stream.instructions.size() << ' ' << stream.blocks.size() << '\n';
    for (const auto& each : stream.instructions) {
        out << static_cast<int>(each.unit) << ' ' << static_cast<int>(each.space) << ' ' << each.store << ' '
            << each.atomic;
        write(out, each.reads);
        write(out, each.writes);
        out << '\n';
    }
    for (const auto& block : stream.blocks) {
        out << block.warps.size() << '\n';
        for (const auto& warp : block.warps) {
            out << warp.size();
            for (const auto& each : warp) {
                out << ' ' << each.instruction;
                if (each.transactions) out << ':' << each.transactions;
                if (each.arrives) out << '!';
            }
            out << '\n';
        }
    }
    return out;
}

bool read(std::istream& in, InstructionStream& stream) {
    std::string magic;
    size_t instructions = 0, blocks = 0;
    in >> magic >> stream.kernel >> stream.needs.threads >> stream.needs.registers >>
        stream.needs.shared_bytes >> stream.needs.barriers >> stream.grid_blocks >> instructions >> blocks;
    if (!in || magic != kMagic) return false;
    for (size_t i = 0; i < instructions; ++i) {
        InstructionStream::Instruction each;
        int unit = 0, space = 0;
        in >> unit >> space >> each.store >> each.atomic;
        if (!in || !read(in, each.reads) || !read(in, each.writes)) return false;
        if (unit < 0 || unit >= static_cast<int>(std::size(kUnitTimes)) || space < 0 ||
            space > static_cast<int>(Space::kParameter))
            return false;
        each.unit = static_cast<Unit>(unit);
        each.space = static_cast<Space>(space);
        stream.instructions.push_back(std::move(each));
    }
    for (size_t i = 0; i < blocks; ++i) {
        size_t warps = 0;
        if (!(in >> warps) || warps > kMostWarps) return false;
        auto& block = stream.blocks.emplace_back();
        for (size_t w = 0; w < warps; ++w) {
            size_t count = 0;
            if (!(in >> count) || count > kMostRecorded) return false;
            auto& warp = block.warps.emplace_back(count);
            for (auto& each : warp) {
                in >> each.instruction;
                if (in.peek() == ':') in.get(), in >> each.transactions;
                if (in.peek() == '!') in.get(), each.arrives = true;
                if (!in || each.instruction >= stream.instructions.size()) return false;
            }
        }
    }
    return true;
}

// ---- RecordedBlock

RecordedBlock::RecordedBlock(std::unique_ptr<Block> block, InstructionStream& stream)
    : block_(std::move(block)), stream_(stream), place_(stream.blocks.size()) {
    stream_.blocks.emplace_back().warps.resize(static_cast<size_t>(block_->warps()));
}

Step RecordedBlock::step(int warp) {
    const StaticFacts* facts = block_->next(warp);
    const uint32_t could = block_->runnable();
    const Step step = block_->step(warp);
    if (++kept_ > kMostRecorded) return step;
    // A generic address may lead to one space here and to another there.
    const auto [known, fresh] =
        known_.try_emplace({facts, step.space}, static_cast<uint32_t>(stream_.instructions.size()));
    if (fresh)
        stream_.instructions.push_back({step.unit,
                                        step.space,
                                        step.store,
                                        step.atomic,
                                        {facts->reads.begin(), facts->reads.end()},
                                        {facts->writes.begin(), facts->writes.end()}});
    // The last warp to arrive goes on and lets the others go on. A warp's own barrier releases no other warp.
    const bool lets_go = (block_->runnable() & ~could) != 0;
    const bool arrives = step.unit == Unit::kBarrier && (step.result == Step::Result::kBarrier || lets_go);
    stream_.blocks[place_].warps[static_cast<size_t>(warp)].push_back(
        {known->second, step.transactions, arrives});
    return step;
}

// ---- ReplayedBlock

ReplayedBlock::ReplayedBlock(const InstructionStream& stream, size_t first, bool endless)
    : stream_(stream), place_(first % stream.blocks.size()), endless_(endless) {
    for (const auto& each : stream_.instructions) facts_.push_back(each.facts());
    warps_.resize(block().warps.size());
    begin();
}

void ReplayedBlock::begin() {
    passed_ = 0;
    barriers_.assign(warps_.size(), 0);
    for (size_t i = 0; i < warps_.size(); ++i) {
        warps_[i] = {};
        for (const auto& each : block().warps[i]) barriers_[i] += each.arrives;
    }
}

bool ReplayedBlock::ended() const {
    for (size_t i = 0; i < warps_.size(); ++i) {
        if (warps_[i].at < block().warps[i].size()) return false;
    }
    return true;
}

uint32_t ReplayedBlock::runnable() const {
    uint32_t mask = 0;
    for (int i = 0; i < warps(); ++i) mask |= next(i) ? 1u << i : 0;
    return mask;
}

const StaticFacts* ReplayedBlock::next(int number) const {
    const Warp& warp = warps_[static_cast<size_t>(number)];
    const auto& list = block().warps[static_cast<size_t>(number)];
    if (waits(warp) || warp.at == list.size()) return nullptr;
    return &facts_[list[warp.at].instruction];
}

// A barrier is passed when all warps that come to it have arrived.
void ReplayedBlock::pass() {
    for (;;) {
        bool anybody = false;
        for (size_t i = 0; i < warps_.size(); ++i) {
            if (barriers_[i] <= passed_) continue;
            if (warps_[i].barriers <= passed_) return;
            anybody = true;
        }
        if (!anybody) return;
        ++passed_;
    }
}

Step ReplayedBlock::step(int number) {
    Warp& warp = warps_[static_cast<size_t>(number)];
    const auto& list = block().warps[static_cast<size_t>(number)];
    const InstructionStream::Executed& now = list[warp.at++];
    const InstructionStream::Instruction& what = stream_.instructions[now.instruction];
    Step step;
    step.unit = what.unit;
    step.space = what.space;
    step.store = what.store;
    step.atomic = what.atomic;
    step.transactions = now.transactions;
    step.lanes = kWarpThreads;
    if (now.arrives) ++warp.barriers, pass();
    if (waits(warp))
        step.result = Step::Result::kBarrier;
    else if (warp.at == list.size())
        step.result = Step::Result::kExited;
    if (endless_ && ended()) {
        place_ = (place_ + 1) % stream_.blocks.size();
        begin();
        step.result = Step::Result::kExited;  // all go on with the next block
    }
    return step;
}

}  // namespace smt::runtime::device::simulated
