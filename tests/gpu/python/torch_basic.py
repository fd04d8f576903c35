"""PyTorch: products, a convolution, a training loop from pinned memory, torch.compile, a graph.

Deterministic algorithms and seeds throughout; sums are printed to six digits because cuBLAS may
choose another algorithm where another amount of workspace memory is free.
"""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
device = torch.device("cuda")


def show(name, value):
    print(f"{name}: {float(value):.6g}", flush=True)


print("device:", torch.cuda.get_device_name(0), torch.cuda.device_count())

a, b = torch.randn(512, 384), torch.randn(384, 640)
product = a.to(device) @ b.to(device)
show("matmul", product.double().abs().sum())
assert torch.allclose(product.cpu(), a @ b, atol=1e-3)
half = (a.to(device).bfloat16() @ b.to(device).bfloat16()).float()
show("matmul bf16 near", bool(torch.allclose(half.cpu(), a @ b, atol=1.0)))

images, weights = torch.randn(8, 3, 32, 32), torch.randn(16, 3, 3, 3)
convolved = F.conv2d(images.to(device), weights.to(device), padding=1)
show("conv2d", convolved.double().abs().sum())
assert torch.allclose(convolved.cpu(), F.conv2d(images, weights, padding=1), atol=1e-3)

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                            torch.nn.Flatten(),
                            torch.nn.Linear(8 * 16 * 16, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 3, 32, 32).pin_memory(), torch.randint(0, 10, (64,)).pin_memory()
for step in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(inputs.to(device, non_blocking=True)), targets.to(device, non_blocking=True))
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print(f"loss after {step + 1}: {loss.item():.5f}", flush=True)
show("weights", sum(p.double().abs().sum() for p in model.parameters()))

ordered = torch.randperm(1 << 20, device=device,
                         generator=torch.Generator(device).manual_seed(3)).sort().values
print("sorted:", bool((ordered == torch.arange(1 << 20, device=device)).all()))
show("cumsum", torch.arange(100000, device=device, dtype=torch.float64).cumsum(0).sum())
show("fft", torch.fft.fft(torch.arange(4096, device=device, dtype=torch.float64)).abs().sum())

streams = [torch.cuda.Stream() for _ in range(3)]
results = []
for i, stream in enumerate(streams):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        results.append((torch.full((1000,), float(i + 1), device=device) ** 2).sum())
torch.cuda.synchronize()
print("streams:", [float(r) for r in results])

static = torch.ones(1024, device=device)
warm = torch.cuda.Stream()
with torch.cuda.stream(warm):
    static * 2 + 1
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = static * 2 + 1
for i in range(5):
    static.fill_(i)
    graph.replay()
torch.cuda.synchronize()
print("graph:", float(out[0]), float(out.sum()))


@torch.compile
def fused(x, y):
    return (torch.sin(x) * y + torch.cos(y)).sum(dim=1)


x, y = torch.linspace(0, 1, 4096).reshape(64, 64), torch.linspace(1, 2, 4096).reshape(64, 64)
compiled = fused(x.to(device), y.to(device))
expected = (torch.sin(x) * y + torch.cos(y)).sum(dim=1)
print("compiled right:", bool(torch.allclose(compiled.cpu(), expected, atol=1e-4)))
print(f"compiled: {float(compiled.sum()):.5g}")
