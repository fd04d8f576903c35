#include "interpose/process/state.h"

namespace smt::interpose {

constinit std::atomic<State> process_state{State::kFresh};

}  // namespace smt::interpose
