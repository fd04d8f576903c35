// allocate: takes pieces of 16 MiB until there is no more memory, but no more than 16, and says how many.
#include <cstdlib>
#include <vector>

#include "tests/preload/program.h"

constexpr size_t kPiece = 16u << 20;
constexpr int kMostPieces = 16;

int main() {
    preload::start();
    std::vector<CUdeviceptr> pieces;
    CUdeviceptr piece = 0;
    CUresult status = CUDA_SUCCESS;
    while (pieces.size() < kMostPieces && (status = cuMemAlloc(&piece, kPiece)) == CUDA_SUCCESS)
        pieces.push_back(piece);
    REQUIRE(status == CUDA_SUCCESS || status == CUDA_ERROR_OUT_OF_MEMORY);
    std::printf("%zu pieces\n", pieces.size());
    // An error that ends nothing: what is given back can be taken again.
    CHECK(cuMemFree(pieces.back()));
    CHECK(cuMemAlloc(&pieces.back(), kPiece));
    std::vector<unsigned char> bytes(kPiece, 1);
    CHECK(cuMemcpyDtoH(bytes.data(), pieces.back(), kPiece));
    CHECK(cuMemsetD8(pieces.back(), 2, kPiece));
    FAILS(cuMemsetD8(pieces.back(), 3, kPiece + 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD32(pieces.back() + 4, 3, kPiece / 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD2D8(pieces.back(), 512, 3, 1, kPiece / 512 + 1), CUDA_ERROR_INVALID_VALUE);
    for (CUdeviceptr each : pieces) CHECK(cuMemFree(each));
}
