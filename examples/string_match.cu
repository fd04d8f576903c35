// String matching as genome aligners do it: the longest piece of each query that occurs in a text.
//
// The text's suffixes are sorted once, on the host. A thread has one query; for each place in it, it finds
// the suffix nearest to the rest of the query by binary search, skipping letters that both ends of the search
// share with the query. Irregular: threads read all over the text, and some are done early.
#include <string_view>

#include "example.h"

constexpr int kThreads = 128;

struct Match {
    uint32_t length = 0, in_query = 0, in_text = 0;
    bool operator==(const Match& other) const {
        return length == other.length && in_query == other.in_query && in_text == other.in_text;
    }
};

struct Text {
    const char* letters;
    const uint32_t* suffixes;  // where they begin, in alphabetic order
    uint32_t size;
};

__global__ void match(Text text, const char* queries, uint32_t length, uint32_t count, Match* matches) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= count) return;
    const char* const query = queries + static_cast<size_t>(thread) * length;
    Match best;
    for (uint32_t start = 0; start + best.length < length; ++start) {
        const char* const rest = query + start;
        const uint32_t rest_length = length - start;
        // Suffixes before `low` are less than the rest of the query, those from `high` on are not. Each end
        // knows how many letters its suffix shares with the query, and where it is.
        uint32_t low = 0, high = text.size, low_shares = 0, high_shares = 0, low_place = 0, high_place = 0;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2, place = text.suffixes[middle];
            uint32_t shares = min(low_shares, high_shares);
            while (shares < rest_length && place + shares < text.size &&
                   text.letters[place + shares] == rest[shares])
                ++shares;
            const bool less = shares < rest_length &&
                              (place + shares == text.size || text.letters[place + shares] < rest[shares]);
            if (less) {
                low = middle + 1;
                low_shares = shares, low_place = place;
            } else {
                high = middle;
                high_shares = shares, high_place = place;
            }
        }
        const uint32_t longest = max(low_shares, high_shares);
        if (longest > best.length) {
            best.length = longest;
            best.in_query = start;
            best.in_text = high_shares == longest ? high_place : low_place;
        }
    }
    matches[thread] = best;
}

char letter(uint32_t number) { return "acgt"[number % 4]; }

std::string make_text(uint32_t size) {
    std::string text(size, ' ');
    example::in_parallel(
        size, [&](size_t i) { text[i] = letter(example::hash(static_cast<uint32_t>(i), 1) >> 8); });
    return text;
}

// Pieces of the text in which one letter of sixteen is another one.
std::string make_queries(std::string_view text, uint32_t count, uint32_t length) {
    std::string queries(static_cast<size_t>(count) * length, ' ');
    example::in_parallel(queries.size(), [&](size_t i) {
        const auto query = static_cast<uint32_t>(i / length);
        const uint32_t start = example::hash(query, 2) % static_cast<uint32_t>(text.size() - length);
        const uint32_t change = example::hash(static_cast<uint32_t>(i), 3) >> 8;
        queries[i] = change % 16 == 0 ? letter(change / 16) : text[start + i % length];
    });
    return queries;
}

// First into buckets by kLetters letters, which takes two passes; then each bucket on its own.
std::vector<uint32_t> sort_suffixes(std::string_view text) {
    constexpr uint32_t kLetters = 8, kBuckets = 1u << (2 * kLetters);
    std::vector<uint32_t> codes(text.size()), ends(kBuckets + 1), suffixes(text.size());
    uint32_t code = 0;
    for (size_t i = text.size(); i-- > 0;) {  // past the end it counts as the first letter, which sorts first
        code = code >> 2 | static_cast<uint32_t>(std::string_view("acgt").find(text[i]))
                               << (2 * kLetters - 2);
        codes[i] = code;
        ++ends[code + 1];
    }
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) ends[bucket + 1] += ends[bucket];
    const std::vector<uint32_t> begins(ends);
    for (uint32_t i = 0; i < text.size(); ++i) suffixes[ends[codes[i]]++] = i;
    example::in_parallel(kBuckets, [&](size_t bucket) {
        std::sort(suffixes.begin() + begins[bucket], suffixes.begin() + begins[bucket + 1],
                  [&](uint32_t a, uint32_t b) { return text.substr(a) < text.substr(b); });
    });
    return suffixes;
}

Match match_on_cpu(std::string_view text, const std::vector<uint32_t>& suffixes, std::string_view query) {
    Match best;
    for (uint32_t start = 0; start < query.size(); ++start) {
        const std::string_view rest = query.substr(start);
        const auto found =
            std::lower_bound(suffixes.begin(), suffixes.end(), rest,
                             [&](uint32_t suffix, std::string_view to) { return text.substr(suffix) < to; });
        auto consider = [&](uint32_t suffix) {
            const std::string_view there = text.substr(suffix, rest.size());
            const auto end = std::mismatch(there.begin(), there.end(), rest.begin()).first;
            const auto shares = static_cast<uint32_t>(end - there.begin());
            if (shares > best.length) best.length = shares, best.in_query = start, best.in_text = suffix;
        };
        if (found != suffixes.end()) consider(*found);
        if (found != suffixes.begin()) consider(*(found - 1));
    }
    return best;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "string_match", "finds the longest matches of queries in a text");
    const uint32_t size = options.pick(1u << 12, 1u << 20, 1u << 22), length = options.pick(24, 64, 64);
    const uint32_t count = options.scaled(options.pick(512u, 1u << 17, 1u << 20));
    const std::string text = make_text(size), queries = make_queries(text, count, length);
    const std::vector<uint32_t> suffixes = sort_suffixes(text);
    example::DeviceArray<char> device_text(std::vector<char>(text.begin(), text.end()));
    example::DeviceArray<char> device_queries(std::vector<char>(queries.begin(), queries.end()));
    example::DeviceArray<uint32_t> device_suffixes(suffixes);
    example::DeviceArray<Match> matches(count);

    example::Timer timer("match", match);
    const Text device{device_text.data(), device_suffixes.data(), size};
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        match<<<example::blocks_for(count, kThreads), kThreads>>>(device, device_queries.data(), length,
                                                                  count, matches.data());
    timer.stop(options.iterations);

    example::Report report;
    report.check("queries", matches, 2048, [&](size_t i, const Match& found) {
        return found == match_on_cpu(text, suffixes, std::string_view(queries).substr(i * length, length));
    });
    report.fold(matches);
    return report.finish(timer);
}
