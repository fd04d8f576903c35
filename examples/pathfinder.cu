// Dynamic programming on a grid: the cheapest way from the first row to each cell of the last one, going down
// a row at a time, straight or one column to either side.
//
// A launch advances kRows rows. A block computes kThreads columns in shared memory; its outermost columns do
// not see all their neighbours and go wrong, one more on each side with each row, so that only the inner
// kUseful are kept.
#include "example.h"

constexpr int kThreads = 256, kRows = 32, kUseful = kThreads - 2 * kRows, kLaunches = 2;
constexpr int kTooMuch = 1 << 30;  // costs outside the grid

// Four cells' costs, from 0 to 9.
__host__ __device__ uchar4 costs_of(uint32_t four) {
    const uint32_t bits = example::hash(four, 1);
    auto cost = [&](int byte) { return static_cast<unsigned char>(((bits >> (8 * byte) & 255) * 10) >> 8); };
    return make_uchar4(cost(0), cost(1), cost(2), cost(3));
}

__global__ void fill(uchar4* costs, uint32_t fours) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < fours) costs[i] = costs_of(i);
}

__global__ void take_first_row(const unsigned char* costs, int* sums, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) sums[column] = costs[column];
}

// From the sums of row first_row - 1 to those of row first_row + kRows - 1.
__global__ void __launch_bounds__(kThreads)
    advance(const unsigned char* costs, const int* from, int* to, int columns, int first_row) {
    __shared__ int sums[2][kThreads];
    const int thread = threadIdx.x, column = static_cast<int>(blockIdx.x) * kUseful - kRows + thread;
    const bool inside = column >= 0 && column < columns;
    sums[0][thread] = inside ? from[column] : kTooMuch;
    __syncthreads();
    const unsigned char* cost = costs + static_cast<size_t>(first_row) * columns + column;
    for (int row = 0; row < kRows; ++row, cost += columns) {
        const int* const before = sums[row % 2];
        int best = before[thread];
        if (thread > 0) best = min(best, before[thread - 1]);
        if (thread < kThreads - 1) best = min(best, before[thread + 1]);
        sums[(row + 1) % 2][thread] = inside ? best + *cost : kTooMuch;
        __syncthreads();
    }
    if (inside && thread >= kRows && thread < kRows + kUseful) to[column] = sums[kRows % 2][thread];
}

int cost_on_cpu(size_t cell) {
    const uchar4 four = costs_of(static_cast<uint32_t>(cell / 4));
    const int costs[] = {four.x, four.y, four.z, four.w};
    return costs[cell % 4];
}

// All that a cell of the last row can see: a triangle above it.
int sum_on_cpu(int columns, int column) {
    constexpr int kReach = kRows * kLaunches;
    const int first = std::max(0, column - kReach), last = std::min(columns - 1, column + kReach),
              width = last - first + 1;
    std::vector<int> sums(width), next(width);
    for (int i = 0; i < width; ++i) sums[i] = cost_on_cpu(first + i);
    for (size_t row = 1; row <= kReach; ++row) {
        for (int i = 0; i < width; ++i) {
            const int best =
                *std::min_element(sums.begin() + std::max(0, i - 1), sums.begin() + std::min(width, i + 2));
            next[i] = best + cost_on_cpu(row * columns + first + i);
        }
        sums.swap(next);
    }
    return sums[column - first];
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "pathfinder", "cheapest ways through a grid");
    const int columns =
        options.scaled(options.pick(1500, 12'800'000, 128'000'000), 4);  // fill makes four at a time
    const size_t cells = static_cast<size_t>(columns) * (1 + kRows * kLaunches);
    example::DeviceArray<unsigned char> costs(cells);
    example::DeviceArray<int> start(columns), middle(columns), end(columns);
    const auto fours = static_cast<uint32_t>(cells / 4);
    fill<<<example::blocks_for(fours, kThreads), kThreads>>>(reinterpret_cast<uchar4*>(costs.data()), fours);
    take_first_row<<<example::blocks_for(columns, kThreads), kThreads>>>(costs.data(), start.data(), columns);

    const unsigned blocks = example::blocks_for(columns, kUseful);
    example::Timer timer("advance", advance);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap()) {
        advance<<<blocks, kThreads>>>(costs.data(), start.data(), middle.data(), columns, 1);
        advance<<<blocks, kThreads>>>(costs.data(), middle.data(), end.data(), columns, 1 + kRows);
    }
    timer.stop(kLaunches * options.iterations);

    example::Report report;
    report.check("columns", end, 4096,
                 [&](size_t i, int sum) { return sum == sum_on_cpu(columns, static_cast<int>(i)); });
    report.fold(end);
    return report.finish(timer);
}
