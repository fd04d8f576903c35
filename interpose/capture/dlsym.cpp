#include "interpose/capture/dlsym.h"

#include <dlfcn.h>
#include <stdint.h>

#include "interpose/capture/library.h"
#include "interpose/capture/nvrtc.h"

// A sanitizer looks up its functions with dlsym before instrumented code can run.
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined"), visibility("hidden")))

extern "C" {

using Dlsym = void* (*)(void*, const char*);

__attribute__((visibility("hidden"))) constinit Dlsym smt_real_dlsym = nullptr;

// Concurrent writers store the same value.
PLAIN Dlsym smt_find_real_dlsym() {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!found) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    Dlsym function = reinterpret_cast<Dlsym>(found);
    __atomic_store_n(&smt_real_dlsym, function, __ATOMIC_RELEASE);
    return function;
}

// Results for a name that begins with nvrtc: the function, or one of these two, which the code below tests.
constexpr uintptr_t kAskTheRealOne = 0, kNotThere = 1;

__attribute__((visibility("hidden"))) uintptr_t smt_answer_dlsym(void* handle, const char* name,
                                                                 void* caller) {
    using namespace smt::interpose::capture;
    // RTLD_NEXT is used by other libraries that intercept NVRTC; their calls pass through libsmt.so anyway.
    if (handle == RTLD_NEXT || !captured_function(name, 0)) return kAskTheRealOne;
    void* found = real_dlsym(handle, name);
    if (!found) return kNotThere;  // dlerror() holds the reason
    // In the whole program's scope libsmt.so's function comes first.
    if (found == captured_function(name, kExported)) found = symbol_behind_us(name, caller);
    if (!found) {
        real_dlsym(RTLD_NEXT, name);  // fails and sets dlerror()
        return kNotThere;
    }
    const int index = capturing() ? library_at(found) : -1;
    return reinterpret_cast<uintptr_t>(index >= 0 ? captured_function(name, index) : found);
}

}  // extern "C"

// rdi: handle, rsi: name. At the entry the stack is 8 bytes off its alignment, as after any call.
__asm__(R"(
    .text
    .p2align 4
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    cmpb $'n', 0(%rsi)
    jne 1f
    cmpb $'v', 1(%rsi)
    jne 1f
    cmpb $'r', 2(%rsi)
    jne 1f
    cmpb $'t', 3(%rsi)
    jne 1f
    cmpb $'c', 4(%rsi)
    jne 1f
    movq 0(%rsp), %rdx
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call smt_answer_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    cmpq $1, %rax
    ja 3f
    jb 1f
    xorl %eax, %eax
3:  ret
1:  movq smt_real_dlsym(%rip), %rax
    testq %rax, %rax
    jne 2f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call smt_find_real_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
2:  jmp *%rax
    .cfi_endproc
    .size dlsym, .-dlsym
)");

namespace smt::interpose::capture {

void* real_dlsym(void* handle, const char* name) {
    Dlsym function = __atomic_load_n(&smt_real_dlsym, __ATOMIC_ACQUIRE);
    if (!function) function = smt_find_real_dlsym();
    void* found = function ? function(handle, name) : nullptr;
    __asm__ volatile("" : "+r"(found));  // no tail call: the return address must be in libsmt.so
    return found;
}

}  // namespace smt::interpose::capture
