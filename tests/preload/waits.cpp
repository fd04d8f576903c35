// waits: a stream waits for a word that the program writes only when its standard input ends.
// waits busy: the word is there, and behind the wait the stream has a kernel that ends when the test opens
// gate 1.
#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel gate params 4\n";

int main(int count, char**) {
    preload::start();
    CUdeviceptr word = 0;
    CUstream stream = nullptr, writer = nullptr;
    CUmodule module = nullptr;
    CUfunction gate = nullptr;
    const bool busy = count > 1;
    int number = 1;
    void* parameters[] = {&number};
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&gate, module, "gate"));
    CHECK(cuMemAlloc(&word, sizeof(int)));
    CHECK(cuMemsetD32(word, busy, 1));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    CHECK(cuCtxSynchronize());
    CHECK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    if (busy) CHECK(cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    preload::say("waiting");
    while (std::getchar() != EOF) {
    }
    const CUresult status = cuStreamWriteValue32(writer, word, 1, 0);
    if (status != CUDA_SUCCESS || cuStreamSynchronize(stream) != CUDA_SUCCESS) {
        std::printf("ended\n");  // the server has ended the session
        return 0;
    }
    CHECK(cuStreamDestroy(stream));
    CHECK(cuStreamDestroy(writer));
    CHECK(cuMemFree(word));
}
