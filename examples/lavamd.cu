// Molecular dynamics in boxes: every particle feels all particles of its own box and of the boxes around it.
//
// A block computes one box. It brings the neighbouring boxes into shared memory one after the other, the next
// while it works on one, and each of its threads sums what the particles there do to its own. Two charges at
// a distance r have the energy q * exp(-a2 * r^2). In double precision.
#include "example.h"

constexpr int kThreads = 128, kPerBox = 100;
constexpr double kA2 = 0.5;

struct Particle {
    double x, y, z, charge;  // within its box: the box's edge is 1
};

struct Effect {
    double energy, x, y, z;
};

// Adds what `other`, whose box lies (dx, dy, dz) boxes away, does to `own`.
__host__ __device__ void add_effect(Effect& effect, const Particle& own, const Particle& other, int dx,
                                    int dy, int dz) {
    const double x = own.x - (other.x + dx), y = own.y - (other.y + dy), z = own.z - (other.z + dz);
    const double distance2 = fma(x, x, fma(y, y, z * z));
    const double energy = other.charge * exp(-kA2 * distance2), force = 2 * kA2 * energy;
    effect.energy += energy;
    effect.x = fma(force, x, effect.x);
    effect.y = fma(force, y, effect.y);
    effect.z = fma(force, z, effect.z);
}

struct Neighbour {
    int box, dx, dy, dz;
};

__global__ void __launch_bounds__(kThreads) sum_effects(const Particle* particles, Effect* effects) {
    __shared__ Particle others[2][kPerBox];
    __shared__ Neighbour neighbours[27];
    __shared__ int count;
    const int thread = threadIdx.x;
    const bool has_particle = thread < kPerBox;
    if (thread == 0) {
        count = 0;
        for (int n = 0; n < 27; ++n) {
            const int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = n / 9 - 1;
            const unsigned x = blockIdx.x + dx, y = blockIdx.y + dy,
                           z = blockIdx.z + dz;  // below 0: very large
            if (x >= gridDim.x || y >= gridDim.y || z >= gridDim.z) continue;
            neighbours[count++] = {static_cast<int>((z * gridDim.y + y) * gridDim.x + x), dx, dy, dz};
        }
    }
    __syncthreads();
    auto fetch = [&](int n) {
        if (n < count && has_particle)
            others[n % 2][thread] = particles[neighbours[n].box * kPerBox + thread];
    };
    const int own_index = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * kPerBox + thread;
    Particle own = {};
    if (has_particle) own = particles[own_index];
    Effect effect = {};
    fetch(0);
    for (int n = 0; n < count; ++n) {
        __syncthreads();  // box n is there, and no thread reads box n - 1 any more
        fetch(n + 1);
        const Neighbour& neighbour = neighbours[n];
        if (!has_particle) continue;
        for (const Particle& other : others[n % 2])
            add_effect(effect, own, other, neighbour.dx, neighbour.dy, neighbour.dz);
    }
    if (has_particle) effects[own_index] = effect;
}

Effect effect_on_cpu(const std::vector<Particle>& particles, const dim3& boxes, size_t index) {
    const int box = static_cast<int>(index / kPerBox), nx = boxes.x, ny = boxes.y, nz = boxes.z;
    const int x = box % nx, y = box / nx % ny, z = box / (nx * ny);
    Effect effect = {};
    for (int dz = -1; dz <= 1; ++dz)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
                if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz)
                    continue;
                const size_t first =
                    (static_cast<size_t>(z + dz) * ny * nx + (y + dy) * nx + x + dx) * kPerBox;
                for (int i = 0; i < kPerBox; ++i)
                    add_effect(effect, particles[index], particles[first + i], dx, dy, dz);
            }
    return effect;
}

bool near(double a, double b) { return std::fabs(a - b) <= 1e-9 * (1 + std::fabs(b)); }

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "lavamd", "forces between the particles of neighbouring boxes");
    dim3 boxes = options.pick(dim3(4, 1, 1), dim3(9, 9, 9), dim3(20, 20, 20));
    boxes.x = options.scaled(boxes.x);
    const size_t size = static_cast<size_t>(boxes.x) * boxes.y * boxes.z * kPerBox;
    std::vector<Particle> particles(size);
    example::in_parallel(size, [&](size_t i) {
        const auto index = static_cast<uint32_t>(i);
        particles[i] = {example::uniform(index, 1, 0, 1), example::uniform(index, 2, 0, 1),
                        example::uniform(index, 3, 0, 1), example::uniform(index, 4, -1, 1)};
    });
    example::DeviceArray<Particle> device_particles(particles);
    example::DeviceArray<Effect> effects(size);

    example::Timer timer("sum_effects", sum_effects);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        sum_effects<<<boxes, kThreads>>>(device_particles.data(), effects.data());
    timer.stop(options.iterations);

    example::Report report;
    report.check("particles", effects, 4096, [&](size_t i, const Effect& effect) {
        const Effect expected = effect_on_cpu(particles, boxes, i);
        return near(effect.energy, expected.energy) && near(effect.x, expected.x) &&
               near(effect.y, expected.y) && near(effect.z, expected.z);
    });
    double energy = 0, sideways = 0;
    for (const Effect& effect : effects.download()) energy += effect.energy, sideways += std::fabs(effect.x);
    report.fold_rounded(energy, 1e-3);
    report.fold_rounded(sideways, 1e-3);
    report.fingerprint(effects);
    return report.finish(timer);
}
