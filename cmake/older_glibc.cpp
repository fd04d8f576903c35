// Functions that glibc has from 2.33 on; before that its headers had them. Of no use to others: they are
// local symbols of the library. x86-64's kernel fills glibc's struct stat.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

int stat(const char* path, struct stat* found) noexcept {
    return static_cast<int>(syscall(SYS_stat, path, found));
}

int lstat(const char* path, struct stat* found) noexcept {
    return static_cast<int>(syscall(SYS_lstat, path, found));
}

int fstat(int file, struct stat* found) noexcept { return static_cast<int>(syscall(SYS_fstat, file, found)); }

}  // extern "C"
