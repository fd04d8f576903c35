//!
// The host's side is left out: functions, constants, includes, and the functions of classes that only it uses.
#include <cstdio>
#include <map>
#include <string>
#include <vector>
constexpr int kUsed = 3, kBeside = 4;
constexpr int kUnused = 5;
const std::vector<int> kTable = {1, 2, 3};
struct Unused { int a; };

class Matrix {
public:
    Matrix(int rows, int columns) : rows_(rows), columns_(columns), data_(nullptr) {}
    explicit Matrix(const std::string& file);
    __host__ __device__ Matrix(const Matrix& other) : rows_(other.rows_), columns_(other.columns_), data_(other.data_) {}
    ~Matrix() { std::printf("gone\n"); }
    __host__ __device__ int rows() const { return rows_; }
    int columns() const { return columns_; }
    void print(std::vector<std::string>& names) const { names.push_back("matrix"); }
    __device__ float& at(int row, int column) { return data_[row * columns_ + column]; }
    __device__ float unused() const { return data_[0]; }
    template <class T> T as() const;

private:
    int rows_, columns_;
    float* data_;
};

Matrix::Matrix(const std::string&) : Matrix(1, 1) {}
__host__ __device__ int helper(int a) { return a * kUsed; }
__device__ int unused_helper(int a) { return helper(a); }
__global__ void scale(Matrix matrix, float by) {
    for (int column = 0; column < helper(2); ++column) matrix.at(static_cast<int>(blockIdx.x), column) *= by * matrix.rows();
}
int main() {
    std::map<std::string, int> names;
    scale<<<1, 1>>>(Matrix(1, 2), 3.f);
    return kUnused + kTable[0];
}
