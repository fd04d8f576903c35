// The codec's Reader on any bytes, asked in any order: it never leaves its data, and once bad stays bad.
//
//   input := u8 count of questions, that many u8 questions, the data
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/protocol/codec.h"

using smt::protocol::Reader;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

bool inside(const void* piece, uint64_t bytes, const std::vector<char>& data) {
    const char* from = static_cast<const char*>(piece);
    return from >= data.data() && bytes <= data.size() && from + bytes <= data.data() + data.size();
}

template <typename T>
void ask_array(Reader& reader, const std::vector<char>& data) {
    uint64_t count = 0;
    const T* values = reader.array<T>(count);
    require(count <= data.size() / sizeof(T));
    require(values ? inside(values, count * sizeof(T), data) : count == 0);
}

struct Odd {
    char bytes[13];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
    if (size == 0) return 0;
    const size_t questions = std::min<size_t>(input[0], size - 1);
    const std::vector<char> data(input + 1 + questions, input + size);
    Reader reader(data.data(), data.size());
    for (size_t i = 0; i < questions; ++i) {
        const bool was_good = reader.good();
        const size_t left = reader.left();
        const uint8_t question = input[1 + i];
        switch (question % 8) {
            case 0:
                reader.scalar<uint8_t>();
                break;
            case 1:
                reader.scalar<uint64_t>();
                break;
            case 2:
                reader.scalar<Odd>();
                break;
            case 3:
                ask_array<uint8_t>(reader, data);
                break;
            case 4:
                ask_array<uint64_t>(reader, data);
                break;
            case 5:
                ask_array<Odd>(reader, data);
                break;
            case 6: {
                const char* text = reader.string();
                require(!text || inside(text, std::strlen(text) + 1, data));
                break;
            }
            case 7: {
                const uint64_t count = question == 255 ? ~0ull - 3 : question;
                const char* bytes = reader.take(count);
                require(!bytes || inside(bytes, count, data));
                break;
            }
        }
        require(reader.left() <= left && (was_good || !reader.good()));
    }
    return 0;
}
