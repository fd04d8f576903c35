#include "runtime/device/simulated/exec/flow.h"

#include <algorithm>
#include <array>
#include <map>

namespace smt::runtime::device::simulated {
namespace {

struct Block {
    uint32_t begin = 0;
    uint32_t end = 0;                  // one past the last instruction
    std::vector<uint32_t> successors;  // blocks
    std::vector<uint32_t> predecessors;
};

struct Graph {
    std::vector<Block> blocks;
    std::vector<uint32_t> block_of;  // of each instruction
};

Graph build(const std::vector<Note>& notes) {
    const auto size = static_cast<uint32_t>(notes.size());
    std::vector<bool> leader(size + 1, false);
    leader[0] = leader[size] = true;
    leader[size - 1] = true;  // the way out stands alone
    for (uint32_t i = 0; i < size; ++i) {
        if (notes[i].flow == Flow::kNext) continue;
        leader[i + 1] = true;
        for (uint32_t target : notes[i].targets) leader[target] = true;
    }
    Graph graph;
    graph.block_of.resize(size);
    for (uint32_t i = 0; i < size; ++i) {
        if (leader[i]) graph.blocks.push_back({i, i, {}, {}});
        graph.block_of[i] = static_cast<uint32_t>(graph.blocks.size()) - 1;
        graph.blocks.back().end = i + 1;
    }
    for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
        Block& block = graph.blocks[b];
        const Note& last = notes[block.end - 1];
        if (last.flow == Flow::kBranch)
            for (uint32_t target : last.targets) block.successors.push_back(graph.block_of[target]);
        const bool falls = last.flow == Flow::kNext || last.guarded;
        if (falls && block.end < size) block.successors.push_back(b + 1);
        std::sort(block.successors.begin(), block.successors.end());
        block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                               block.successors.end());
    }
    for (uint32_t b = 0; b < graph.blocks.size(); ++b)
        for (uint32_t next : graph.blocks[b].successors) graph.blocks[next].predecessors.push_back(b);
    return graph;
}

// Dominators of the reversed graph, from the way out (Cooper, Harvey, Kennedy: iterate to a fixed
// point over a depth-first order). Paths that end in an exit do not lead to the way out and count
// for nothing: their threads never come back.
class PostDominators {
public:
    explicit PostDominators(const Graph& graph)
        : graph_(graph), order_(graph.blocks.size(), kNowhere), dominator_(graph.blocks.size(), kNowhere) {
        const auto root = static_cast<uint32_t>(graph.blocks.size()) - 1;
        number(root);
        dominator_[root] = root;
        for (bool changed = true; changed;) {
            changed = false;
            for (auto at = sequence_.rbegin(); at != sequence_.rend(); ++at)
                if (*at != root && improve(*at)) changed = true;
        }
        dominator_[root] = kNowhere;
    }
    uint32_t of(uint32_t block) const { return dominator_[block]; }

private:
    void number(uint32_t root) {  // postorder over predecessors, without recursion
        std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
        std::vector<bool> seen(graph_.blocks.size(), false);
        seen[root] = true;
        while (!stack.empty()) {
            auto& [block, next] = stack.back();
            const auto& from = graph_.blocks[block].predecessors;
            if (next < from.size()) {
                const uint32_t to = from[next++];
                if (!seen[to]) {
                    seen[to] = true;
                    stack.emplace_back(to, 0);
                }
                continue;
            }
            order_[block] = static_cast<uint32_t>(sequence_.size());
            sequence_.push_back(block);
            stack.pop_back();
        }
    }
    bool improve(uint32_t block) {
        uint32_t best = kNowhere;
        for (uint32_t next : graph_.blocks[block].successors)
            if (dominator_[next] != kNowhere) best = best == kNowhere ? next : meet(best, next);
        if (best == dominator_[block]) return false;
        dominator_[block] = best;
        return true;
    }
    uint32_t meet(uint32_t a, uint32_t b) const {
        while (a != b) {
            while (order_[a] < order_[b]) a = dominator_[a];
            while (order_[b] < order_[a]) b = dominator_[b];
        }
        return a;
    }
    const Graph& graph_;
    std::vector<uint32_t> order_, dominator_, sequence_;
};

// ---- registers

using Bits = std::vector<uint64_t>;
void set(Bits& bits, uint32_t i) { bits[i / 64] |= 1ull << (i % 64); }
void clear(Bits& bits, uint32_t i) { bits[i / 64] &= ~(1ull << (i % 64)); }

void step_back(const Note& note, Bits& live) {
    if (!note.guarded)
        for (uint32_t written : note.writes) clear(live, written);
    for (uint32_t read : note.reads) set(live, read);
}

struct Liveness {
    std::vector<Bits> out;  // of each block
};

Liveness find_liveness(const Graph& graph, const std::vector<Note>& notes, size_t registers,
                       const std::vector<uint32_t>& leaving) {
    const size_t words = (registers + 63) / 64;
    Liveness result;
    result.out.assign(graph.blocks.size(), Bits(words, 0));
    std::vector<Bits> in(graph.blocks.size(), Bits(words, 0));
    for (uint32_t i : leaving) set(result.out.back(), i);
    std::vector<uint32_t> work;
    std::vector<bool> queued(graph.blocks.size(), true);
    for (uint32_t b = 0; b < graph.blocks.size(); ++b) work.push_back(b);
    while (!work.empty()) {
        const uint32_t b = work.back();
        work.pop_back();
        queued[b] = false;
        const Block& block = graph.blocks[b];
        for (uint32_t next : block.successors)
            for (size_t w = 0; w < words; ++w) result.out[b][w] |= in[next][w];
        Bits live = result.out[b];
        for (uint32_t i = block.end; i-- > block.begin;) step_back(notes[i], live);
        if (live == in[b]) continue;
        in[b] = std::move(live);
        for (uint32_t from : block.predecessors)
            if (!queued[from]) {
                queued[from] = true;
                work.push_back(from);
            }
    }
    return result;
}

uint32_t words_of(int width) { return width == 1 ? 0 : width <= 32 ? 1 : static_cast<uint32_t>(width) / 32; }
uint32_t bytes_of(int width) {
    return width == 1 ? 4 : static_cast<uint32_t>(width <= 16 ? 16 : width) / 8 * 32;
}

struct Interval {
    uint32_t first = kNowhere;
    uint32_t last = 0;
    void cover(uint32_t point) {
        first = std::min(first, point);
        last = std::max(last, point);
    }
};

class Intervals {
public:
    Intervals(const Graph& graph, const std::vector<Note>& notes, const std::vector<Virtual>& virtuals,
              const std::vector<uint32_t>& leaving)
        : of(virtuals.size()) {
        Liveness liveness = find_liveness(graph, notes, virtuals.size(), leaving);
        for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
            Bits live = liveness.out[b];
            cover_all(live, graph.blocks[b].end);
            for (uint32_t i = graph.blocks[b].end; i-- > graph.blocks[b].begin;) {
                for (uint32_t written : notes[i].writes) of[written].cover(i + 1);
                step_back(notes[i], live);
                for (uint32_t read : notes[i].reads) of[read].cover(i);
                pressure(live, virtuals);
            }
            cover_all(live, graph.blocks[b].begin);
        }
    }
    std::vector<Interval> of;
    uint32_t live_words = 0;

private:
    template <class F>
    static void each(const Bits& live, F f) {
        for (size_t w = 0; w < live.size(); ++w)
            for (uint64_t rest = live[w]; rest != 0; rest &= rest - 1)
                f(static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(__builtin_ctzll(rest)));
    }
    void cover_all(const Bits& live, uint32_t point) {
        each(live, [&](uint32_t i) { of[i].cover(point); });
    }
    void pressure(const Bits& live, const std::vector<Virtual>& virtuals) {
        uint32_t words = 0;
        each(live, [&](uint32_t i) { words += words_of(virtuals[i].width); });
        live_words = std::max(live_words, words);
    }
};

}  // namespace

std::vector<uint32_t> reconvergence(const std::vector<Note>& notes) {
    Graph graph = build(notes);
    PostDominators dominators(graph);
    std::vector<uint32_t> meet(notes.size(), kNowhere);
    for (const Block& block : graph.blocks) {
        const uint32_t last = block.end - 1;
        if (notes[last].flow != Flow::kBranch) continue;
        const uint32_t to = dominators.of(graph.block_of[last]);
        if (to != kNowhere) meet[last] = graph.blocks[to].begin;
    }
    return meet;
}

Allocation allocate(const std::vector<Note>& notes, const std::vector<Virtual>& virtuals,
                    const std::vector<uint32_t>& entry, const std::vector<uint32_t>& leaving) {
    Allocation result;
    result.offsets.assign(virtuals.size(), 0);
    result.numbers.assign(virtuals.size(), 0);
    Intervals intervals(build(notes), notes, virtuals, leaving);
    for (uint32_t i : entry) intervals.of[i].cover(0);
    result.live_words = intervals.live_words;

    std::vector<uint32_t> by_start;
    for (uint32_t i = 0; i < virtuals.size(); ++i)
        if (intervals.of[i].first != kNowhere) by_start.push_back(i);
    std::sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(intervals.of[a].first, a) < std::pair(intervals.of[b].first, b);
    });
    // Places of one width only ever hold values of that width, so two operands of an instruction
    // are the same place or do not overlap at all.
    struct Pool {
        std::multimap<uint32_t, uint32_t> busy;  // last point -> place
        std::vector<uint32_t> free;
        std::vector<uint16_t> numbers;
    };
    std::map<uint32_t, Pool> pools;  // by bytes of a place
    std::map<uint32_t, std::vector<uint32_t>> members;
    uint16_t next_number = 0;
    std::vector<uint32_t> place(virtuals.size(), 0);
    for (uint32_t i : by_start) {
        const uint32_t bytes = bytes_of(virtuals[i].width);
        Pool& pool = pools[bytes];
        // A register read last where this one is written first may share its place: the point after
        // the reading instruction is where the writing one begins to be alive.
        while (!pool.busy.empty() && pool.busy.begin()->first < intervals.of[i].first) {
            pool.free.push_back(pool.busy.begin()->second);
            pool.busy.erase(pool.busy.begin());
        }
        if (pool.free.empty()) {
            pool.free.push_back(static_cast<uint32_t>(pool.numbers.size()));
            pool.numbers.push_back(next_number++);
        }
        place[i] = pool.free.back();
        pool.free.pop_back();
        pool.busy.emplace(intervals.of[i].last, place[i]);
        members[bytes].push_back(i);
    }
    uint32_t offset = 0;
    for (auto at = pools.rbegin(); at != pools.rend(); ++at) {
        for (uint32_t i : members[at->first]) {
            result.offsets[i] = offset + place[i] * at->first;
            result.numbers[i] = at->second.numbers[place[i]];
        }
        offset += static_cast<uint32_t>(at->second.numbers.size()) * at->first;
    }
    result.frame_bytes = (offset + 63) / 64 * 64;
    return result;
}

}  // namespace smt::runtime::device::simulated
