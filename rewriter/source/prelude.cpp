// What a CUDA compiler does before the first line of a program.
//
// Clang's own way (__clang_cuda_runtime_wrapper.h) gives blockIdx and the like types of its own, needs the
// host's C++ headers, and follows new toolkits late. We only parse, so the toolkit's headers serve as
// NVIDIA's compilers see them. They declare for the host and for the device what exists for one side only;
// parse.cpp forgives errors of that kind.
//
// force_cuda_host_device: a function without __host__ or __device__ is taken for both, as NVRTC's
// -default-device does, and as constexpr functions need. Whether such a call is right is for NVIDIA's
// compiler to say.
#include <fmt/format.h>

#include "rewriter/source/headers.h"

namespace smt::rewriter::source {
namespace {

constexpr const char* kBoth = R"(#pragma clang force_cuda_host_device begin
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#define __CUDACC_DEVICE_ATOMIC_BUILTINS__ 1
#define __CUDA_FTZ 0
#define __CUDA_PREC_DIV 1
#define __CUDA_PREC_SQRT 1
#define __STORAGE__ extern const __attribute__((device))
)";

// Found by asking NVRTC 13.0 which macros it defines. It has neither __GNUC__ nor the processor's and the
// system's macros; Clang leaves them out with -undef.
constexpr const char* kNvrtc = R"(#define __CUDACC_RTC__ 1
#define __LP64__ 1
#define __USE_FAST_MATH__ 0
#define __EXCEPTIONS 1
#define NULL __null
typedef decltype(sizeof(0)) size_t;
typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
typedef long clock_t;
namespace std {
using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t;
template <class Element> class initializer_list {
    const Element* begin_; size_t size_;
public:
    typedef Element value_type;
    typedef const Element& reference; typedef const Element& const_reference;
    typedef size_t size_type;
    typedef const Element* iterator; typedef const Element* const_iterator;
    constexpr initializer_list() noexcept : begin_(nullptr), size_(0) {}
    constexpr size_t size() const noexcept { return size_; }
    constexpr const Element* begin() const noexcept { return begin_; }
    constexpr const Element* end() const noexcept { return begin_ + size_; }
};
template <class Type> struct smt_bare { typedef Type type; };
template <class Type> struct smt_bare<Type&> { typedef Type type; };
template <class Type> struct smt_bare<Type&&> { typedef Type type; };
template <class Type> constexpr typename smt_bare<Type>::type&& move(Type&& value) noexcept {
    return static_cast<typename smt_bare<Type>::type&&>(value);
}
template <class Type> constexpr Type&& forward(typename smt_bare<Type>::type& value) noexcept {
    return static_cast<Type&&>(value);
}
template <class Type> constexpr Type&& forward(typename smt_bare<Type>::type&& value) noexcept {
    return static_cast<Type&&>(value);
}
template <class Element> constexpr const Element* begin(initializer_list<Element> list) noexcept {
    return list.begin();
}
template <class Element> constexpr const Element* end(initializer_list<Element> list) noexcept {
    return list.end();
}
}
typedef __builtin_va_list va_list;
#define va_start(list, last) __builtin_va_start(list, last)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_end(list) __builtin_va_end(list)
)";

// Clang takes a __shared__ variable with a constructor for an error, and does not look at what uses it. Where
// a variable lives matters for its size only (facts.h).
constexpr const char* kLast = R"(#include <cuda_runtime.h>
#undef __shared__
#define __shared__ __attribute__((annotate("smt_shared")))
)";

}  // namespace

std::string nvrtc_prelude(int architecture) {
    return fmt::format("{}{}#define __CUDA_ARCH__ {}\n#define __CUDA_ARCH_LIST__ {}\n{}", kBoth, kNvrtc,
                       architecture, architecture, kLast);
}

std::string nvcc_prelude(int architecture, bool extended_lambda) {
    return fmt::format(
        "{}#define __NVCC__ 1\n#define __NV_NO_HOST_COMPILER_CHECK 1\n#define __CUDA_ARCH_LIST__ {}\n{}{}",
        kBoth, architecture, extended_lambda ? "#define __CUDACC_EXTENDED_LAMBDA__ 1\n" : "", kLast);
}

const std::vector<Header>& nvrtc_headers() {
    static const std::vector<Header> headers = {
        {"target", "#include <nv/target>\n"},
        {"nvrtc_device_runtime.h", ""},
    };
    return headers;
}

}  // namespace smt::rewriter::source
