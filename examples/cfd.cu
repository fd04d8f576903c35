// Computational fluid dynamics: one explicit step of the Euler equations on finite volumes.
//
// A cell keeps density, momentum and energy. Through each of its six faces flows what the mean of both sides
// carries, less a term that damps jumps (Rusanov's flux). Cells know their neighbours through a table, as
// unstructured meshes do; a neighbour may also be a wall or the free stream, where threads of a warp part.
#include "example.h"

constexpr int kThreads = 192, kFaces = 6;
constexpr int kWall = -1, kFreeStream = -2;
constexpr float kGamma = 1.4f, kTimeStep = 0.05f;

struct State {
    float density, x, y, z, energy;  // x, y, z: momentum
};

struct Mesh {
    int nx, ny, nz;
    __host__ __device__ int cells() const { return nx * ny * nz; }
};

__constant__ float3 normals[kFaces];
__constant__ State free_stream;
const std::vector<float3> kNormals = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
const State kFreeStreamState = {1, 0.5f, 0, 0, 2.5f};

// The mesh is a box: walls below and above, the free stream at the other sides.
__host__ __device__ int neighbour_of(const Mesh& mesh, int cell, int face) {
    const int x = cell % mesh.nx, y = cell / mesh.nx % mesh.ny, z = cell / (mesh.nx * mesh.ny);
    switch (face) {
        case 0:
            return x > 0 ? cell - 1 : kFreeStream;
        case 1:
            return x + 1 < mesh.nx ? cell + 1 : kFreeStream;
        case 2:
            return y > 0 ? cell - mesh.nx : kFreeStream;
        case 3:
            return y + 1 < mesh.ny ? cell + mesh.nx : kFreeStream;
        case 4:
            return z > 0 ? cell - mesh.nx * mesh.ny : kWall;
        default:
            return z + 1 < mesh.nz ? cell + mesh.nx * mesh.ny : kWall;
    }
}

__host__ __device__ State initial(uint32_t cell) {
    return {example::uniform(cell, 1, 0.9f, 1.1f), example::uniform(cell, 2, -0.5f, 0.5f),
            example::uniform(cell, 3, -0.5f, 0.5f), example::uniform(cell, 4, -0.5f, 0.5f),
            example::uniform(cell, 5, 2.3f, 2.7f)};
}

struct Side {                         // what a face needs to know of one side
    float across, pressure, fastest;  // speed across the face, and of the fastest wave
};

__host__ __device__ Side side_of(const State& state, const float3& normal) {
    const float inverse = 1 / state.density;
    const float momentum2 = fmaf(state.x, state.x, fmaf(state.y, state.y, state.z * state.z));
    Side side;
    side.across = fmaf(state.x, normal.x, fmaf(state.y, normal.y, state.z * normal.z)) * inverse;
    side.pressure = (kGamma - 1) * fmaf(-0.5f * momentum2, inverse, state.energy);
    side.fastest = fabsf(side.across) + sqrtf(kGamma * side.pressure * inverse);
    return side;
}

// What leaves `own` through a face.
__host__ __device__ State flux(const State& own, const State& other, const float3& normal) {
    const Side a = side_of(own, normal), b = side_of(other, normal);
    const float damping = fmaxf(a.fastest, b.fastest), pressure = a.pressure + b.pressure;
    auto mean = [&](float of_a, float of_b, float more) {
        return 0.5f * (fmaf(of_a, a.across, of_b * b.across) + more + damping * (of_a - of_b));
    };
    return {mean(own.density, other.density, 0), mean(own.x, other.x, pressure * normal.x),
            mean(own.y, other.y, pressure * normal.y), mean(own.z, other.z, pressure * normal.z),
            mean(own.energy, other.energy, fmaf(a.pressure, a.across, b.pressure * b.across))};
}

// A wall lets nothing through and pushes back.
__host__ __device__ State flux_at_wall(const State& own, const float3& normal) {
    const float pressure = side_of(own, normal).pressure;
    return {0, pressure * normal.x, pressure * normal.y, pressure * normal.z, 0};
}

__host__ __device__ void subtract(State& state, const State& flux) {
    state.density = fmaf(-kTimeStep, flux.density, state.density);
    state.x = fmaf(-kTimeStep, flux.x, state.x);
    state.y = fmaf(-kTimeStep, flux.y, state.y);
    state.z = fmaf(-kTimeStep, flux.z, state.z);
    state.energy = fmaf(-kTimeStep, flux.energy, state.energy);
}

// Tables have the cell last, so that neighbouring threads read neighbouring numbers.
__device__ State load(const float* states, int cells, int cell) {
    const size_t n = cells;
    return {states[cell], states[n + cell], states[2 * n + cell], states[3 * n + cell], states[4 * n + cell]};
}

__device__ void store(float* states, int cells, int cell, const State& state) {
    const size_t n = cells;
    states[cell] = state.density, states[n + cell] = state.x, states[2 * n + cell] = state.y;
    states[3 * n + cell] = state.z, states[4 * n + cell] = state.energy;
}

__global__ void fill(float* states, int* neighbours, Mesh mesh) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= mesh.cells()) return;
    store(states, mesh.cells(), cell, initial(cell));
    for (int face = 0; face < kFaces; ++face)
        neighbours[static_cast<size_t>(face) * mesh.cells() + cell] = neighbour_of(mesh, cell, face);
}

__global__ void __launch_bounds__(kThreads)
    advance(const float* states, const int* neighbours, float* after, int cells) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const State own = load(states, cells, cell);
    State state = own;
    for (int face = 0; face < kFaces; ++face) {
        const int neighbour = neighbours[static_cast<size_t>(face) * cells + cell];
        const float3 normal = normals[face];
        if (neighbour >= 0)
            subtract(state, flux(own, load(states, cells, neighbour), normal));
        else if (neighbour == kFreeStream)
            subtract(state, flux(own, free_stream, normal));
        else
            subtract(state, flux_at_wall(own, normal));
    }
    store(after, cells, cell, state);
}

State state_on_cpu(const Mesh& mesh, int cell) {
    const State own = initial(cell);
    State state = own;
    for (int face = 0; face < kFaces; ++face) {
        const int neighbour = neighbour_of(mesh, cell, face);
        if (neighbour == kWall)
            subtract(state, flux_at_wall(own, kNormals[face]));
        else
            subtract(state, flux(own, neighbour == kFreeStream ? kFreeStreamState : initial(neighbour),
                                 kNormals[face]));
    }
    return state;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "cfd", "one step of a finite volume scheme for gas");
    Mesh mesh = options.pick(Mesh{24, 16, 8}, Mesh{256, 256, 256}, Mesh{512, 512, 640});
    mesh.nz = options.scaled(mesh.nz);
    const int cells = mesh.cells();
    const unsigned blocks = example::blocks_for(cells, kThreads);
    CHECK(cudaMemcpyToSymbol(normals, kNormals.data(), sizeof normals));
    CHECK(cudaMemcpyToSymbol(free_stream, &kFreeStreamState, sizeof free_stream));
    example::DeviceArray<float> states(5 * static_cast<size_t>(cells)), after(states.size());
    example::DeviceArray<int> neighbours(kFaces * static_cast<size_t>(cells));
    fill<<<blocks, kThreads>>>(states.data(), neighbours.data(), mesh);

    example::Timer timer("advance", advance);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        advance<<<blocks, kThreads>>>(states.data(), neighbours.data(), after.data(), cells);
    timer.stop(options.iterations);

    example::Report report;
    report.check("numbers", after, 1 << 16, [&](size_t i, float value) {
        const State expected = state_on_cpu(mesh, static_cast<int>(i % cells));
        const float fields[] = {expected.density, expected.x, expected.y, expected.z, expected.energy};
        return value == fields[i / cells];
    });
    report.fold(after);
    return report.finish(timer);
}
