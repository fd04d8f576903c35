#!/usr/bin/env bash
# From a fresh checkout on Debian 12 to a built, shown or tested smt.
#
#   ./bootstrap.sh build           what is missing is installed, then the default preset is built, in a fresh
#                                  folder without tests
#   ./bootstrap.sh demo            build, then two programs side by side and what the server saw
#   ./bootstrap.sh test [--all]    build, then every test that needs no GPU, most unit tests and the fuzz
#                                  targets under the address sanitizer only; --all: every test without, and
#                                  all of them with address and thread sanitizers
#   ./bootstrap.sh tidy [FILE ...] clang-tidy on these files of C++, or on all: CI does it for what changed
#                                  (tools/tidy.py)
#   ./bootstrap.sh fuzz [SECONDS]  the fuzz targets with libFuzzer, guided by coverage, for so long each (60)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly PACKAGES=(g++ cmake ninja-build python3 python3-pip pkg-config libfmt-dev liblz4-dev libzstd-dev
                  libssl-dev catch2 ccache binutils libeigen3-dev libsqlite3-dev nlohmann-json3-dev
                  libtomlplusplus-dev libmicrohttpd-dev)
# What the rewriter is built with, libFuzzer, the looks of the sources, and defects in them.
readonly LLVM_PACKAGES=(clang-22 libclang-22-dev llvm-22-dev libclang-rt-22-dev clang-format-22
                        clang-tidy-22)
readonly CUDA_WHEELS=(nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-nvrtc
                      nvidia-nvjitlink nvidia-cuda-cccl nvidia-cuda-cupti)
readonly PTX_COMPILER_WHEEL=nvidia-nvptxcompiler   # a static library, which not all toolkits have
readonly CUDA_VERSION=13.0
readonly WHEEL_ROOT=build/cuda/nvidia/cu13
# A cluster of one node for tests, and what the plugin is compiled with.
readonly SLURM_PACKAGES=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins libslurm-dev libhwloc15)
readonly TIDY_SECONDS=60   # that CI gives clang-tidy
# What ccache does not have is compiled at once, not preprocessed first, which takes an eighth of the time.
export CCACHE_DEPEND=1

say() { printf '== %s\n' "$*"; }
fail() { printf 'bootstrap.sh: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0"; }

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "need root for: $* (no sudo here; run it as root, then start again)"
    fi
}

missing_of() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            printf '%s\n' "$package"
    done
}

install_packages() {
    command -v dpkg-query >/dev/null || { check_tools; return; }
    local missing=() llvm=()
    mapfile -t missing < <(missing_of "${PACKAGES[@]}")
    mapfile -t llvm < <(missing_of "${LLVM_PACKAGES[@]}")
    (( ${#missing[@]} + ${#llvm[@]} )) || return 0
    say "installing ${missing[*]} ${llvm[*]}"
    as_root apt-get update -qq || fail "apt-get update failed; is this machine on the network?"
    if (( ${#llvm[@]} )) && ! apt-cache show "${llvm[@]}" >/dev/null 2>&1; then
        say "WARNING: this system's package lists have no ${llvm[*]} (Debian 12's security archive does)."
        say "WARNING: going on without: the kernel rewriter, the preset fuzz, clang-format and clang-tidy"
        say "WARNING: need them."
        llvm=()
    fi
    (( ${#missing[@]} + ${#llvm[@]} )) || return 0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" "${llvm[@]}" >/dev/null || fail "apt-get install ${missing[*]} ${llvm[*]} failed"
}

check_tools() {
    local tool
    for tool in g++ cmake ninja python3; do
        command -v "$tool" >/dev/null ||
            fail "$tool is missing, and this is not a Debian system: install it yourself"
    done
    say "WARNING: not a Debian system: packages are not checked (${PACKAGES[*]} ${LLVM_PACKAGES[*]})"
}

# The same places, in the same order, as cmake/CudaToolkit.cmake.
find_toolkit() {
    local root nvcc=""
    nvcc=$(command -v nvcc || true)
    [[ -z $nvcc ]] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    for root in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-13* "$nvcc" "$WHEEL_ROOT"; do
        [[ -n $root && -f $root/include/cudaTypedefs.h && -x $root/bin/nvcc ]] || continue
        (( $(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$root/include/cuda.h") >= 13000 )) || continue
        printf '%s\n' "$root"
        return 0
    done
    return 1
}

fetch_toolkit() {
    local toolkit wheel wheels=()
    if toolkit=$(find_toolkit); then say "CUDA toolkit: $toolkit"; return; fi
    say "no CUDA $CUDA_VERSION toolkit here: fetching NVIDIA's wheels into build/cuda (about 200 MB)"
    for wheel in "${CUDA_WHEELS[@]}"; do wheels+=("$wheel==$CUDA_VERSION.*"); done
    rm -rf build/cuda
    python3 -m pip install --quiet --no-deps --only-binary :all: --disable-pip-version-check \
        --root-user-action ignore --target build/cuda "${wheels[@]}" ||
        fail "pip could not fetch ${wheels[*]}"
    # Wheels have lib/ only and no development symlinks; nvcc and the linker look for both.
    ln -sfn lib "$WHEEL_ROOT/lib64"
    local library
    for library in "$WHEEL_ROOT"/lib/lib*.so.*; do
        ln -sf "$(basename "$library")" "${library%%.so.*}.so"
    done
    chmod +x "$WHEEL_ROOT"/bin/* "$WHEEL_ROOT"/nvvm/bin/*
    find_toolkit >/dev/null ||
        fail "the wheels in build/cuda do not form a toolkit (no $WHEEL_ROOT/bin/nvcc?)"
}

# Without it smtd's driver compiles PTX, and the build says so.
fetch_ptx_compiler() {
    local toolkit=$1 place
    for place in "$toolkit"/{lib64,lib,targets/x86_64-linux/lib} build/nvptxcompiler/nvidia/cu13/lib; do
        [[ ! -f $place/libnvptxcompiler_static.a ]] || return 0
    done
    say "no nvPTXCompiler in $toolkit: fetching NVIDIA's wheel into build/nvptxcompiler (about 22 MB)"
    python3 -m pip install --quiet --no-deps --only-binary :all: --disable-pip-version-check \
        --root-user-action ignore --target build/nvptxcompiler "$PTX_COMPILER_WHEEL==$CUDA_VERSION.*" ||
        say "WARNING: pip could not fetch $PTX_COMPILER_WHEEL; going on without"
}

# fetch_debian FOLDER PROGRAM PACKAGE ...: what tests of smt beside it need. Unpacked below build/ and not
# installed, since that would start services.
fetch_debian() {
    local folder=build/$1 program=$2 package
    [[ ! -x $folder/$program ]] || return 0
    [[ ! -x /$program ]] || return 0
    say "fetching Debian's ${*:3} into $folder"
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq "${@:3}" &&
        for package in *.deb; do dpkg -x "$package" .; done && rm -- *.deb) ||
        say "WARNING: apt-get could not fetch ${*:3}: tests with $1 are left out"
}

fetch_neighbours() {
    fetch_debian prometheus usr/bin/prometheus prometheus
    fetch_debian slurm usr/sbin/slurmd-wlm "${SLURM_PACKAGES[@]}"
}

build_preset() {   # PRESET [TARGET [CMAKE_OPTION ...]]
    local preset=$1 target=${2:-all}
    say "building preset $preset, target $target"
    cmake --preset "$preset" "${@:3}" >"build/configure-$preset.log" 2>&1 ||
        { cat "build/configure-$preset.log" >&2; fail "cmake --preset $preset failed"; }
    cmake --build --preset "$preset" --target "$target" || fail "building preset $preset failed"
}

prepare() {
    mkdir -p build
    install_packages
    fetch_toolkit
    fetch_ptx_compiler "$(find_toolkit)"
}

# A fresh folder is built without tests, which are half of a build, and by unity builds; another as it was
# configured.
build() {
    prepare
    if [[ -f build/CMakeCache.txt ]]; then build_preset default
    else build_preset default all -DSMT_BUILD_TESTS=OFF -DSMT_UNITY=ON
    fi
}

# PRESET; adds it to `failed` where a test fails. A few that fail are run again with nothing beside them: one
# that does not pass then fails the run. One that passes is a finding all the same: report_failures names it.
test_preset() {
    local first=$PWD/build/tests-$1.xml again=$PWD/build/tests-$1-again.xml
    say "testing preset $1"
    rm -f "$first" "$again"
    reports+=("$first")
    ctest --preset "$1" --output-junit "$first" && return
    if [[ -f $first ]] && tests/failed_tests.py --run-again "$first"; then
        say "testing again what failed, one at a time"
        ctest --preset "$1" --rerun-failed --parallel 1 --output-junit "$again" || true
        if tests/failed_tests.py "$first" "$again" >/dev/null; then
            doubtful+=("$1")
            return
        fi
    fi
    failed+=("$1")
}

# At the end of a long log, what was skipped, what failed and what it printed.
report_failures() {
    local report
    for report in "${reports[@]}"; do
        [[ ! -f $report ]] || tests/failed_tests.py "$report" "${report%.xml}-again.xml" || true
    done
}

# What changed, by tools/tidy.py's rule. What there was no time for is named, and counts as not checked.
check_changes() {
    local status=0
    say "clang-tidy on what changed, for about $TIDY_SECONDS s"
    tools/tidy.py --changed --seconds "$TIDY_SECONDS" || status=$?
    case $status in
        0) ;;
        1) failed+=(clang-tidy) ;;
        *) say "WARNING: clang-tidy has checked nothing" ;;
    esac
}

# Without --all the tests that are built with sanitizers are built and run so alone; each fuzz target for
# 12 s, with --all for a minute (SMT_FUZZ_SECONDS). A unity build hides a missing #include; --all compiles
# file by file with sanitizers.
run_tests() {
    local preset failed=() doubtful=() reports=() compiler=()
    # What a checkout in another folder compiled is found. A debugger looks for its sources there.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
    prepare
    fetch_neighbours
    if [[ ${1:-} == --all ]]; then
        build_preset default all -DSMT_BUILD_TESTS=ON -DSMT_SKIP_SANITIZED_TESTS=OFF -DSMT_THOROUGH_TESTS=ON \
            -DSMT_UNITY=OFF "-DSMT_OPTIMISATION=-O2 -g1"
        check_changes
        test_preset default
        for preset in asan tsan; do
            build_preset "$preset"
            test_preset "$preset"
        done
    else
        build_preset default all -DSMT_BUILD_TESTS=ON -DSMT_SKIP_SANITIZED_TESTS=ON -DSMT_THOROUGH_TESTS=OFF \
            -DSMT_UNITY=ON -DSMT_OPTIMISATION=-O2
        check_changes
        test_preset ci
        command -v clang++-22 >/dev/null || compiler=(-DCMAKE_CXX_COMPILER=c++)
        build_preset ci-sanitized sanitized "${compiler[@]}"
        test_preset ci-sanitized
    fi
    report_failures
    (( ${#failed[@]} == 0 )) || fail "failed: ${failed[*]}"
    (( ${#doubtful[@]} == 0 )) || say "WARNING: some passed only when they ran again alone; see above"
    say "all tests passed; those with label gpu were left out (ctest --preset gpu runs them)"
}

run_tidy() {   # [FILE ...]
    prepare
    command -v clang-tidy-22 >/dev/null || fail "clang-tidy-22 is missing"
    build_preset default generated_headers -DSMT_BUILD_TESTS=ON
    if (( $# )); then tools/tidy.py -- "$@"
    else tools/tidy.py --all
    fi
}

run_fuzzers() {
    prepare
    command -v clang++-22 >/dev/null || fail "clang++-22 is missing: libFuzzer comes with it"
    build_preset fuzz fuzzers "-DSMT_FUZZ_SECONDS=$1"
    ctest --preset fuzz ||
        fail "a fuzz target failed; the input is in build/fuzz; once mended it belongs into tests/fuzz/corpus"
    say "no finding; inputs that reach more are in build/fuzz/found"
}

main() {
    case "${1:-}" in
        build)
            (( $# == 1 )) || fail "build takes no options"
            build
            say "built: build/bin/smt, build/bin/smtd, build/lib/libsmt.so" ;;
        demo) (( $# == 1 )) || fail "demo takes no options"; build; tools/demo.sh build ;;
        test)
            [[ $# == 1 || ( $# == 2 && $2 == --all ) ]] || fail "test takes --all or nothing, not '${*:2}'"
            run_tests "${2:-}" ;;
        fuzz)
            [[ $# == 1 || ( $# == 2 && $2 =~ ^[1-9][0-9]*$ ) ]] ||
                fail "fuzz takes a number of seconds or nothing, not '${*:2}'"
            run_fuzzers "${2:-60}" ;;
        tidy) run_tidy "${@:2}" ;;
        -h|--help|help) usage ;;
        "") usage >&2; fail "what shall I do? build, demo, test, tidy or fuzz" ;;
        *) usage >&2; fail "unknown command '$1': it is build, demo, test, tidy or fuzz" ;;
    esac
}

main "$@"
