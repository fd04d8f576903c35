// Says what cuInit returns.
#include "tests/preload/program.h"

int main() { std::printf("cuInit %d\n", static_cast<int>(cuInit(0))); }
