// Every environment variable that smt reads: name, type, range, default, who reads it.
// Nothing else in the tree calls getenv with a name that is not declared here.
#pragma once

namespace smt::environment {

// Directory of sockets, locks, logs and journals. Absolute path.
// Default: /tmp/smt-<uid> (runtime_folder.h). Must be ours, with mode 0700. Client, server, tools.
inline constexpr const char* kRuntimeDir = "SMT_RUNTIME_DIR";

// The server's program. Path. Default: <directory of libsmt.so>/../bin/smtd. Client.
inline constexpr const char* kServer = "SMT_SERVER";

// Which device the server opens. "gpu": the CUDA driver's; "sim": the simulated one. Default: gpu where there
// is one, else sim. Client (which server to ask), server, tools.
inline constexpr const char* kDevice = "SMT_DEVICE";
inline constexpr const char* kDeviceSimulated = "sim";
inline constexpr const char* kDeviceGpu = "gpu";
inline constexpr const char* kSimulatedKey = "simulated";   // names its server's files

// The simulated device's multiprocessors. 1 to 256. Default: 8. Server.
inline constexpr const char* kSimMultiprocessors = "SMT_SIM_SMS";
inline constexpr long kSimMultiprocessorsDefault = 8;
inline constexpr long kSimMultiprocessorsMax = 256;

// Its memory. Bytes, with an optional K, M, G or T; 2M to 1T. Default: 8G. Server.
inline constexpr const char* kSimMemory = "SMT_SIM_MEMORY";
inline constexpr unsigned long kSimMemoryDefault = 8ul << 30;
inline constexpr unsigned long kSimMemoryLeast = 2ul << 20;
inline constexpr unsigned long kSimMemoryMost = 1ul << 40;

// Warp-instructions after which it ends a launch as one that never would. 0: never. Default: 2000000000. Server.
inline constexpr const char* kSimStepLimit = "SMT_SIM_STEP_LIMIT";
inline constexpr unsigned long kSimStepLimitDefault = 2'000'000'000;

// How long its clock waits, in real milliseconds, for a program that neither submits work nor waits for any.
// 1 to 60000. Default: 100. Longer: programs that compute between their calls keep the same virtual times in
// every run. Server.
inline constexpr const char* kSimGrace = "SMT_SIM_GRACE_MS";
inline constexpr long kSimGraceDefault = 100;
inline constexpr long kSimGraceMax = 60'000;

// Sessions that must be there before its clock starts. 0 to 64. Default: 0. Server.
inline constexpr const char* kSimTenants = "SMT_SIM_TENANTS";
inline constexpr long kSimTenantsMax = 64;

// Which clock the dispatcher and the policies go by on it. 1: the device's own, which stands while they are at work. 0: the host's, which has nothing to do
// with it. Default: 0. With 1 a policy's times, gaps and epochs pass as fast as the kernels they are for. Server.
inline constexpr const char* kSimDispatchClock = "SMT_SIM_DISPATCH_CLOCK";

// Whether it loads code as CUDA's driver does: when all that was enqueued before is over, and what is enqueued behind begins after it. 0 or 1. Default: 0, then
// programs disturb each other by nothing but their work. Server.
inline constexpr const char* kSimLoadsWait = "SMT_SIM_LOADS_WAIT";

// Where it writes down what each kernel's first launch executes (runtime/device/simulated/driver/streams.h). A folder. Default: nowhere. Server.
inline constexpr const char* kSimStreams = "SMT_SIM_STREAMS";

// The driver the server loads. Path. Default: libcuda.so.1 as the loader finds it. Server.
inline constexpr const char* kDriver = "SMT_DRIVER";

// The real driver in the client's process. Path, or "none". Default: the usual directories. Client.
inline constexpr const char* kRealDriver = "SMT_REAL_DRIVER";

// What a client does without a server. "error" or "native". Default: error. Client.
inline constexpr const char* kFallback = "SMT_FALLBACK";

// The tenant's name. Text, at most 63 bytes. Default: the program's name. Client.
inline constexpr const char* kTenant = "SMT_TENANT";

// Device memory the tenant may hold. Bytes, with an optional K, M, G or T; 0: the device's.
// Default: 0. Client; the server enforces it.
inline constexpr const char* kMemoryLimit = "SMT_MEMORY_LIMIT";

// Host memory that the server may hold for one tenant: pinned and managed memory, and images on their way to the driver.
// Bytes, with an optional K, M, G or T; 0: no limit. Default: half of the machine's. Server.
inline constexpr const char* kHostMemory = "SMT_HOST_MEMORY";

// The tenant's priority. Whole number, 0 is normal and more is more urgent; or high (1), normal (0), low (-1).
// Default: 0. Client.
inline constexpr const char* kPriority = "SMT_PRIORITY";

// The tenant's share beside others, where the policy goes by shares (fair): a number from 0.001 to 1000, with at most three
// decimals. Default: 1. Client.
inline constexpr const char* kWeight = "SMT_WEIGHT";

// Multiprocessors that the tenant's kernels are confined to: at least so many, as few as the device makes
// of that. 1 to 4096; 0: all. Default: 0. Client.
inline constexpr const char* kMultiprocessors = "SMT_SMS";
inline constexpr unsigned kMultiprocessorsMax = 4096;

// A seed, 1 to 4294967295: managed kernels are stopped, moved, resized and sliced at random, to show that
// results do not depend on it. From 2147483648 on they are only stopped, as often as possible; from 3221225472 on they run with
// one table of quotas after the other, and with SMT_MAPPING=1 `smt log` says if workers kept to them. 0 or unset: they are
// left alone. Client.
inline constexpr const char* kStress = "SMT_STRESS";

// How tenants share the GPU, until `smt policy set` says otherwise: priority (default; between tenants of one priority as
// the hardware does), priority-whole, fifo, greedy, hpf, hpf-whole, fair, compact, slice or slice-paper: docs/policies.md. Server; `smt run` and `smt server start` refuse, too.
inline constexpr const char* kPolicy = "SMT_POLICY";
inline constexpr const char* kPolicyDefault = "priority";

// Where every decision of the policy is recorded, with what it saw, for `smt replay`. Absolute path; the file is made
// anew by each server and ends when it is kRecordMost bytes long, which the journal says. Default: nowhere. Server.
inline constexpr const char* kRecord = "SMT_RECORD";
inline constexpr unsigned long kRecordMost = 256ul << 20;

// Whether the workers of managed kernels write down where they ran, for `smt log --mapping`. 0 or 1.
// Default: 0. Server.
inline constexpr const char* kMapping = "SMT_MAPPING";

// How much of the GPU's time a stream's managed launches may be ahead of it; later ones follow as it gets on (runtime/dispatch/ahead.h).
// Milliseconds, 0 to 10000; 0: without end. Default: 10, on a simulated device 0. Server.
inline constexpr const char* kAhead = "SMT_AHEAD_MS";
inline constexpr unsigned long kAheadDefault = 10;
inline constexpr unsigned long kAheadMax = 10000;

// Seconds that a stream of one program may wait for a value or a host function while it holds up another program's calls, such as
// the load of a kernel (runtime/device/cuda/context_wide.h); then that session is ended. 1 to 86400. Default: 10. Server.
inline constexpr const char* kWaitSeconds = "SMT_WAIT_SECONDS";
inline constexpr unsigned long kWaitSecondsDefault = 10;
inline constexpr unsigned long kWaitSecondsMax = 86400;

// Seconds without a session after which the server leaves. 0 to 86400; 0: it never leaves.
// Default: 60. Server.
inline constexpr const char* kIdleSeconds = "SMT_IDLE_SECONDS";
inline constexpr long kIdleSecondsDefault = 60;
inline constexpr long kIdleSecondsMax = 86400;

// Lanes that one session has at once: its threads that use CUDA, each of which is a thread of the server. 1 to 65535. Default:
// 1024. Server.
inline constexpr const char* kSessionLanes = "SMT_SESSION_LANES";
inline constexpr unsigned kSessionLanesDefault = 1024;
inline constexpr unsigned kSessionLanesMax = 65535;

// Streams that one session has at once, those included that were destroyed and still have work. 1 to 65536. Default: 4096. Server.
inline constexpr const char* kSessionStreams = "SMT_SESSION_STREAMS";
inline constexpr unsigned kSessionStreamsDefault = 4096;
inline constexpr unsigned kSessionStreamsMax = 65536;

// Whether the driver dumps the GPU's state at a fault, by which the log names the faulting kernel. 0 or 1. Default: 1 for a server that
// starts within an hour of another one's fault, else 0 (runtime/device/cuda/core_dump_file.h: what it changes). Server.
inline constexpr const char* kCoreDump = "SMT_CORE_DUMP";
inline constexpr const char* kCudaCoreDump = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";   // CUDA's own: where it is set, smt changes nothing

// Record when each kernel ran on the GPU. 0 or 1. Default: 0 (it costs events). Server.
inline constexpr const char* kJournalTimes = "SMT_JOURNAL_TIMES";

// Whether each function that smt does not do, of the driver or of our CUDA runtime, is named on stderr at its first call. 0 or 1.
// Default: 0 (`smt log` lists them). Client.
inline constexpr const char* kReportUnsupported = "SMT_REPORT_UNSUPPORTED";

// Whether the source that a program gives to NVRTC is shown to the server. 0 or 1. Default: 1. Client.
inline constexpr const char* kCapture = "SMT_CAPTURE";

// The compile worker's program. Path. Default: smt-compile beside smtd. Server.
inline constexpr const char* kCompiler = "SMT_COMPILER";

// How many of them compile at once; of two or more one tenant has all but one at most. 1 to 64. Default: half of the
// cores, 2 at least and 8 at most. Server.
inline constexpr const char* kCompileWorkers = "SMT_COMPILE_WORKERS";
inline constexpr unsigned long kCompileWorkersDefaultMost = 8;
inline constexpr unsigned long kCompileWorkersMax = 64;

// Seconds that a worker may take for one source. 1 to 3600. Default: 60. Server.
inline constexpr const char* kCompileSeconds = "SMT_COMPILE_SECONDS";
inline constexpr long kCompileSecondsDefault = 60;
inline constexpr long kCompileSecondsMax = 3600;

// Its address space. Bytes, with an optional K, M, G or T; 0: no limit. Default: 4G. Server.
inline constexpr const char* kCompileMemory = "SMT_COMPILE_MEMORY";
inline constexpr unsigned long kCompileMemoryDefault = 4ul << 30;

// Seconds that the load of an image waits for its source's compile, which began when the program took the image
// out of NVRTC; and three times as long for all loads of a program together. 0 to 600. Default: 10. Server.
inline constexpr const char* kCompileWait = "SMT_COMPILE_WAIT";
inline constexpr long kCompileWaitDefault = 10;
inline constexpr long kCompileWaitMax = 600;

// What compiles PTX for a GPU and links: "worker", or "driver": the driver, in the server's process. Default: worker, where smt
// was built with nvPTXCompiler (smt doctor says so), else driver. Server.
inline constexpr const char* kPtxCompiler = "SMT_PTX_COMPILER";
inline constexpr const char* kPtxCompilerWorker = "worker";
inline constexpr const char* kPtxCompilerDriver = "driver";

// Whether an image whose source is not known is managed by its PTX. 0 or 1. Default: 1. Server.
inline constexpr const char* kPtx = "SMT_PTX";

// An image with more PTX than this stays as it is: the driver compiles a managed image when it is loaded, at a
// megabyte or two a second. Bytes, with an optional K, M, G or T; 0 to 256M. Default: 2M. Server.
inline constexpr const char* kPtxSize = "SMT_PTX_SIZE";
inline constexpr unsigned long kPtxSizeDefault = 2ul << 20;
inline constexpr unsigned long kPtxSizeMax = 256ul << 20;

// The NVRTC that the worker loads. Path. Default: libnvrtc.so.13 in $CUDA_HOME, in the toolkit that smt was built
// with, in /usr/local/cuda, or as the loader finds it. Worker.
inline constexpr const char* kNvrtc = "SMT_NVRTC";

// The nvJitLink that the worker loads, which tells how many registers managed kernels would have. Path. Default:
// libnvJitLink.so.13 in the same places. Without one they are held to those of the program's machine code. Worker.
inline constexpr const char* kNvJitLink = "SMT_NVJITLINK";

// Where what the worker made is kept, and in its folder `index` what smt index found. Path. Default: $XDG_CACHE_HOME/smt, else $HOME/.cache/smt. Server, tools.
inline constexpr const char* kCacheDir = "SMT_CACHE_DIR";

// How much of it. Bytes, with an optional K, M, G or T; 0: nothing. Default: 1G. Server.
inline constexpr const char* kCacheSize = "SMT_CACHE_SIZE";
inline constexpr unsigned long kCacheSizeDefault = 1ul << 30;

// Where profiles of kernels are kept: an SQLite file (profiler/store/README.md). Path, or "none": nothing is kept, and none is
// looked up. Default: profiles.db in kCacheDir's folder. Server, tools.
inline constexpr const char* kProfiles = "SMT_PROFILES";
inline constexpr const char* kProfilesNone = "none";

// What a server measures of every kernel that it runs: "times", "counters", "sweep", "halves" or "pairs" (runtime/server/measuring.h). `smt profile` sets it for servers of
// its own; the programs of such a server are slower. Default: nothing. Server.
inline constexpr const char* kProfile = "SMT_PROFILE";

// The CUPTI that is opened when somebody measures. Path. Default: libcupti.so.13 where profiler/collect/cupti/library.h says. Server.
inline constexpr const char* kCupti = "SMT_CUPTI";

// Those that say something about one program; a server does not get them. All others of ours are the server's, too.
inline constexpr const char* kProgramVariables[] = {kServer,  kRealDriver,     kFallback, kTenant,           kMemoryLimit, kPriority,
                                                    kWeight, kMultiprocessors, kStress,   kReportUnsupported, kCapture};

// How a server works, by its own environment: what a program's says of these counts when that program starts the server, and
// `smt run` says so where it differs from what the running server has. With the default, as text; empty: it is a folder or a file.
struct ServerSetting {
    const char* name;
    const char* otherwise;
};
inline constexpr ServerSetting kServerSettings[] = {
    {kPolicy, kPolicyDefault}, {kMapping, "0"},         {kAhead, ""},          {kIdleSeconds, "60"},   {kSessionLanes, "1024"}, {kSessionStreams, "4096"},
    {kJournalTimes, "0"},      {kRecord, ""},           {kCompiler, ""},       {kCompileWorkers, ""},  {kCompileSeconds, "60"}, {kCompileMemory, "4G"},
    {kCompileWait, "10"},      {kPtx, "1"},             {kPtxSize, "2M"},      {kNvrtc, ""},           {kNvJitLink, ""},        {kCacheDir, ""},
    {kCacheSize, "1G"},        {kProfiles, ""},         {kProfile, ""},        {kCupti, ""},           {kDriver, ""},           {kSimMultiprocessors, "8"},
    {kSimMemory, "8G"},        {kSimStepLimit, "2000000000"}, {kSimGrace, "100"}, {kSimTenants, "0"}, {kSimDispatchClock, "0"}, {kSimLoadsWait, "0"},
    {kSimStreams, ""}};

// Not ours, read for the defaults above.
inline constexpr const char* kXdgCacheHome = "XDG_CACHE_HOME";
inline constexpr const char* kHome = "HOME";

// Not ours: what the command `smt` and the server read, or set for the programs they start or examine.
inline constexpr const char* kPreload = "LD_PRELOAD";
inline constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";
inline constexpr const char* kPath = "PATH";
inline constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* kCudaHome = "CUDA_HOME";
inline constexpr const char* kVirtualEnv = "VIRTUAL_ENV";

}  // namespace smt::environment
