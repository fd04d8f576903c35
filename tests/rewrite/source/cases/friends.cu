//! nvrtc
// A friend's body is where the members are used: it becomes a friend as well.
class Box {
    int value = 0;
    friend __global__ void read(Box* boxes, int* a);
};
template <class T> class Pair {
    T first{}, second{};
    template <class U> friend __global__ void add(Pair<U>* pairs, U* a);
};
__global__ void read(Box* boxes, int* a) { a[blockIdx.x] = boxes[blockIdx.x].value; }
template <class U> __global__ void add(Pair<U>* pairs, U* a) {
    a[blockIdx.x] = pairs[blockIdx.x].first + pairs[blockIdx.x].second;
}
template __global__ void add<int>(Pair<int>*, int*);

// Twin: a friend that stays as it is has no body to befriend.
class Chest {
    int value = 0;
    friend __global__ void stays(Chest* chests, unsigned long long* a);
};
__global__ void stays(Chest* chests, unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); a[1] = chests->value; }
