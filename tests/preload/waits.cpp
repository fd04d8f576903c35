// A stream waits for a word that the program writes only when its standard input ends.
#include "tests/preload/program.h"

int main() {
    preload::start();
    CUdeviceptr word = 0;
    CUstream stream = nullptr, writer = nullptr;
    CHECK(cuMemAlloc(&word, sizeof(int)));
    CHECK(cuMemsetD32(word, 0, 1));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    CHECK(cuCtxSynchronize());
    CHECK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    std::printf("waiting\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
    CHECK(cuStreamWriteValue32(writer, word, 1, 0));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuStreamDestroy(writer));
    CHECK(cuMemFree(word));
}
