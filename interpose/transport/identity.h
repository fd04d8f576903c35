// Which tenant this process belongs to, by its environment.
#pragma once

#include "runtime/protocol/handshake.h"
#include "runtime/protocol/server_key.h"

namespace smt::interpose {

struct SessionFailure;

// Hello::family: empty if the tenant has a name.
void name_family(char (&family)[protocol::kTenantNameBytes]);

// Makes a GPU's key that of the server of this process: with SMT_ISOLATION=strict the tenant's own. False:
// the tenant cannot have one.
bool choose_server(char (&key)[protocol::kKeyBytes], SessionFailure& failure);

}  // namespace smt::interpose
