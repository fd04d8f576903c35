// Included first in each source of libsmt.so and libcudart.so.*. A linker binds a function to its newest
// version in the glibc of the build; programs may have any from 2.31 on. glibc 2.32 to 2.34 moved functions
// of libpthread.so.0 and libdl.so.2 to libc.so.6 under a second version, and kept the first, which is bound
// here. check_library.cmake fails for a function that is missing in this list.
#pragma once

#define SMT_OLDER(function) __asm__(".symver " #function ", " #function "@GLIBC_2.2.5")
SMT_OLDER(dladdr);
SMT_OLDER(dlclose);
SMT_OLDER(dlopen);
SMT_OLDER(dlvsym);
SMT_OLDER(pthread_attr_getstack);
SMT_OLDER(pthread_create);
SMT_OLDER(pthread_getattr_np);
SMT_OLDER(pthread_key_create);
SMT_OLDER(pthread_rwlock_rdlock);
SMT_OLDER(pthread_rwlock_unlock);
SMT_OLDER(pthread_rwlock_wrlock);
SMT_OLDER(pthread_setspecific);
SMT_OLDER(pthread_sigmask);
#ifndef SMT_DEFINES_DLSYM
SMT_OLDER(dlsym);
#endif
#undef SMT_OLDER
