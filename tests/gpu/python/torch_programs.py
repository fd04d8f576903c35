"""PyTorch: one theme a program. Inputs are made on the host with a seed, so that they are the same
everywhere."""
import os
import threading

import program as p
from program import program, show

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
p.environment({
    "expandable_segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "expandable_segments_graph": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "malloc_async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "malloc_async_graph": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "malloc_async_statistics": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "nccl_one_rank": {"MASTER_ADDR": "127.0.0.1", "NCCL_SOCKET_IFNAME": "lo"},
    "nccl_ddp": {"MASTER_ADDR": "127.0.0.1", "NCCL_SOCKET_IFNAME": "lo"},
})
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
torch.backends.cudnn.benchmark = False
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
DEVICE = "cuda"


def gpu(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(DEVICE, dtype)


def total(tensor):
    return float(tensor.detach().double().abs().sum())


def near(name, ours, reference, tolerance=1e-3):
    error = float((ours.detach().double().cpu() - reference.detach().double().cpu()).abs().max())
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


def train(model, inputs, targets, steps=10, context=None, scaler=None, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        if context:
            with context:
                loss = F.mse_loss(model(inputs).float(), targets)
        else:
            loss = F.mse_loss(model(inputs).float(), targets)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
    return float(loss)


def small_model():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8)).to(DEVICE)


@program
def training():
    model, inputs, targets = small_model(), gpu(256, 64), gpu(256, 8)
    show("loss", round(train(model, inputs, targets, 50), 4))


@program
def optimizers():
    for name, make in {"adamw fused": lambda m: torch.optim.AdamW(m,
                                                                  fused=True),
                       "adam foreach": lambda m: torch.optim.Adam(m, foreach=True),
                       "adam capturable": lambda m: torch.optim.Adam(m,
                                                                     capturable=True),
                       "rmsprop": torch.optim.RMSprop,
                       "lbfgs-free sgd nesterov": lambda m: torch.optim.SGD(m, 0.01, momentum=0.9,
                                                                            nesterov=True)}.items():
        torch.manual_seed(3)
        model = small_model()
        show(name, round(train(model, gpu(64, 64), gpu(64, 8), 20, optimizer=make(model.parameters())), 3))


@program
def autocast_bf16():
    model, inputs, targets = small_model(), gpu(256, 64), gpu(256, 8)
    loss = train(model, inputs, targets, 30, context=torch.autocast("cuda", torch.bfloat16))
    show("loss", round(loss, 1))


@program
def autocast_fp16():
    model, inputs, targets = small_model(), gpu(256, 64), gpu(256, 8)
    loss = train(model, inputs, targets, 30, context=torch.autocast("cuda", torch.float16),
                 scaler=torch.amp.GradScaler("cuda"))
    show("loss", round(loss, 1))


@program
def compiled_model():
    model, inputs, targets = small_model(), gpu(256, 64), gpu(256, 8)
    expected = model(inputs)
    compiled = torch.compile(model)
    near("forward", compiled(inputs), expected)
    show("loss", round(train(compiled, inputs, targets, 20), 3))


@program
def compiled_graphs():
    model, inputs = small_model().eval(), gpu(256, 64)
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for i in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            near(f"run {i}", compiled(inputs + i), model(inputs + i))


@program
def compiled_dynamic():
    @torch.compile(dynamic=True)
    def fused(x, y):
        return torch.softmax(x * y + x.sin(), dim=-1).cumsum(0)
    for size in (16, 33, 70):
        x, y = gpu(size, size), gpu(size, size)
        near(f"size {size}", fused(x, y), torch.softmax(x * y + x.sin(), dim=-1).cumsum(0))


@program
def graph_capture():
    model, static, targets = small_model(), gpu(128, 64), gpu(128, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(static), targets)
        loss.backward()
        optimizer.step()
        return loss
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(20):
        graph.replay()
    show("loss", round(float(loss), 4))


@program
def graphed_callables():
    model, sample = small_model(), gpu(32, 64).requires_grad_()
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    for i in range(3):
        inputs = gpu(32, 64)
        out = graphed(inputs)
        out.sum().backward()
        show(f"round {i}", round(total(out), 2))


@program
def graph_random():
    graph, generator = torch.cuda.CUDAGraph(), torch.Generator(DEVICE).manual_seed(5)
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        values = torch.rand(1000, device=DEVICE, generator=generator)
    for i in range(3):
        graph.replay()
        show(f"replay {i}", total(values))


@program
def streams_events():
    streams, results = [torch.cuda.Stream(priority=-(i % 2)) for i in range(4)], []
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    source = gpu(512, 512)
    start.record()
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            product = source @ source
            product.record_stream(torch.cuda.current_stream())
            results.append(product)
            done = stream.record_event()
        torch.cuda.current_stream().wait_event(done)
    end.record()
    end.synchronize()
    show("time passed", start.elapsed_time(end) > 0, end.query(), all(stream.query() for stream in streams))
    show("same", all(torch.equal(results[0], one) for one in results))


@program
def threads():
    results = [None] * 6

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.full((256, 256), float(i + 1), device=DEVICE)
            for _ in range(50):
                x = (x @ x) / 256 / (i + 1)
            results[i] = float(x.sum())
    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    show("sums", *results)


@program
def sparse_csr():
    dense = (torch.rand(200, 300) > 0.9) * torch.randn(200, 300)
    right = torch.randn(300, 40)
    csr = dense.to(DEVICE).to_sparse_csr()
    near("csr @ dense", csr @ right.to(DEVICE), dense @ right)
    near("coo @ dense", torch.sparse.mm(dense.to(DEVICE).to_sparse(), right.to(DEVICE)), dense @ right)
    near("csr @ csr", (csr @ csr.to_dense().t().to_sparse_csr()).to_dense(), dense @ dense.t())
    near("sampled",
         torch.sparse.sampled_addmm(csr, gpu(200, 16), gpu(16, 300), beta=1.0, alpha=0.0).to_dense(), dense)
    show("softmax",
         round(total(torch.sparse.softmax(dense.to(DEVICE).to_sparse(), 1).coalesce().values()), 3))


@program
def sparse_bsr():
    mask = (torch.rand(16, 16) > 0.7).float().repeat_interleave(16, 0).repeat_interleave(16, 1)
    dense, right = torch.randn(256, 256) * mask, torch.randn(256, 128)
    bsr = dense.to(DEVICE).to_sparse_bsr((16, 16))
    near("bsr @ dense", bsr @ right.to(DEVICE), dense @ right)
    half = dense.to(DEVICE).half().to_sparse_bsr((16, 16))
    near("linear", F.linear(right.t().contiguous().to(DEVICE).half(), half), (right.t() @ dense.t()), 0.5)
    near("bsr @ dense, half", half @ right.to(DEVICE).half(), dense @ right, 0.5)


@program
def sparse_bsr_triton():
    from torch.sparse._triton_ops import bsr_dense_addmm, bsr_dense_mm
    mask = (torch.rand(8, 8) > 0.6).float().repeat_interleave(32, 0).repeat_interleave(32, 1)
    dense, right = torch.randn(256, 256) * mask, torch.randn(256, 256)
    bsr = dense.to(DEVICE).half().to_sparse_bsr((32, 32))
    near("mm", bsr_dense_mm(bsr, right.to(DEVICE).half()), dense @ right, 0.5)
    near("addmm", bsr_dense_addmm(torch.ones(256, 256, device=DEVICE).half(), bsr, right.to(DEVICE).half()),
         dense @ right + 1, 0.5)


@program
def sparse_2of4():
    from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
    # cuSPARSELt: CUTLASS's kernels are for compute capability 8.x
    SparseSemiStructuredTensor._FORCE_CUTLASS = False
    weights = torch.tensor([0, 0, 1, 1]).tile(128, 64).float() * torch.randn(128, 256)
    right = torch.randn(256, 128)
    packed = to_sparse_semi_structured(weights.to(DEVICE).half())
    near("dense again", packed.to_dense(), weights.half())
    near("product", packed @ right.to(DEVICE).half(), weights @ right, 0.5)
    near("linear", F.linear(right.t().contiguous().to(DEVICE).half(), packed), right.t() @ weights.t(), 0.5)


@program
def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = (gpu(2, 4, 128, 64, dtype=torch.float16) for _ in range(3))
    expected = F.scaled_dot_product_attention(q.float().cpu(), k.float().cpu(),
                                              v.float().cpu(), is_causal=True)
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
                    SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            inputs = [t.clone().requires_grad_() for t in (q, k, v)]
            out = F.scaled_dot_product_attention(*inputs, is_causal=True)
            near(backend.name, out, expected, 0.02)
            out.sum().backward()
            show("gradient", round(total(inputs[2].grad) / 1000, 1))


@program
def flex_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as flex
    q, k, v = (gpu(1, 2, 256, 64, dtype=torch.float16) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device=DEVICE)
    near("causal", torch.compile(flex)(q, k, v, block_mask=mask),
         F.scaled_dot_product_attention(q, k, v, is_causal=True), 0.02)


@program
def convolutions():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                        nn.Conv2d(16, 16, 3, groups=4, padding=1),
                        nn.MaxPool2d(2), nn.ConvTranspose2d(16, 8, 2, stride=2)).to(
                            DEVICE, memory_format=torch.channels_last)
    images = gpu(4, 3, 32, 32).to(memory_format=torch.channels_last)
    out = net(images)
    out.square().mean().backward()
    show("channels last", round(total(out) / 1000, 2), out.is_contiguous(memory_format=torch.channels_last))
    near("3d", F.conv3d(images[:, None, :3], torch.ones(1, 1, 3, 3, 3, device=DEVICE)),
         F.conv3d(images.cpu()[:, None, :3], torch.ones(1, 1, 3, 3, 3)))
    with torch.autocast("cuda", torch.bfloat16):
        show("bf16", net(images).dtype)


@program
def vision_operations():
    images, grid = gpu(2, 3, 24, 24), torch.rand(2, 16, 16, 2).to(DEVICE) * 2 - 1
    near("grid sample", F.grid_sample(images, grid, align_corners=False),
         F.grid_sample(images.cpu(), grid.cpu(), align_corners=False))
    for mode in ("nearest", "bilinear", "bicubic"):
        near(mode, F.interpolate(images, scale_factor=1.7, mode=mode),
             F.interpolate(images.cpu(), scale_factor=1.7, mode=mode))
    import torchvision
    boxes = torch.rand(200, 4).to(DEVICE) * 50
    boxes[:, 2:] += boxes[:, :2]
    scores = torch.rand(200).to(DEVICE)
    show("nms", torchvision.ops.nms(boxes, scores, 0.4).tolist() ==
         torchvision.ops.nms(boxes.cpu(), scores.cpu(), 0.4).tolist())


@program
def losses():
    logits, targets = torch.randn(50, 4, 20), torch.randint(1, 20, (4, 12))
    lengths = [torch.full((4,), 50), torch.full((4,), 12)]
    near("ctc", F.ctc_loss(logits.to(DEVICE).log_softmax(2), targets.to(DEVICE), *lengths),
         F.ctc_loss(logits.log_softmax(2), targets, *lengths))
    x, y = torch.randn(100, 20), torch.randint(0, 20, (100,))
    for name in ("cross_entropy", "nll_loss", "multi_margin_loss"):
        function = getattr(F, name)
        near(name, function(x.to(DEVICE).log_softmax(1), y.to(DEVICE)), function(x.log_softmax(1), y))


@program
def fourier():
    x = torch.randn(8, 240, dtype=torch.float64)
    near("fft", torch.view_as_real(torch.fft.fft(x.to(DEVICE))), torch.view_as_real(torch.fft.fft(x)))
    near("irfft", torch.fft.irfft(torch.fft.rfft(x.to(DEVICE)), n=240), x)
    near("2d", torch.fft.fft2(x.to(DEVICE)).abs(), torch.fft.fft2(x).abs())
    near("prime", torch.fft.fft(x[:, :239].to(DEVICE)).abs(), torch.fft.fft(x[:, :239]).abs())
    near("stft", torch.stft(x.to(DEVICE).flatten(), 64, window=torch.hann_window(
        64, dtype=torch.float64, device=DEVICE), return_complex=True).abs(),
         torch.stft(x.flatten(), 64, window=torch.hann_window(64, dtype=torch.float64),
                    return_complex=True).abs())


@program
def linear_algebra():
    a = torch.randn(60, 60, dtype=torch.float64)
    spd, b = a @ a.t() + 60 * torch.eye(60, dtype=torch.float64), torch.randn(60, 5, dtype=torch.float64)
    A, S, B = a.to(DEVICE), spd.to(DEVICE), b.to(DEVICE)
    near("cholesky", torch.linalg.cholesky(S), torch.linalg.cholesky(spd))
    near("solve", torch.linalg.solve(S, B), torch.linalg.solve(spd, b))
    near("eigh", torch.linalg.eigh(S).eigenvalues, torch.linalg.eigh(spd).eigenvalues)
    near("svd", torch.linalg.svdvals(A), torch.linalg.svdvals(a))
    near("qr", torch.linalg.qr(A).R.abs(), torch.linalg.qr(a).R.abs())
    near("inverse", torch.linalg.inv(S) @ S, torch.eye(60), 1e-6)
    near("lstsq", torch.linalg.lstsq(A, B).solution, torch.linalg.lstsq(a, b).solution, 1e-2)
    near("determinant", torch.linalg.slogdet(A).logabsdet, torch.linalg.slogdet(a).logabsdet)
    near("eigenvalues", torch.linalg.eigvals(A).abs().sort().values,
         torch.linalg.eigvals(a).abs().sort().values)
    near("batched", torch.linalg.inv(S.expand(10, 60, 60)) @ S, torch.eye(60).expand(10, 60, 60), 1e-6)


@program
def recurrent():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(1)
        net = kind(16, 32, num_layers=2, bidirectional=True, batch_first=True)
        inputs = torch.randn(4, 25, 16)
        expected, _ = net(inputs)
        out, _ = net.to(DEVICE)(inputs.to(DEVICE))
        near(kind.__name__, out, expected)
        out.sum().backward()
        show("gradient", round(total(net.weight_ih_l0.grad), 1))


@program
def embeddings():
    for mode in ("sum", "mean", "max"):
        torch.manual_seed(2)
        bag = nn.EmbeddingBag(100, 16, mode=mode)
        indices, offsets = torch.randint(0, 100, (64,)), torch.arange(0, 64, 8)
        expected = bag(indices, offsets)
        near(mode, bag.to(DEVICE)(indices.to(DEVICE), offsets.to(DEVICE)), expected)
    table = nn.Embedding(50, 8, sparse=True).to(DEVICE)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.arange(10, device=DEVICE)).sum().backward()
    optimizer.step()
    show("sparse gradient", table.weight.grad.is_sparse, round(total(table.weight), 1))


@program
def data_loader():
    data = torch.utils.data.TensorDataset(torch.arange(512.0).reshape(256, 2), torch.arange(256))
    loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2, pin_memory=True,
                                         persistent_workers=True)
    warm = torch.ones(1, device=DEVICE)
    sums = [float((x.to(DEVICE, non_blocking=True) * warm).sum() + y.to(DEVICE, non_blocking=True).sum())
            for _ in range(2) for x, y in loader]
    show("batches", len(sums), sum(sums))


def grow_and_shrink():
    held = []
    for i in range(1, 40):
        held.append(torch.full((i, 64, 1024), i, device=DEVICE, dtype=torch.int32))
        if i % 3 == 0:
            held.pop(0)
        if i % 10 == 0:
            torch.cuda.empty_cache()
    show("sums", sum(int(t.sum(dtype=torch.int64)) for t in held))
    torch.cuda.reset_peak_memory_stats()
    show("in use", torch.cuda.memory_allocated() >= sum(t.nbytes for t in held),
         torch.cuda.max_memory_allocated() > 0)


@program
def expandable_segments():
    grow_and_shrink()


@program
def expandable_segments_graph():
    graph_capture()
    grow_and_shrink()


@program
def malloc_async():
    grow_and_shrink()
    show("backend", torch.cuda.get_allocator_backend())


@program
def malloc_async_statistics():
    """What the pool has in use and in reserve: the driver's numbers."""
    mebi = 1 << 20

    def told(when):
        torch.cuda.synchronize()
        show(when, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(),
             torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())

    small = torch.empty(10 * mebi, dtype=torch.uint8, device=DEVICE)
    told("10 MiB")
    large = torch.empty(100 * mebi, dtype=torch.uint8, device=DEVICE)
    told("100 MiB more")
    del large
    told("and freed")
    torch.cuda.empty_cache()
    told("cache emptied")
    torch.cuda.reset_peak_memory_stats()
    del small
    told("peak reset, all freed")
    torch.cuda.empty_cache()
    told("cache emptied again")


@program
def malloc_async_graph():
    graph_capture()


@program
def memory_state():
    free, whole = torch.cuda.mem_get_info()
    block = torch.empty(64 << 20, dtype=torch.uint8, device=DEVICE)
    show("information", free <= whole, torch.cuda.memory_allocated() >= block.nbytes,
         len(torch.cuda.memory_snapshot()) > 0)
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError:
        show("out of memory", "caught")
    show("still right", int((torch.arange(10, device=DEVICE)).sum()))
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        show("own pool", float(torch.ones(1000, device=DEVICE).sum()))


@program
def pinned_memory():
    pinned, plain = (torch.arange(1 << 20, dtype=torch.float32).pin_memory(),
                     torch.arange(1 << 20, dtype=torch.float32))
    there = pinned.to(DEVICE, non_blocking=True)
    back = torch.empty(1 << 20, pin_memory=True)
    back.copy_(there * 2, non_blocking=True)
    torch.cuda.synchronize()
    show("pinned", pinned.is_pinned(), torch.equal(back, plain * 2))
    registered = torch.zeros(1 << 16)
    assert int(torch.cuda.cudart().cudaHostRegister(registered.data_ptr(), registered.nbytes, 0)) == 0
    registered.copy_(there[:1 << 16], non_blocking=True)
    torch.cuda.synchronize()
    show("registered", registered.is_pinned(), torch.equal(registered, plain[:1 << 16]))
    torch.cuda.cudart().cudaHostUnregister(registered.data_ptr())


@program
def jiterator():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T scaled(T x, T y, T alpha) { "
                                                   "return alpha * x * x + y; }", alpha=1.0)
    x, y = gpu(1000), gpu(1000)
    near("float", function(x, y, alpha=3.0), 3 * x * x + y)
    near("double", function(x.double(), y.double(), alpha=0.5), 0.5 * x.double() ** 2 + y.double())


@program
def runtime_kernel():
    source = 'extern "C" __global__ void saxpy(const float* x, float* y, double a, int n)' \
             '{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }'
    kernel = torch.cuda._compile_kernel(source, "saxpy")
    x, y = gpu(10000), gpu(10000)
    expected = 2.5 * x + y
    kernel(grid=(40, 1, 1), block=(256, 1, 1), args=(x, y, 2.5, 10000))
    near("saxpy", y, expected)


@program
def low_precision():
    a, b = torch.randint(-100, 100, (64, 128),
                         dtype=torch.int8), torch.randint(-100, 100, (128, 32), dtype=torch.int8)
    show("int8", torch.equal(torch._int_mm(a.to(DEVICE), b.to(DEVICE)).cpu(), a.int() @ b.int()))
    x, y = torch.randn(64, 128).to(torch.float8_e4m3fn), torch.randn(32, 128).to(torch.float8_e4m3fn)
    one = torch.ones((), device=DEVICE)
    near("fp8", torch._scaled_mm(x.to(DEVICE), y.to(DEVICE).t(), one, one, out_dtype=torch.float32),
         x.float() @ y.float().t(), 0.1)
    torch.backends.cuda.matmul.allow_tf32 = True
    near("tf32", gpu(64, 64) @ torch.eye(64, device=DEVICE), torch.zeros(64, 64), 10)


def process_group():
    import socket
    import torch.distributed as dist
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=1)
    return dist


@program
def nccl_one_rank():
    dist = process_group()
    values = torch.arange(1000.0, device=DEVICE)
    dist.all_reduce(values)
    gathered = [torch.empty_like(values)]
    dist.all_gather(gathered, values)
    dist.broadcast(values, 0)
    scattered = torch.empty_like(values)
    dist.reduce_scatter_tensor(scattered, values)
    dist.barrier()
    show("sums", total(values), total(gathered[0]), total(scattered))
    dist.destroy_process_group()


@program
def nccl_ddp():
    dist = process_group()
    model = nn.parallel.DistributedDataParallel(small_model(), device_ids=[0])
    show("loss", round(train(model, gpu(128, 64), gpu(128, 8), 20), 4))
    dist.destroy_process_group()


@program
def profiler():
    from torch.profiler import ProfilerActivity, profile
    x = gpu(128, 128)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        y = x @ x
        torch.cuda.synchronize()
    show("operators", any("matmul" in event.key for event in seen.key_averages()), round(total(y) / 1e4, 1))


def receive(queue, answer):
    answer.put(float(queue.get().sum()))


@program
def shared_between_processes():
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    queue, answer = context.Queue(), context.Queue()
    tensor = torch.arange(1000.0, device=DEVICE)
    tensor.share_memory_()
    from multiprocessing.reduction import ForkingPickler
    ForkingPickler.dumps(tensor)   # here cudaIpcGetMemHandle is called, where an error can be seen
    child = context.Process(target=receive, args=(queue, answer))
    child.start()
    queue.put(tensor)
    show("sum", answer.get(timeout=100))
    child.join()


@program
def forked():
    show("before", float(torch.ones(4, device=DEVICE).sum()))
    child = os.fork()
    if child == 0:
        try:
            torch.ones(4, device=DEVICE)
            os._exit(1)
        except RuntimeError as error:
            os._exit(7 if "forked subprocess" in str(error) else 2)
    show("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    show("after", float(torch.ones(4, device=DEVICE).sum()))


@program
def random_numbers():
    torch.cuda.manual_seed(11)
    show("uniform", total(torch.rand(10000, device=DEVICE)), total(torch.randn(10000, device=DEVICE)))
    show("integers", int(torch.randint(0, 1000, (1000,), device=DEVICE).sum()),
         int(torch.randperm(1000, device=DEVICE).sum()))
    show("others", total(torch.empty(1000, device=DEVICE).exponential_()),
         int(torch.bernoulli(torch.full((1000,), 0.3, device=DEVICE)).sum()),
         int(torch.multinomial(torch.arange(1.0, 100.0, device=DEVICE), 50).sum()),
         total(F.dropout(torch.ones(1000, device=DEVICE), 0.4)))
    state = torch.cuda.get_rng_state()
    first = torch.rand(10, device=DEVICE)
    torch.cuda.set_rng_state(state)
    show("state", torch.equal(first, torch.rand(10, device=DEVICE)))


@program
def indexing():
    keys = torch.randint(0, 500, (20000,))
    there = keys.to(DEVICE)
    for name, ours, theirs in (("sort", there.sort().values, keys.sort().values),
                               ("unique", there.unique(), keys.unique()),
                               ("topk", there.topk(50).values, keys.topk(50).values),
                               ("bincount", there.bincount(), keys.bincount()),
                               ("cumsum", there.cumsum(0), keys.cumsum(0)),
                               ("nonzero", (there > 400).nonzero(), (keys > 400).nonzero()),
                               ("scatter", torch.zeros(
                                   500, dtype=torch.int64, device=DEVICE).scatter_add_(0, there, there),
                                torch.zeros(500, dtype=torch.int64).scatter_add_(0, keys, keys)),
                               ("masked", there[there % 3 == 0], keys[keys % 3 == 0]),
                               ("median", there.median(), keys.median()),
                               ("histogram", torch.histc(there.float(), 20), torch.histc(keys.float(), 20))):
        show(name, torch.equal(ours.cpu(), theirs))


@program
def complex_numbers():
    a, b = torch.randn(30, 40, dtype=torch.complex64), torch.randn(40, 50, dtype=torch.complex64)
    near("product", torch.view_as_real(a.to(DEVICE) @ b.to(DEVICE)), torch.view_as_real(a @ b))
    near("einsum", torch.einsum("ij,jk,lk->il", a.to(DEVICE), b.to(DEVICE), b.to(DEVICE)).abs(),
         torch.einsum("ij,jk,lk->il", a, b, b).abs(), 0.01)
    near("angle", a.to(DEVICE).exp().angle(), a.exp().angle())


@program
def autograd():
    from torch.utils.checkpoint import checkpoint

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            return 3 * ctx.saved_tensors[0] ** 2 * grad
    x = torch.arange(1.0, 5.0, device=DEVICE, requires_grad=True)
    first, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    show("derivatives", first.tolist(), second.tolist())
    model, inputs = small_model(), gpu(16, 64).requires_grad_()
    checkpoint(model, inputs, use_reentrant=False).sum().backward()
    show("checkpointed", round(total(inputs.grad), 2))


@program
def transforms():
    from torch.func import grad, jacrev, vmap
    x = gpu(20, 5)
    near("vmap of grad", vmap(grad(lambda v: (v ** 3).sum()))(x), 3 * x ** 2, 1e-2)
    near("jacobian", jacrev(lambda v: v.sin())(x[0]), torch.diag(x[0].cos()))


@program
def scripted():
    @torch.jit.script
    def fused(x, y):
        return torch.tanh(x * y) + torch.sigmoid(x) * y
    x, y = gpu(1000), gpu(1000)
    for i in range(4):
        near(f"run {i}", fused(x, y), torch.tanh(x * y) + torch.sigmoid(x) * y)


@program
def nested_tensors():
    parts = [torch.randn(n, 16) for n in (3, 7, 5)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, device=DEVICE)
    layer = nn.Linear(16, 8)
    expected = torch.cat([layer(part) for part in parts])
    near("linear", layer.to(DEVICE)(nested).values(), expected)
    show("lengths", nested.offsets().tolist())


@program
def transformer_layers():
    torch.manual_seed(4)
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True,
                                                           dropout=0.0), 2).eval()
    inputs = torch.randn(3, 20, 64)
    expected = net(inputs)
    near("encoder", net.to(DEVICE)(inputs.to(DEVICE)), expected)
    with torch.inference_mode():
        near("fast path", net(inputs.to(DEVICE)), expected)


@program
def saved_and_loaded():
    import io
    model, file = small_model(), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = small_model()
    other.load_state_dict(torch.load(file, map_location=DEVICE))
    show("same", all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters())))


if __name__ == "__main__":
    p.main()
