// What a program told NVRTC about each nvrtcProgram: noted as the calls pass, for the message about its image.
// Any thread; nothing here fails the program.
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
// With the options of the compile that succeeded.
void note_compiled(nvrtcProgram program, int count, const char* const* options);
void forget_program(nvrtcProgram program);

enum class Taken { kPtx, kCubin };
// The message about an image that the program took out: true the first time, and then `message` is the
// caller's to release.
bool describe_image(nvrtcProgram program, Taken taken, const void* image, uint64_t bytes, Bytes& message);

void forget_programs_in_child();   // of a fork: another thread may have held the lock

}  // namespace smt::interpose::capture
