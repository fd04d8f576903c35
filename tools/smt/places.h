// Where things are: what was built or installed with this program (cmake/InstallLayout.cmake), and what
// servers leave in the runtime folder.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace smt::tools {

// An environment variable's value; empty if it is not set.
std::string variable(const char* name);

// The folder this program lies in, without a trailing slash.
std::string own_directory();
// libsmt.so, in ../lib/smt of an installed tree or in ../lib of a build; empty: not there.
std::string find_interposer();
// Our CUDA runtimes for the simulated device, in the folder cudart beside libsmt.so: the newest, and those of
// programs that CUDA 12 and 11 built.
inline constexpr const char* kRuntimeFile = "libcudart.so.13";
inline constexpr std::array<std::string_view, 3> kRuntimeFiles = {kRuntimeFile, "libcudart.so.12",
                                                                  "libcudart.so.11.0"};
// The newest of them; empty: not there. The others lie beside it.
std::string find_runtime();
// smtd: SMT_SERVER, or beside this program; empty: not there.
std::string find_server();
// smt-rewrite, bench_remoting and the like, beside this program or in ../libexec/smt; empty: not there.
std::string find_program(const std::string& name);

// The runtime folder's name, whether or not it exists: runtime/protocol/runtime_folder.h.
std::string runtime_directory();
// Empty if the folder may be used (or does not exist yet); else what is wrong with it.
std::string runtime_directory_problem(const std::string& directory);

// The keys of what lies in the runtime folder with this suffix (".sock", ".journal"), newest first, and then
// those of system's servers ("system:KEY") that this user may open: which of the two kinds, SMT_SYSTEM says
// (protocol/system_server.h). Throws Failure: the folder is not one that smt may use.
std::vector<std::string> keys_with(const std::string& suffix);
// Why the journals of system's servers are not among keys_with(); empty: they are, or there is none.
std::string why_no_system_journal();
// The journal of this server, or of the one that started last. Throws Failure: there is none.
std::string find_journal(const std::string* key);
// The journals of that server; without a key those of the GPU whose server started last: its shared server's,
// then those of strict tenants' servers, oldest first. Throws Failure: there is none.
std::vector<std::string> find_journals(const std::string* key);
// The journal of an earlier server of that key, 1 being the one before; of the last one, without a key of
// any server, that crashed, was killed or lost its context. Throw Failure: there is none. The server's log
// has the same number.
std::string find_generation(const std::string* key, int generation);
std::string find_last_crash(const std::string* key);
inline constexpr int kMostGenerations = 4;  // that servers keep
// Whether nothing is added to a journal any more: it is an earlier server's, or its server's process has
// ended, in whatever way. False where that cannot be seen.
bool is_complete(const std::string& journal);
std::string key_of_journal(const std::string& path);  // "/tmp/smt-1/device.journal" -> "device"
bool is_of_system(const std::string& key);            // "system:0a1b"
std::string bare_key(const std::string& key);         // "system:0a1b" -> "0a1b"
std::string path_of(const std::string& key, const std::string& suffix);

}  // namespace smt::tools
