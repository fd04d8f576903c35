#include "runtime/profiles/known_kernel.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/profiles/translate.h"

namespace smt::runtime::profiles {

namespace {

constexpr int64_t kFarthestClass = 1;  // half or twice as many blocks: a block still takes about as long

}  // namespace

KnownKernel::Row KnownKernel::row_of(const Shape& shape) {
    return {{shape.block[0], shape.block[1], shape.block[2]}, profiler::grid_class(shape.blocks)};
}

const KnownKernel::Known* KnownKernel::nearest(const Shape& shape) const {
    const Row wanted = row_of(shape);
    for (int64_t away = 0; away <= kFarthestClass; ++away) {
        for (const int64_t grids : {wanted.second + away, wanted.second - away}) {
            if (const auto found = known_.find({wanted.first, grids}); found != known_.end())
                return &found->second;
        }
    }
    return nullptr;
}

std::shared_ptr<const schedule::Profile> KnownKernel::find(const Shape& shape) const {
    std::lock_guard lock(mutex_);
    const Known* found = nearest(shape);
    return found ? found->profile : nullptr;
}

std::optional<double> KnownKernel::predict(const Shape& shape) const {
    std::lock_guard lock(mutex_);
    const Known* found = nearest(shape);
    if (!found || !found->block_ns) return std::nullopt;
    return *found->block_ns * static_cast<double>(shape.blocks);
}

profiler::Profile& KnownKernel::news_of(const Shape& shape) {
    profiler::Profile& profile = news_[row_of(shape)];
    if (!profile.key.kernel.empty()) return profile;
    profile.key = key(shape);
    profile.coefficients["device.multiprocessors"] = facts_.multiprocessors;
    return profile;
}

void KnownKernel::ran(const Shape& shape, const profiler::Placement& placement, uint64_t blocks, uint64_t ns,
                      uint64_t input_bytes) {
    if (blocks == 0 || ns == 0) return;
    std::lock_guard lock(mutex_);
    profiler::Times& times = news_of(shape).times[placement];
    times.launches += 1;
    times.blocks += static_cast<int64_t>(blocks);
    times.nanoseconds += static_cast<int64_t>(ns);
    times.input_bytes += static_cast<int64_t>(input_bytes);
}

void KnownKernel::ran_beside(const Shape& shape, const profiler::Beside& company, uint64_t blocks,
                             uint64_t ns) {
    if (blocks == 0 || ns == 0) return;
    std::lock_guard lock(mutex_);
    profiler::SharedTime& time = news_of(shape).beside[company];
    time.windows += 1;
    time.blocks += static_cast<int64_t>(blocks);
    time.nanoseconds += static_cast<int64_t>(ns);
}

void KnownKernel::stopped(const Shape& shape, uint64_t ns) {
    std::lock_guard lock(mutex_);
    profiler::Preemption& preemption = news_of(shape).preemption;
    preemption.stops += 1;
    preemption.nanoseconds += static_cast<int64_t>(ns);
}

void KnownKernel::sliced(const Shape& shape, uint64_t ns) {
    std::lock_guard lock(mutex_);
    profiler::Slicing& slicing = news_of(shape).slicing;
    slicing.slices += 1;
    slicing.nanoseconds += static_cast<int64_t>(ns);
}

void KnownKernel::counted(const Shape& shape, const profiler::models::Counters& counters,
                          const std::map<std::string, double>& facts) {
    std::lock_guard lock(mutex_);
    profiler::Profile& profile = news_of(shape);
    profile.counters.blocks += counters.blocks;
    profile.counters.nanoseconds += counters.nanoseconds;
    profile.counters.instructions += counters.instructions;
    profile.counters.memory_instructions += counters.memory_instructions;
    profile.counters.uncoalesced_instructions += counters.uncoalesced_instructions;
    profile.counters.dram_reads += counters.dram_reads;
    profile.counters.dram_writes += counters.dram_writes;
    for (const auto& [name, value] : facts) profile.coefficients[name] = value;
    profile.coefficients["peak.instructions_per_cycle"] = facts_.peak.instructions_per_cycle;
    profile.coefficients["peak.requests_per_cycle"] = peak_of(profile, facts_).requests_per_cycle;
}

void KnownKernel::takes(const Shape& shape, const profiler::Resources& resources, bool managed) {
    std::lock_guard lock(mutex_);
    profiler::Profile& profile = news_of(shape);
    profile.resources = resources;
    profile.coefficients["managed"] = managed;
}

profiler::Key KnownKernel::key(const Shape& shape) const {
    const Row row = row_of(shape);
    return {symbol_, image_, row.first, row.second, facts_.name};
}

template <class Of>
int64_t KnownKernel::sum(const Shape& shape, const Of& of) const {
    std::lock_guard lock(mutex_);
    const Row row = row_of(shape);
    const auto known = known_.find(row);
    const auto news = news_.find(row);
    return (known == known_.end() ? 0 : of(known->second.measured)) +
           (news == news_.end() ? 0 : of(news->second));
}

int64_t KnownKernel::samples(const Shape& shape, const profiler::Placement& placement) const {
    return sum(shape, [&](const profiler::Profile& profile) {
        const auto found = profile.times.find(placement);
        return found == profile.times.end() ? 0 : found->second.launches;
    });
}

int64_t KnownKernel::windows(const Shape& shape, const profiler::Beside& company) const {
    return sum(shape, [&](const profiler::Profile& profile) {
        const auto found = profile.beside.find(company);
        return found == profile.beside.end() ? 0 : found->second.windows;
    });
}

int64_t KnownKernel::slices(const Shape& shape) const {
    return sum(shape, [](const profiler::Profile& profile) { return profile.slicing.slices; });
}

int64_t KnownKernel::counted_blocks(const Shape& shape) const {
    return sum(shape, [](const profiler::Profile& profile) { return profile.counters.blocks; });
}

void KnownKernel::know(std::vector<profiler::Profile> profiles) {
    std::map<Row, Known> known;
    for (const profiler::Profile& each : profiles) {
        std::vector<profiler::Profile> of_shape;
        std::copy_if(profiles.begin(), profiles.end(), std::back_inserter(of_shape),
                     [&](const profiler::Profile& other) { return other.key.block == each.key.block; });
        known[{each.key.block, each.key.grid_class}] = {
            std::make_shared<schedule::Profile>(translate(each, of_shape, facts_)),
            block_ns(each, facts_.multiprocessors), each};
    }
    std::lock_guard lock(mutex_);
    // Policies tell profiles apart by their address: what says the same stays the same.
    const auto told = [](const Known& known) {
        return known.profile->mix ? 1 + known.profile->mix->waits.has_value() : 0;
    };  // of another row, perhaps
    for (auto& [row, fresh] : known) {
        const auto before = known_.find(row);
        if (before != known_.end() && before->second.measured == fresh.measured &&
            told(before->second) == told(fresh))
            fresh.profile = before->second.profile;
    }
    known_ = std::move(known);
}

std::vector<profiler::Profile> KnownKernel::take_news() {
    std::map<Row, profiler::Profile> news;
    {
        std::lock_guard lock(mutex_);
        news.swap(news_);
    }
    std::vector<profiler::Profile> all;
    for (auto& [row, profile] : news) all.push_back(std::move(profile));
    return all;
}

}  // namespace smt::runtime::profiles
