#include "interpose/transport/identity.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/transport/server_start.h"
#include "runtime/settings/read.h"

namespace smt::interpose {

// What a program without a tenant's name has in common with its children: what `smt run` gave it, else its
// process group, whose number is one of its namespace's.
void name_family(char (&family)[protocol::kTenantNameBytes]) {
    using settings::Id;
    struct stat space{};
    family[0] = 0;
    if (settings::c_text_of(Id::kTenant)) return;
    if (const char* inherited = settings::c_text_of(Id::kFamily))
        snprintf(family, sizeof family, "%s", inherited);
    else if (stat("/proc/self/ns/pid", &space) == 0)
        snprintf(family, sizeof family, "group-%d-in-%llu", getpgrp(),
                 static_cast<unsigned long long>(space.st_ino));
    else
        snprintf(family, sizeof family, "process-%d", getpid());
}

bool choose_server(char (&key)[protocol::kKeyBytes], SessionFailure& failure) {
    if (!protocol::is_strict()) return true;
    char family[protocol::kTenantNameBytes];
    name_family(family);
    const char* problem = protocol::add_tenant(key, settings::c_text_of(settings::Id::kTenant), family);
    if (problem) explain(failure, "%s", problem);
    return !problem;
}

}  // namespace smt::interpose
