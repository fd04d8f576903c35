//! nvrtc -default-device
// A capture default brings the names along. A list of captures gets one more; a lambda without any has its own.
__global__ void defaults(int* a) {
    auto copy = [=](int i) { return a[i] + blockIdx.x; };
    auto reference = [&](int i) { return a[i] + gridDim.x; };
    a[0] = copy(1) + reference(2);
}

__global__ void lists(int* a) {
    auto listed = [a](int i) { return a[i] + blockIdx.x; };
    auto outer = [a, one = 1](int i) { return [&a, i] { return a[i] + blockIdx.x * gridDim.x; }() + one; };
    a[0] = listed(1) + outer(2);
}

__global__ void empty(int* a) {
    auto none = [] { return blockIdx.x; };
    auto generic = [](auto i) { return [=] { return i + gridDim.y; }(); };
    a[0] = none() + generic(2);
}

__global__ void quiet(int* a) {
    auto none = [](int i) { return i * 2; };
    a[blockIdx.x] = none(1);
}
