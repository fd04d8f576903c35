// The server's files in the runtime directory (runtime/protocol/runtime_folder.h). The server starts only
// if the directory is the user's own with mode 0700; a system's server only if it is, with mode 0750.
//
//   <key>.sock  the control socket      <key>.log      stderr
//   <key>.lock  held until exit         <key>.journal  what the server did
//   <key>.fault the last fault          <key>.core     the GPU's state at it (journal/fault_record.h)
//   <key>.record tenants whose kernels faulted, or may have, for the next server (Server::keep_record_in())
#pragma once

#include <sys/types.h>

#include <string>

namespace smt::runtime::server {

struct Files {
    std::string directory;
    std::string socket;
    std::string lock;
    std::string log;
    std::string journal;
    std::string fault;
    std::string record;
    std::string core_dump;
    gid_t group = 0;  // of a system's server: that connects to the socket
};

// Creates the directory if it does not exist. False: `error` says what is wrong with it.
bool find_files(const std::string& key, Files& files, std::string& error);
// The same of a system's server (protocol/system_server.h), whose directory must exist.
bool find_system_files(const std::string& key, Files& files, std::string& error);

enum class Lock { kTaken, kOtherServer, kFailed };
// Takes the lock of this key for the life of the process. Waits while a leaving server still holds it.
// kOtherServer: a server that answers holds it.
// `file`: the descriptor that holds it; another process that gets the descriptor holds it, too.
Lock take_lock(const Files& files, std::string& error, int* file);

}  // namespace smt::runtime::server
