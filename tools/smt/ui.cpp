// smt ui: a page of what runs. A program of its own beside this one, because it links an HTTP server.
#include "tools/smt/become.h"

namespace smt::tools {
namespace {

int run_ui(const Arguments& arguments) {
    become("smt-ui", arguments, "where CMake finds libmicrohttpd's development files");
}

}  // namespace

const Command ui_command = {
    "ui",
    "smt ui [--listen WHERE] [--server KEY | --replay FILE]\n"
    "\n"
    "  --listen WHERE  PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH; without it a port that is free\n"
    "  --server KEY    of this server; without it of the one that started last\n"
    "  --replay FILE   of a journal that was kept, KEY.journal of the runtime folder: no server, no GPU\n"
    "\n"
    "Prints the page's address, and serves it until it is interrupted: which tenant has which SMs,\n"
    "decisions, latencies; policy and tenants can be changed there. The address has a token in it:\n"
    "with it, others on this machine can do the same",
    "a page in the browser: SMs, decisions, tenants, live or of a recording", run_ui};

}  // namespace smt::tools
