// Molecular dynamics: Lennard-Jones forces between atoms that are neighbours.
//
// An atom has a list of kNeighbours others that may be near enough to matter; a thread sums the forces of
// those that are. Lists are stored neighbour by neighbour, so that the threads of a warp read them together;
// where the neighbours' positions lie is another matter, as the atoms of a region are numbered out of order.
#include "example.h"

constexpr int kThreads = 256, kReach = 2, kEdge = 2 * kReach + 1, kNeighbours = kEdge * kEdge * kEdge - 1;
constexpr float kCutoff2 = 2.5f * 2.5f, kFactor12 = 1.5f, kFactor6 = 2.0f;

struct Lattice {  // of atoms, with periodic edges; the number of sites is a multiple of 256
    int nx, ny, nz;
    __host__ __device__ int sites() const { return nx * ny * nz; }
};

// Sites and atoms number the same things; within 256 sites in a row, atoms have another order (77 * 133 is 1
// more than a multiple of 256, so that the two are inverse).
__host__ __device__ int atom_at(int site) { return (site & ~255) | (site * 77 & 255); }
__host__ __device__ int site_of(int atom) { return (atom & ~255) | (atom * 133 & 255); }

__host__ __device__ float4 position_of(const Lattice& lattice, int atom) {
    const int site = site_of(atom), x = site % lattice.nx, y = site / lattice.nx % lattice.ny,
              z = site / (lattice.nx * lattice.ny);
    auto near = [&](int place, uint32_t seed) {
        return static_cast<float>(place) + example::uniform(site, seed, -0.2f, 0.2f);
    };
    return make_float4(near(x, 1), near(y, 2), near(z, 3), 0);
}

// The n-th of an atom's neighbours: all sites at most kReach away, less its own.
__host__ __device__ int neighbour_of(const Lattice& lattice, int atom, int n) {
    const int site = site_of(atom), place = n < kNeighbours / 2 ? n : n + 1;
    auto wrapped = [](int at, int size) { return at < 0 ? at + size : at < size ? at : at - size; };
    const int x = wrapped(site % lattice.nx + place % kEdge - kReach, lattice.nx);
    const int y = wrapped(site / lattice.nx % lattice.ny + place / kEdge % kEdge - kReach, lattice.ny);
    const int z = wrapped(site / (lattice.nx * lattice.ny) + place / (kEdge * kEdge) - kReach, lattice.nz);
    return atom_at((z * lattice.ny + y) * lattice.nx + x);
}

__host__ __device__ float nearest(float difference, float size) {  // across the edge, if that is shorter
    return difference > 0.5f * size    ? difference - size
           : difference < -0.5f * size ? difference + size
                                       : difference;
}

__host__ __device__ void add_force(float4& force, const float4& own, const float4& other,
                                   const Lattice& lattice) {
    const float x = nearest(own.x - other.x, static_cast<float>(lattice.nx));
    const float y = nearest(own.y - other.y, static_cast<float>(lattice.ny));
    const float z = nearest(own.z - other.z, static_cast<float>(lattice.nz));
    const float distance2 = fmaf(x, x, fmaf(y, y, z * z));
    if (distance2 >= kCutoff2) return;
    const float inverse2 = 1 / distance2, inverse6 = inverse2 * inverse2 * inverse2;
    const float strength = inverse2 * inverse6 * fmaf(kFactor12, inverse6, -kFactor6);
    force.x = fmaf(x, strength, force.x);
    force.y = fmaf(y, strength, force.y);
    force.z = fmaf(z, strength, force.z);
}

__global__ void fill(float4* positions, int* neighbours, Lattice lattice) {
    const int atom = blockIdx.x * blockDim.x + threadIdx.x;
    if (atom >= lattice.sites()) return;
    positions[atom] = position_of(lattice, atom);
    for (int n = 0; n < kNeighbours; ++n)
        neighbours[static_cast<size_t>(n) * lattice.sites() + atom] = neighbour_of(lattice, atom, n);
}

__global__ void __launch_bounds__(kThreads)
    sum_forces(const float4* positions, const int* neighbours, float4* forces, Lattice lattice) {
    const int atom = blockIdx.x * blockDim.x + threadIdx.x;
    if (atom >= lattice.sites()) return;
    const float4 own = positions[atom];
    float4 force = make_float4(0, 0, 0, 0);
    for (int n = 0; n < kNeighbours; ++n)
        add_force(force, own, positions[neighbours[static_cast<size_t>(n) * lattice.sites() + atom]],
                  lattice);
    forces[atom] = force;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "molecular_dynamics", "Lennard-Jones forces between neighbours");
    Lattice lattice = options.pick(Lattice{8, 8, 8}, Lattice{128, 128, 160}, Lattice{256, 256, 384});
    lattice.nz = options.scaled(lattice.nz, 4);  // also wider than kReach: no atom is its own neighbour
    const int atoms = lattice.sites();
    const unsigned blocks = example::blocks_for(atoms, kThreads);
    example::DeviceArray<float4> positions(atoms), forces(atoms);
    example::DeviceArray<int> neighbours(static_cast<size_t>(kNeighbours) * atoms);
    fill<<<blocks, kThreads>>>(positions.data(), neighbours.data(), lattice);

    example::Timer timer("sum_forces", sum_forces);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        sum_forces<<<blocks, kThreads>>>(positions.data(), neighbours.data(), forces.data(), lattice);
    timer.stop(options.iterations);

    example::Report report;
    report.check("forces", forces, 1 << 14, [&](size_t i, const float4& force) {
        const int atom = static_cast<int>(i);
        float4 expected = make_float4(0, 0, 0, 0);
        for (int n = 0; n < kNeighbours; ++n)
            add_force(expected, position_of(lattice, atom),
                      position_of(lattice, neighbour_of(lattice, atom, n)), lattice);
        return std::memcmp(&force, &expected, sizeof force) == 0;
    });
    report.fold(forces);
    return report.finish(timer);
}
