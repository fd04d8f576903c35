// Records what a program passes to NVRTC for each nvrtcProgram, for the message about its image. Callable
// from any thread. A failure here never fails the program's call.
#pragma once

#include "interpose/capture/bytes.h"
#include "interpose/capture/library.h"

namespace smt::interpose::capture {

struct Headers {
    int count;
    const char* const* texts;
    const char* const* names;
};

void note_created(nvrtcProgram program, const char* text, const char* name, Headers headers);
void note_name_expression(nvrtcProgram program, const char* expression);
// Called after a successful compile, with its options.
void note_compiled(nvrtcProgram program, int count, const char* const* options);
void forget_program(nvrtcProgram program);

enum class Taken { kPtx, kCubin };
// The message about an image that the program took out. true the first time; the caller then releases
// `message`.
bool describe_image(nvrtcProgram program, Taken taken, const void* image, uint64_t bytes, Bytes& message);

void forget_programs_in_child();  // after fork: another thread may have held the lock

}  // namespace smt::interpose::capture
