#include "runtime/profiles/known_kernel.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/profiles/translate.h"

namespace smt::runtime::profiles {

namespace {

constexpr int64_t kFarthestClass = 1;  // half or twice as many blocks: a block still takes about as long
constexpr int64_t kFewSlices = 4;      // policies hear of what slices cost from so many on

template <class Sums>
void add(std::map<profiler::Placement, Sums>& to, const std::map<profiler::Placement, Sums>& news) {
    for (const auto& [place, times] : news) {
        Sums& sum = to[place];
        sum.launches += times.launches;
        sum.blocks += times.blocks;
        sum.input_bytes += times.input_bytes;
        sum.nanoseconds += times.nanoseconds;
    }
}

void add(std::map<profiler::Beside, profiler::SharedTime>& to,
         const std::map<profiler::Beside, profiler::SharedTime>& news) {
    for (const auto& [company, time] : news) {
        profiler::SharedTime& sum = to[company];
        sum.windows += time.windows;
        sum.blocks += time.blocks;
        sum.nanoseconds += time.nanoseconds;
    }
}

// What was measured with quotas or beside others, or counted: more than times of launches as they came.
bool says_much(const profiler::Profile& profile) {
    return profile.times.size() > 1 || !profile.beside.empty() || profile.counters.blocks > 0;
}

}  // namespace

KnownKernel::Row KnownKernel::row_of(const Shape& shape) {
    return {{shape.block[0], shape.block[1], shape.block[2]}, profiler::grid_class(shape.blocks)};
}

const KnownKernel::Known* KnownKernel::nearest(const Shape& shape) const {
    const Row wanted = row_of(shape);
    const Known* own = nullptr;
    for (int64_t away = 0; away <= kFarthestClass; ++away) {
        for (const int64_t grids : {wanted.second + away, wanted.second - away}) {
            const auto found = known_.find({wanted.first, grids});
            if (found == known_.end()) continue;
            // What was learnt of this class does not hide what was measured of the next one.
            const bool learnt = found->second.learnt && !says_much(found->second.measured);
            if (!learnt) return own && !says_much(found->second.measured) ? own : &found->second;
            if (!own) own = &found->second;
        }
    }
    return own;
}

std::shared_ptr<const schedule::Profile> KnownKernel::find_or_begin(const Shape& shape) {
    std::lock_guard lock(mutex_);
    if (const Known* const found = nearest(shape)) return found->profile;
    std::shared_ptr<const schedule::Profile>& begun = begun_[row_of(shape)];
    if (!begun) {
        profiler::Profile nothing;
        nothing.key = key(shape);
        begun = std::make_shared<schedule::Profile>(translate(nothing, {}, facts_));
    }
    return begun;
}

// Counters may be of another block shape's row; those were seen by know(), and are rare where nothing is
// measured.
void KnownKernel::publish(const Row& row) {
    const auto news = news_.find(row);
    if (news == news_.end()) return;
    Known& known = known_[row];
    if (known.measured.key.kernel.empty()) known.measured.key = news->second.key;
    profiler::Profile all = known.measured;
    add(all.times, news->second.times);
    add(all.learnt_times, news->second.learnt_times);
    add(all.beside, news->second.beside);
    add(all.learnt_beside, news->second.learnt_beside);
    all.preemption.stops += news->second.preemption.stops;
    all.preemption.nanoseconds += news->second.preemption.nanoseconds;
    all.slicing.slices += news->second.slicing.slices;
    all.slicing.nanoseconds += news->second.slicing.nanoseconds;
    std::vector<profiler::Profile> of_shape;
    for (const auto& [other, each] : known_)
        if (other.first == row.first) of_shape.push_back(each.measured);
    known.profile = std::make_shared<schedule::Profile>(translate(all, of_shape, facts_));
    known.block_ns = block_ns(all, facts_.multiprocessors);
    known.learnt = !all.learnt_times.empty() || !all.learnt_beside.empty();
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

void KnownKernel::learnt(const Shape& shape, const profiler::Placement& placement, uint64_t blocks,
                         uint64_t ns) {
    if (blocks == 0 || ns == 0) return;
    std::lock_guard lock(mutex_);
    add(news_of(shape).learnt_times,
        {{placement, profiler::Times{1, static_cast<int64_t>(blocks), 0, static_cast<int64_t>(ns)}}});
    publish(row_of(shape));
}

void KnownKernel::learnt_beside(const Shape& shape, const profiler::Beside& company, uint64_t blocks,
                                uint64_t ns) {
    if (blocks == 0 || ns == 0) return;
    std::lock_guard lock(mutex_);
    add(news_of(shape).learnt_beside,
        {{company, profiler::SharedTime{1, static_cast<int64_t>(blocks), static_cast<int64_t>(ns)}}});
    publish(row_of(shape));
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
    if (slicing.slices % kFewSlices == 0) publish(row_of(shape));
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

bool KnownKernel::has_time(const Shape& shape, const profiler::Placement& placement) const {
    return sum(shape, [&](const profiler::Profile& profile) {
               return profile.times.contains(placement) || profile.learnt_times.contains(placement);
           }) > 0;
}

bool KnownKernel::has_rate(const Shape& shape, const profiler::Beside& company) const {
    return sum(shape, [&](const profiler::Profile& profile) {
               return profile.beside.contains(company) || profile.learnt_beside.contains(company);
           }) > 0;
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
            block_ns(each, facts_.multiprocessors), each,
            !each.learnt_times.empty() || !each.learnt_beside.empty()};
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
    for (const auto& [row, news] : news_)  // since they were taken
        if (!news.learnt_times.empty() || !news.learnt_beside.empty()) publish(row);
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
