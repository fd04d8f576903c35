// Slabs: one reserved range of addresses for each kind of object, so that checking a handle is a subtraction
// and a comparison. Memory is committed on first touch and never returned. A released slot becomes the head
// of its slab's free list. Events have a slab for each session, since a slot's index is that of a word in the
// session's arena; all are in one range, of which a slab is a part.
#include "interpose/driver/objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/protocol/layout.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kMaxStreams = 64u << 10;
constexpr uint32_t kMaxImages = 256u << 10;
constexpr uint32_t kMaxFunctions = 4u << 20;

constexpr size_t slot_bytes(size_t object_bytes) {
    size_t bytes = 64;
    while (bytes < object_bytes) bytes *= 2;
    return bytes;
}

// `Parts` slabs of `Capacity` slots each.
template <typename T, uint32_t Capacity, uint32_t Parts = 1>
class Slab {
public:
    static constexpr size_t kSlot = slot_bytes(sizeof(T) + sizeof(uint32_t));  // a power of two
    static constexpr size_t kBytes = size_t{Capacity} * Parts * kSlot;

    // Accepts any value.
    T* find(const void* handle) const {
        uintptr_t base = base_.load(std::memory_order_relaxed);
        uintptr_t offset = reinterpret_cast<uintptr_t>(handle) - base;
        if (base == 0 || offset >= kBytes || offset % kSlot != 0) return nullptr;
        T* object = reinterpret_cast<T*>(base + offset);
        return object->live.load(std::memory_order_relaxed) ? object : nullptr;
    }

    // A slot that is not live yet, with the contents that its last use left. nullptr: full.
    T* take(uint32_t number = 0) {
        pthread_mutex_lock(&lock_);
        Part& part = parts_[number];
        T* object = nullptr;
        if (part.free != 0) {
            object = at(number, part.free - 1);
            part.free = next_free(object);
        } else if (part.used < Capacity && reserve()) {
            object = at(number, part.used++);
        }
        pthread_mutex_unlock(&lock_);
        return object;
    }

    // false: another thread released it first.
    bool give_back(T* object) {
        pthread_mutex_lock(&lock_);
        bool was_live = object->live.exchange(0, std::memory_order_relaxed) != 0;
        if (was_live) {
            Part& part = parts_[slot(object) / Capacity];
            next_free(object) = part.free;
            part.free = index(object) + 1;
        }
        pthread_mutex_unlock(&lock_);
        return was_live;
    }

    // In its part.
    uint32_t index(const T* object) const { return slot(object) % Capacity; }

    template <typename Visit>
    void for_each(Visit visit, uint32_t number = 0) {
        pthread_mutex_lock(&lock_);
        uint32_t used = parts_[number].used;
        pthread_mutex_unlock(&lock_);
        for (uint32_t i = 0; i < used; ++i) {
            T* object = at(number, i);
            if (object->live.load(std::memory_order_acquire) && object->session == thread_session)
                visit(*object);
        }
    }

private:
    struct Part {
        uint32_t used;
        uint32_t free;  // index + 1
    };

    uint32_t slot(const T* object) const {
        return static_cast<uint32_t>(
            (reinterpret_cast<uintptr_t>(object) - base_.load(std::memory_order_relaxed)) / kSlot);
    }
    T* at(uint32_t number, uint32_t index) const {
        return reinterpret_cast<T*>(base_.load(std::memory_order_relaxed) +
                                    (size_t{number} * Capacity + index) * kSlot);
    }

    // The free list uses the slot's last bytes, beyond every object of these kinds.
    uint32_t& next_free(T* object) {
        return *reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(object) + kSlot - sizeof(uint32_t));
    }

    bool reserve() {
        if (base_.load(std::memory_order_relaxed) != 0) return true;
        void* range =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) return false;
        base_.store(reinterpret_cast<uintptr_t>(range), std::memory_order_release);
        return true;
    }

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<uintptr_t> base_{0};
    Part parts_[Parts]{};
};

constinit Slab<Stream, kMaxStreams> streams;
constinit Slab<Event, protocol::kEventWords, kMostSessions> events;
constinit Slab<Image, kMaxImages> images;
constinit Slab<Function, kMaxFunctions> functions;

template <typename T>
T* clear(T* object) {
    if (object) memset(static_cast<void*>(object), 0, sizeof(T));
    return object;
}

template <typename T>
T* bring_to_life(T* object) {
    if (object) object->session = thread_session;
    if (object) object->live.store(1, std::memory_order_release);
    return object;
}

}  // namespace

Stream* find_stream(CUstream handle) { return streams.find(handle); }
Event* find_event(CUevent handle) { return events.find(handle); }
Image* find_image(CUmodule handle) { return images.find(handle); }
Image* find_image(CUlibrary handle) { return images.find(handle); }
Function* find_function(CUfunction handle) { return functions.find(handle); }
Function* find_function(CUkernel handle) { return functions.find(handle); }

Stream* new_stream() { return bring_to_life(clear(streams.take())); }
Image* new_image() { return bring_to_life(clear(images.take())); }
Function* new_function() {
    Function* function = clear(functions.take());
    if (function) function->live.store(1, std::memory_order_release);
    return function;
}

// An event's slot index is that of its completion word. The fields that order the word's uses outlive the
// event: the next value to write, and the last use, which the new event's creation must follow.
Event* new_event() {
    Event* event = events.take(this_session().number());
    if (!event) return nullptr;
    event->index = events.index(event);
    event->flags = 0;
    event->watched.store(0, std::memory_order_relaxed);
    event->unwritten.store(0, std::memory_order_relaxed);
    event->contested.store(0, std::memory_order_relaxed);
    event->captured.store(0, std::memory_order_relaxed);
    event->by_graph.store(0, std::memory_order_relaxed);
    event->recorded.store(0, std::memory_order_relaxed);
    event->awaited.store(0, std::memory_order_relaxed);
    event->stream = nullptr;
    return bring_to_life(event);
}

void release(Stream* stream) { streams.give_back(stream); }
void release(Event* event) { events.give_back(event); }

void release(Image* image) {
    Function* function = image->functions.exchange(nullptr, std::memory_order_acquire);
    if (!images.give_back(image)) return;
    while (function) {
        Function* next = function->next;
        const void* parameters = function->parameters;
        const void* name = function->name;
        if (functions.give_back(function)) {
            free(const_cast<void*>(parameters));
            free(const_cast<void*>(name));
        }
        function = next;
    }
}

void for_each_stream(void (*visit)(Stream&, void*), void* state) {
    streams.for_each([&](Stream& stream) { visit(stream, state); });
}

void for_each_image(void (*visit)(Image&, void*), void* state) {
    images.for_each([&](Image& image) { visit(image, state); });
}

void release_all_objects() {
    streams.for_each([](Stream& stream) { release(&stream); });
    events.for_each([](Event& event) { release(&event); }, this_session().number());
    images.for_each([](Image& image) { release(&image); });
}

}  // namespace smt::interpose
