#include "interpose/capture/programs.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

namespace smt::interpose::capture {

namespace {

struct Program {
    nvrtcProgram handle;
    Program* next;
    Bytes source;   // name, text, headers
    Bytes names;    // without their count
    Bytes options;  // with their count
    char directory[PATH_MAX];
    uint64_t name_count;
    bool compiled;
    bool taken[2];  // indexed by Taken
};

constinit pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Program* programs = nullptr;

struct Locked {
    Locked() { pthread_mutex_lock(&programs_lock); }
    ~Locked() { pthread_mutex_unlock(&programs_lock); }
};

Program* find(nvrtcProgram handle) {
    for (Program* each = programs; each; each = each->next) {
        if (each->handle == handle) return each;
    }
    return nullptr;
}

void release(Program* program) {
    program->source.release();
    program->names.release();
    program->options.release();
    free(program);
}

void forget_locked(nvrtcProgram handle) {
    for (Program** at = &programs; *at; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        Program* gone = *at;
        *at = gone->next;
        return release(gone);
    }
}

const char* or_empty(const char* text) { return text ? text : ""; }

}  // namespace

void note_created(nvrtcProgram handle, const char* text, const char* name, Headers headers) {
    auto* program = static_cast<Program*>(calloc(1, sizeof(Program)));
    if (!program) return;
    program->handle = handle;
    program->source.good = program->names.good = program->options.good = true;
    program->source.string(name && *name ? name : "default_program");  // NVRTC's default
    program->source.string(or_empty(text));
    program->source.scalar(2 * static_cast<uint64_t>(headers.count));
    for (int i = 0; i < headers.count; ++i) {
        program->source.string(or_empty(headers.names ? headers.names[i] : nullptr));
        program->source.string(or_empty(headers.texts ? headers.texts[i] : nullptr));
    }
    Locked locked;
    forget_locked(handle);  // destroyed by an unseen call
    program->next = programs;
    programs = program;
}

void note_name_expression(nvrtcProgram handle, const char* expression) {
    Locked locked;
    Program* program = find(handle);
    if (!program) return;
    program->names.string(expression);
    ++program->name_count;
}

void note_compiled(nvrtcProgram handle, int count, const char* const* options) {
    Locked locked;
    Program* program = find(handle);
    if (!program) return;
    program->options.release();
    program->options.scalar(static_cast<uint64_t>(count));
    for (int i = 0; i < count; ++i) program->options.string(or_empty(options[i]));
    if (!getcwd(program->directory, sizeof program->directory)) program->directory[0] = 0;
    program->compiled = true;
    program->taken[0] = program->taken[1] = false;
}

void forget_program(nvrtcProgram handle) {
    Locked locked;
    forget_locked(handle);
}

bool describe_image(nvrtcProgram handle, Taken taken, const void* image, uint64_t bytes, Bytes& message) {
    Locked locked;
    Program* program = find(handle);
    if (!program || !program->compiled || program->taken[static_cast<int>(taken)]) return false;
    program->taken[static_cast<int>(taken)] = true;
    message.string(program->directory);
    message.append(program->source);
    message.append(program->options);
    message.scalar(program->name_count);
    message.append(program->names);
    message.array(image, bytes);
    if (!message.good) message.release();
    return message.data != nullptr;
}

void forget_programs_in_child() {
    programs_lock = PTHREAD_MUTEX_INITIALIZER;
    programs = nullptr;
}

}  // namespace smt::interpose::capture
