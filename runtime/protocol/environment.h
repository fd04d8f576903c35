// Environment variables that are not smt's and that smt reads, or sets for the programs it starts. smt's own:
// runtime/settings/.
#pragma once

namespace smt::environment {

// What defaults depend on.
inline constexpr const char* kXdgCacheHome = "XDG_CACHE_HOME";
inline constexpr const char* kXdgConfigHome = "XDG_CONFIG_HOME";
inline constexpr const char* kHome = "HOME";
inline constexpr const char* kCudaHome = "CUDA_HOME";
inline constexpr const char* kVirtualEnv = "VIRTUAL_ENV";
inline constexpr const char* kCudaCoreDump =
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";  // if it is set, smt changes nothing

// What the command and the server read, or set for the programs they start or examine.
inline constexpr const char* kPreload = "LD_PRELOAD";
inline constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";
inline constexpr const char* kPath = "PATH";
inline constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

}  // namespace smt::environment
