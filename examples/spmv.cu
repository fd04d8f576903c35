// Sparse matrix times dense vector, the matrix in compressed rows. A warp has one row: its lanes take every
// 32nd entry and add up with shuffles. Rows have 0 to 32 entries, 16 on average, in random columns.
//
// Entries are small whole numbers, so that their sum does not depend on its order.
#include "example.h"

constexpr int kThreads = 256, kRowsPerBlock = kThreads / 32, kGroup = 33, kPerGroup = 32 * 33 / 2;

// Rows come in groups of kGroup, in which each length from 0 to 32 occurs once.
__host__ __device__ unsigned length_of(unsigned row) { return (row % kGroup * 5 + row / kGroup) % kGroup; }

__host__ __device__ unsigned start_of(unsigned row) {
    unsigned start = row / kGroup * kPerGroup;
    for (unsigned other = row / kGroup * kGroup; other < row; ++other) start += length_of(other);
    return start;
}

__host__ __device__ unsigned column_of(unsigned entry, unsigned columns) {
    return example::hash(entry, 1) % columns;
}
__host__ __device__ float value_of(unsigned entry) {
    return static_cast<float>(example::hash(entry, 2) >> 28) - 7;
}
__host__ __device__ float factor_of(unsigned column) {
    return static_cast<float>(example::hash(column, 3) >> 26) - 31;
}

__global__ void fill_matrix(unsigned* starts, unsigned* columns_of_entries, float* values, unsigned rows,
                            unsigned columns) {
    const unsigned row = blockIdx.x * kRowsPerBlock + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row > rows) return;
    const unsigned start = start_of(row), length = row < rows ? length_of(row) : 0;
    if (lane == 0) starts[row] = start;
    for (unsigned entry = start + lane; entry < start + length; entry += 32) {
        columns_of_entries[entry] = column_of(entry, columns);
        values[entry] = value_of(entry);
    }
}

__global__ void fill_vector(float* vector, unsigned columns) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) vector[column] = factor_of(column);
}

__global__ void multiply(const unsigned* __restrict__ starts, const unsigned* __restrict__ columns_of_entries,
                         const float* __restrict__ values, const float* __restrict__ vector,
                         float* __restrict__ result, unsigned rows) {
    const unsigned row = blockIdx.x * kRowsPerBlock + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;  // a whole warp
    const unsigned end = starts[row + 1];
    float sum = 0;
    for (unsigned entry = starts[row] + lane; entry < end; entry += 32)
        sum = fmaf(values[entry], vector[columns_of_entries[entry]], sum);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (lane == 0) result[row] = sum;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "spmv", "multiplies a sparse matrix with a vector");
    const unsigned rows = options.scaled(options.pick(256u, 4'000'000u, 40'000'000u), kRowsPerBlock),
                   columns = options.pick(1000u, 800'000u, 8'000'000u);
    example::DeviceArray<unsigned> starts(rows + 1), columns_of_entries(start_of(rows));
    example::DeviceArray<float> values(start_of(rows)), vector(columns), result(rows);
    fill_matrix<<<example::blocks_for(rows + 1, kRowsPerBlock), kThreads>>>(
        starts.data(), columns_of_entries.data(), values.data(), rows, columns);
    fill_vector<<<example::blocks_for(columns, kThreads), kThreads>>>(vector.data(), columns);

    const unsigned blocks = example::blocks_for(rows, kRowsPerBlock);
    example::Timer timer("multiply", multiply);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        multiply<<<blocks, kThreads>>>(starts.data(), columns_of_entries.data(), values.data(), vector.data(),
                                       result.data(), rows);
    timer.stop(options.iterations);

    example::Report report;
    report.check("rows", result, 1 << 16, [&](size_t i, float sum) {
        const auto row = static_cast<unsigned>(i);
        float expected = 0;
        for (unsigned entry = start_of(row); entry < start_of(row) + length_of(row); ++entry)
            expected += value_of(entry) * factor_of(column_of(entry, columns));
        return sum == expected;
    });
    report.fold(result);
    return report.finish(timer);
}
