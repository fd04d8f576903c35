// The server's files in the runtime directory (runtime/protocol/runtime_folder.h), which is ours alone (0700), or nothing is started.
//
//   <key>.sock  the control socket      <key>.log      stderr
//   <key>.lock  held for life           <key>.journal  what the server did
//   <key>.fault the last fault          <key>.core     the GPU's state at it (journal/fault_record.h)
#pragma once

#include <string>

namespace smt::runtime::server {

struct Files {
    std::string directory;
    std::string socket;
    std::string lock;
    std::string log;
    std::string journal;
    std::string fault;
    std::string core_dump;
};

// Makes the directory if need be. False: `error` says what is wrong with it.
bool find_files(const std::string& key, Files& files, std::string& error);

enum class Lock { kTaken, kOtherServer, kFailed };
// The lock of this key, for the life of the process. While a server that is leaving still holds it,
// this waits; when one that answers holds it, there is nothing to start.
Lock take_lock(const Files& files, std::string& error);

}  // namespace smt::runtime::server
