// smt cdi: what a container needs for its programs to use the server, as container engines read it (Container
// Device Interface). 0.3.0 is the oldest version of the format that has all of it.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/protocol/system_server.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

using Json = nlohmann::ordered_json;

// libsmt.so's place in the container, wherever the host has it.
constexpr const char* kFolderInside = "/usr/lib/smt";

Json mount(const std::string& outside, const std::string& inside) {
    return {
        {"hostPath", outside}, {"containerPath", inside}, {"options", {"ro", "nosuid", "nodev", "rbind"}}};
}

int run_cdi(const Arguments& arguments) {
    parse_options(arguments, {}, {});
    const std::string interposer = find_interposer();
    if (interposer.empty()) throw Failure("libsmt.so is not beside this program (" + own_directory() + ")");
    const bool own = protocol::wanted_server(false) == protocol::Wanted::kOwn;
    const std::string sockets = own ? runtime_directory() : protocol::system_folder();
    if (!std::filesystem::is_directory(sockets))
        fmt::print(stderr, "smt cdi: {} is not there yet: containers can begin once a server has made it\n",
                   sockets);
    Json variables = Json::array({fmt::format("LD_PRELOAD={}/libsmt.so", kFolderInside)});
    const settings::Id place = own ? settings::Id::kRuntimeDir : settings::Id::kSystemDir;
    if (own || settings::c_text_of(place))
        variables.push_back(fmt::format("{}={}", settings::variable_of(place), sockets));
    const std::string libraries = std::filesystem::path(interposer).parent_path();
    const Json edits = {{"env", variables},
                        {"mounts", {mount(sockets, sockets), mount(libraries, kFolderInside)}}};
    const Json device = {{"name", "all"}, {"containerEdits", edits}};
    const Json specification = {
        {"cdiVersion", "0.3.0"}, {"kind", "smt/gpu"}, {"devices", Json::array({device})}};
    fmt::print("{}\n", specification.dump(2));
    return 0;
}

}  // namespace

const Command cdi_command = {
    "cdi",
    "smt cdi\n"
    "\n"
    "Prints it as JSON, for /etc/cdi/smt.json: then `podman run --device smt/gpu=all` mounts the server's "
    "sockets and libsmt.so,\n"
    "read-only, and preloads that. The server is the system's (smtd --system); with SMT_SYSTEM=0 or "
    "SMT_RUNTIME_DIR it is the\n"
    "user's own. docs/install.md says what else a container needs.",
    "prints what a container needs for its programs to use the server", run_cdi};

}  // namespace smt::tools
