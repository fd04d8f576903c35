// Holds a mutex for a scope. std::mutex can throw, which libsmt.so must not.
#pragma once

#include <pthread.h>

namespace smt::interpose {

class Lock {
public:
    explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Lock() { pthread_mutex_unlock(&mutex_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    pthread_mutex_t& mutex_;
};

}  // namespace smt::interpose
