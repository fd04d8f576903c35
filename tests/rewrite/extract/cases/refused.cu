//!
// What only the host's library has.
#include <tuple>
__global__ void first(std::tuple<int, float> pair, int* a) { *a = std::get<0>(pair); }
