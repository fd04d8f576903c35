"""JAX: one theme a program. XLA does not choose kernels by timing them, so that results are the same
everywhere."""
import os

import program as p
from program import program, show

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"
p.environment({"command_buffers": {"XLA_FLAGS": FLAGS + " --xla_gpu_graph_min_graph_size=1"},
               "command_buffers_loop": {"XLA_FLAGS": FLAGS + " --xla_gpu_graph_min_graph_size=1 "
                                        "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,"
                                        "CUSTOM_CALL,CONDITIONAL,WHILE"},
               "platform_allocator": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
               "malloc_async": {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}})
os.environ.setdefault("XLA_FLAGS", FLAGS)
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")
RANDOM = np.random.default_rng(5)


def host(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def near(name, ours, reference, tolerance=1e-3):
    error = np.abs(np.asarray(ours, np.float64) - np.asarray(reference, np.float64)).max()
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


@program
def training():
    weights = {"a": jnp.asarray(host(32, 64) / 6), "b": jnp.asarray(host(64, 4) / 8)}
    inputs, targets = jnp.asarray(host(100, 32)), jnp.asarray(host(100, 4))

    @jax.jit
    def step(weights):
        def loss(weights):
            return jnp.mean((jnp.tanh(inputs @ weights["a"]) @ weights["b"] - targets) ** 2)
        value, gradient = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value
    for _ in range(30):
        weights, value = step(weights)
    show("loss", round(float(value), 4))


@program
def optax_adam():
    import optax
    weights, inputs = jnp.asarray(host(16, 4)), jnp.asarray(host(50, 16))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(weights)
    for _ in range(10):
        value, gradient = jax.value_and_grad(lambda w: jnp.mean((inputs @ w) ** 2))(weights)
        updates, state = optimizer.update(gradient, state)
        weights = optax.apply_updates(weights, updates)
    show("loss", round(float(value), 3))


@program
def flax_network():
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(8, (3, 3))(x))
            return nn.Dense(4)(nn.LayerNorm()(x.reshape(x.shape[0], -1)))
    net, images = Net(), jnp.asarray(host(4, 12, 12, 3))
    weights = net.init(jax.random.PRNGKey(0), images)
    gradient = jax.jit(jax.grad(lambda w: (net.apply(w, images) ** 2).mean()))(weights)
    show("shapes", [leaf.shape for leaf in jax.tree.leaves(gradient)])
    show("finite", all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient)))


@program
def one_device_mesh():
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    show("pmap", np.asarray(
        jax.pmap(lambda x: jax.lax.psum(x * 2, "i"), axis_name="i")(jnp.arange(4.0)[None])).tolist())
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    there = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))
    show("sharded", float(jax.jit(lambda v: (v * v).sum())(there)))


@program
def random_numbers():
    key = jax.random.PRNGKey(9)
    for name in ("normal", "uniform", "exponential", "cauchy", "gumbel"):
        show(name, round(float(jnp.median(getattr(jax.random, name)(key, (5000,)))), 4))
    show("integers", int(jax.random.randint(key, (1000,), 0, 100).sum()),
         int(jax.random.permutation(key, 100)[0]))
    show("gamma", round(float(jax.random.gamma(key, 2.0, (100,)).sum()), 2),
         int(jax.random.categorical(key, jnp.zeros(10))))


@program
def linear_algebra():
    a = RANDOM.standard_normal((40, 40)).astype(np.float32)
    spd, b = a @ a.T + 40 * np.eye(40, dtype=np.float32), host(40, 3)
    near("cholesky", jnp.linalg.cholesky(spd), np.linalg.cholesky(spd))
    near("solve", jnp.linalg.solve(spd, b), np.linalg.solve(spd, b))
    near("eigh", jnp.linalg.eigh(spd)[0], np.linalg.eigh(spd)[0], 1e-2)
    near("svd", jnp.linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False))
    near("qr", jnp.abs(jnp.linalg.qr(a)[1]), np.abs(np.linalg.qr(a)[1]))
    near("inverse", jnp.linalg.inv(spd) @ spd, np.eye(40))
    near("determinant", jnp.linalg.slogdet(spd)[1], np.linalg.slogdet(spd)[1], 1e-2)
    near("triangular", jax.scipy.linalg.solve_triangular(jnp.tril(spd), b, lower=True),
         np.linalg.solve(np.tril(spd), b))


@program
def fourier():
    x = host(16, 120)
    near("fft", jnp.abs(jnp.fft.fft(x)), np.abs(np.fft.fft(x)))
    near("rfft", jnp.fft.irfft(jnp.fft.rfft(x), n=120), x)
    near("2d", jnp.abs(jnp.fft.fft2(x)), np.abs(np.fft.fft2(x)), 1e-2)


@program
def control_flow():
    show("while",
         int(jax.lax.while_loop(lambda s: s[0] < 1000, lambda s: (s[0] + s[1], s[1] + 1), (0, 1))[1]))
    show("cond", [float(jax.jit(lambda x: jax.lax.cond(x > 0, jnp.sin, jnp.cos, x))(v)).__round__(5)
                  for v in (1.0, -1.0)])
    show("switch", int(jax.lax.switch(2, [lambda: 1, lambda: 5, lambda: 9])))
    show("scan", float(jax.lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, jnp.arange(200.0))[0]))
    show("fori", float(jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, v: v + i * 0.5, x))(1.0)))
    show("associative", float(jax.lax.associative_scan(jnp.add, jnp.arange(500.0))[-1]))


def many_small_steps(loop):
    @jax.jit
    def work(x, w):
        if loop:
            return jax.lax.fori_loop(0, 20, lambda i, v: jnp.tanh(v @ w) +
                                     jax.lax.cond(i % 2 == 0, jnp.sin, jnp.cos, v), x)
        for _ in range(12):
            x = jnp.sort(jnp.tanh(x @ w), axis=1) + x.sum(axis=0)
        return x
    x, w = jnp.asarray(host(64, 64)), jnp.asarray(host(64, 64) / 8)
    for i in range(6):
        show(f"call {i}", round(float(jnp.abs(work(x / (i + 1), w)).mean()), 3))


@program
def command_buffers():
    many_small_steps(False)


@program
def command_buffers_loop():
    many_small_steps(True)


@program
def pallas_kernel():
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu

    def add(x, y, out):
        out[...] = x[...] * 2 + y[...]
    x, y = host(256, 128), host(256, 128)
    call = pl.pallas_call(add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,),
                          in_specs=[pl.BlockSpec((64, 128), lambda i: (i, 0))] * 2,
                          out_specs=pl.BlockSpec((64, 128), lambda i: (i, 0)),
                          compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=1))
    near("blocks", jax.jit(call)(x, y), x * 2 + y)


@program
def convolutions():
    x, w = host(2, 3, 20, 20), host(5, 3, 3, 3)
    expected = np.zeros((2, 5, 18, 18), np.float32)
    for i in range(3):
        for j in range(3):
            expected += np.einsum("nchw,oc->nohw", x[:, :, i:i + 18, j:j + 18], w[:, :, i, j])
    near("forward", jax.lax.conv(x, w, (1, 1), "VALID"), expected)
    gradient = jax.jit(jax.grad(lambda w: (jax.lax.conv(x, w, (1, 1), "SAME") ** 2).mean()))(w)
    show("gradient", round(float(jnp.abs(gradient).sum()), 2))
    show("pooled", round(
        float(jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum()), 2))


@program
def sparse_matrices():
    from jax.experimental import sparse
    dense, right = host(60, 80) * (RANDOM.random((60, 80)) > 0.8), host(80, 10)
    near("bcoo", jax.jit(lambda m, r: m @ r)(sparse.BCOO.fromdense(dense), right), dense @ right)
    near("bcsr", sparse.BCSR.fromdense(dense) @ right, dense @ right)


@program
def number_formats():
    a, b = host(64, 96), host(96, 32)
    for kind, tolerance in ((jnp.bfloat16, 1.0), (jnp.float16, 0.2)):
        near(kind.__name__, jnp.dot(jnp.asarray(a, kind), jnp.asarray(b, kind),
                                    preferred_element_type=jnp.float32), a @ b, tolerance)
    near("int8",
         jnp.dot(jnp.asarray(a, jnp.int8), jnp.asarray(b, jnp.int8), preferred_element_type=jnp.int32),
         a.astype(np.int8).astype(int) @ b.astype(np.int8).astype(int))
    jax.config.update("jax_enable_x64", True)
    near("float64", jnp.asarray(a, jnp.float64) @ jnp.asarray(b, jnp.float64),
         a.astype(float) @ b.astype(float), 1e-10)
    near("complex", jnp.abs(jnp.exp(1j * jnp.asarray(a))), np.ones_like(a))


@program
def memory_kinds():
    from jax.sharding import SingleDeviceSharding
    device = jax.devices()[0]
    pinned = jax.device_put(jnp.arange(1000.0), SingleDeviceSharding(device, memory_kind="pinned_host"))
    back = jax.device_put(pinned, SingleDeviceSharding(device, memory_kind="device"))
    show("pinned", pinned.sharding.memory_kind, float(back.sum()))
    donated = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros(1000)
    for _ in range(5):
        x = donated(x)
    show("donated", float(x.sum()))


@program
def callbacks():
    pure = jax.jit(lambda x: jax.pure_callback(
        lambda v: np.asarray(v) * 3, jax.ShapeDtypeStruct((4,), jnp.float32), x) + 1)
    show("pure", np.asarray(pure(jnp.arange(4.0))).tolist())
    seen = []
    jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x.sum()))(jnp.arange(5.0))
    jax.effects_barrier()
    show("debug", seen)
    jax.jit(lambda x: jax.debug.print("value {x}", x=x))(jnp.float32(2.5))
    jax.effects_barrier()


@program
def segments_and_sorting():
    keys = RANDOM.integers(0, 50, 4000)
    near("segment sum", jax.ops.segment_sum(jnp.ones(4000), keys, 50), np.bincount(keys, minlength=50))
    near("sort", jnp.sort(keys), np.sort(keys))
    near("unique", jnp.unique(keys), np.unique(keys))
    near("top", jax.lax.top_k(jnp.asarray(keys), 10)[0], np.sort(keys)[::-1][:10])
    near("scatter", jnp.zeros(50).at[keys].max(jnp.arange(4000.0)),
         [np.flatnonzero(keys == k).max(initial=0) for k in range(50)])
    near("cumsum", jnp.cumsum(keys), np.cumsum(keys))


@program
def attention():
    q, k, v = (jnp.asarray(host(2, 64, 4, 64), jnp.bfloat16) for _ in range(3))
    plain = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    near("cudnn", jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn"), plain, 0.05)


@program
def differential_equation():
    import diffrax
    solution = diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, args: -y + jnp.sin(t)), diffrax.Tsit5(),
                                   0.0, 5.0, 0.1, jnp.ones(16),
                                   stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5))
    show("end", round(float(solution.ys[-1, 0]), 3))


@program
def vectorised_derivatives():
    f = lambda x: jnp.sum(jnp.sin(x) * x ** 2)
    x = jnp.arange(1.0, 5.0)
    near("hessian", jax.hessian(f)(x), jnp.diag((2 - x ** 2) * jnp.sin(x) + 4 * x * jnp.cos(x)), 1e-3)
    near("jvp", jax.jvp(f, (x,), (jnp.ones(4),))[1], jnp.sum(jnp.cos(x) * x ** 2 + 2 * x * jnp.sin(x)))
    near("vmap", jax.vmap(jax.grad(f))(jnp.stack([x, x + 1])),
         jnp.stack([jax.grad(f)(x), jax.grad(f)(x + 1)]))


@program
def platform_allocator():
    training()


@program
def malloc_async():
    training()


if __name__ == "__main__":
    p.main()
