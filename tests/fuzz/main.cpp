// Runs a fuzz target without libFuzzer: the corpus first, then inputs made from it by chance that is
// the same every time.   fuzz_NAME CORPUS_FOLDER ITERATIONS|SECONDSs [SEED]
//
// A crash, or an input that takes minutes, prints the input. With clang the targets link with
// -fsanitize=fuzzer in place of this file.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMostBytes = 4096;
constexpr unsigned kTimeoutSeconds = 120;  // for one input

Bytes current;

// Prints the input as hex, with what may be called in a signal handler.
void on_crash(int signal) {
    static constexpr char kDigits[] = "0123456789abcdef";
    static char text[2 * kMostBytes + 1];
    size_t used = 0;
    for (size_t i = 0; i < current.size() && i < kMostBytes; ++i) {
        text[used++] = kDigits[current[i] >> 4];
        text[used++] = kDigits[current[i] & 15];
    }
    text[used++] = '\n';
    const char line[] = "the input, as hex (xxd -r -p makes a corpus file of it):\n";
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0 || write(STDERR_FILENO, text, used) < 0) _exit(2);
    ::signal(signal, SIG_DFL);
    raise(signal);
}

std::vector<Bytes> read_corpus(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    std::vector<Bytes> corpus;
    for (const std::string& name : names) {
        std::ifstream file(name, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    if (corpus.empty()) corpus.emplace_back();
    return corpus;
}

class Mutator {
public:
    explicit Mutator(uint64_t seed) : source_(seed) {}

    Bytes make(const std::vector<Bytes>& corpus) {
        Bytes input = corpus[below(corpus.size())];
        if (below(8) == 0) input = random_bytes(below(256));
        for (size_t i = 0, count = 1 + below(6); i < count; ++i) change(input, corpus);
        if (input.size() > kMostBytes) input.resize(kMostBytes);
        return input;
    }

private:
    size_t below(size_t end) { return end ? source_() % end : 0; }

    Bytes random_bytes(size_t count) {
        Bytes bytes(count);
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(source_());
        return bytes;
    }

    void change(Bytes& input, const std::vector<Bytes>& corpus) {
        const size_t at = below(input.size() + 1);
        switch (below(7)) {
            case 0:  // a bit
                if (at < input.size()) input[at] ^= static_cast<uint8_t>(1 << below(8));
                break;
            case 1:  // a byte
                if (at < input.size()) input[at] = static_cast<uint8_t>(source_());
                break;
            case 2: {  // a number of the kind that breaks things
                static constexpr uint64_t kNumbers[] = {
                    0,          1,          7,          8,       15,         16,
                    255,        4096,       65535,      1 << 20, 0x7fffffff, 0x80000000,
                    0xffffffff, 1ull << 40, 1ull << 63, ~0ull,   ~0ull - 15};
                const uint64_t number = kNumbers[below(std::size(kNumbers))];
                const size_t bytes = std::min(size_t{1} << below(4), input.size() - at);
                if (bytes) std::memcpy(input.data() + at, &number, bytes);
                break;
            }
            case 3: {  // bytes more
                const Bytes more = random_bytes(1 + below(32));
                input.insert(input.begin() + static_cast<long>(at), more.begin(), more.end());
                break;
            }
            case 4:  // bytes less
                input.erase(input.begin() + static_cast<long>(at),
                            input.begin() + static_cast<long>(std::min(input.size(), at + 1 + below(32))));
                break;
            case 5:  // cut
                if (below(4) == 0) input.resize(at);
                break;
            case 6: {  // a piece of another input
                const Bytes& other = corpus[below(corpus.size())];
                const size_t from = below(other.size() + 1);
                const size_t count = below(other.size() - from + 1);
                input.insert(input.begin() + static_cast<long>(at), other.begin() + static_cast<long>(from),
                             other.begin() + static_cast<long>(from + count));
                break;
            }
        }
    }

    std::mt19937_64 source_;
};

void run(const Bytes& input) {
    current = input;
    alarm(kTimeoutSeconds);
    LLVMFuzzerTestOneInput(current.data(), current.size());
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3)
        return std::fprintf(stderr, "usage: %s CORPUS_FOLDER ITERATIONS|SECONDSs [SEED]\n", arguments[0]), 2;
    const auto begin = std::chrono::steady_clock::now();
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) ::signal(signal, on_crash);
    const std::vector<Bytes> corpus = read_corpus(arguments[1]);
    for (const Bytes& input : corpus) run(input);
    Mutator mutator(count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1);
    char* unit = nullptr;
    const long wanted = std::strtol(arguments[2], &unit, 10);
    const auto enough = [&](long made) {
        return *unit == 's' ? std::chrono::steady_clock::now() - begin >= std::chrono::seconds(wanted)
                            : made >= wanted;
    };
    long made = 0;
    for (; !enough(made); ++made) run(mutator.make(corpus));
    std::printf("%zu inputs of the corpus, %ld made from them\n", corpus.size(), made);
    std::fflush(stdout);
    std::_Exit(0);  // the fake driver's threads outlive main()
}
