"""JAX: products, jit, gradients, vmap, scan, random numbers and a few training steps.

Products are asked for at full precision; sums are printed to six digits, since XLA chooses its
kernels by timing them.
"""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true")
import jax
import jax.numpy as jnp
import numpy as np

print("backend:", jax.default_backend(), jax.device_count())
jax.config.update("jax_default_matmul_precision", "highest")

left = jnp.asarray(np.arange(256 * 128).reshape(256, 128) % 7, jnp.float32)
right = jnp.asarray(np.arange(128 * 192).reshape(128, 192) % 5, jnp.float32)
product = left @ right
assert np.array_equal(np.asarray(product), np.asarray(left) @ np.asarray(right))
print("matmul:", float(product.sum()))


@jax.jit
def layer(weights, inputs):
    return jnp.tanh(inputs @ weights).mean(axis=0)


key = jax.random.PRNGKey(5)
weights, inputs = jax.random.normal(key, (64, 32)), jax.random.normal(jax.random.split(key)[0], (100, 64))
print(f"jit: {float(jnp.abs(layer(weights, inputs)).sum()):.6g}")
print(f"random: {float(weights.sum()):.6g}")


def loss(weights, inputs):
    return (layer(weights, inputs) ** 2).sum()


gradient = jax.jit(jax.grad(loss))
print(f"grad: {float(jnp.abs(gradient(weights, inputs)).sum()):.6g}")
for step in range(20):
    weights = weights - 0.1 * gradient(weights, inputs)
print(f"trained: {float(loss(weights, inputs)):.5g}")

print("vmap:", np.asarray(jax.vmap(lambda x: (x * x).sum())(jnp.arange(12.0).reshape(3, 4))).tolist())
total, history = jax.lax.scan(lambda carry, x: (carry + x, carry * 2), 0.0, jnp.arange(100.0))
print("scan:", float(total), float(history.sum()))
print("sort:", jnp.sort(jnp.array([5, 3, 9, 1])).tolist(), "argmax:",
      int(jnp.argmax(jnp.sin(jnp.arange(100.0)))))
print(f"fft: {float(jnp.abs(jnp.fft.fft(jnp.arange(1024.0))).max()):.6g}")
convolved = jax.lax.conv(jnp.ones((1, 3, 16, 16)), jnp.ones((4, 3, 3, 3)), (1, 1), "SAME")
print("conv:", float(convolved.sum()))
