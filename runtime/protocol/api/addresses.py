"""Which parameters carry device addresses, and where each of them is checked.

The server lets a session name only addresses of its own: a bad one is CUDA_ERROR_INVALID_VALUE. Each
parameter that carries an address into the server is checked by the generated handler (`touch`, or a struct of
GENERATED), or its line names, as `addresses=NAME`, the hand-written check (CHECKS) or the reason why none is
needed (EXEMPT). table.py refuses a line that does neither; tests/unit/api_table_test.py looks for the checks
in the sources and for new structs in cuda.h.
"""

# Types with a CUdeviceptr in them, whatever its depth, and those with an access policy window.
STRUCTS = (
    "CUDA_BATCH_MEM_OP_NODE_PARAMS", "CUDA_BATCH_MEM_OP_NODE_PARAMS_v1",
    "CUDA_BATCH_MEM_OP_NODE_PARAMS_v2", "CUDA_MEMCPY2D", "CUDA_MEMCPY2D_v2", "CUDA_MEMCPY3D",
    "CUDA_MEMCPY3D_v2",
    "CUDA_MEMCPY3D_BATCH_OP", "CUDA_MEMCPY3D_BATCH_OP_v1", "CUDA_MEMCPY3D_PEER", "CUDA_MEMCPY3D_PEER_v1",
    "CUDA_MEMCPY_NODE_PARAMS", "CUDA_MEMSET_NODE_PARAMS", "CUDA_MEMSET_NODE_PARAMS_v1",
    "CUDA_MEMSET_NODE_PARAMS_v2",
    "CUDA_MEM_ALLOC_NODE_PARAMS", "CUDA_MEM_ALLOC_NODE_PARAMS_v1", "CUDA_MEM_ALLOC_NODE_PARAMS_v2",
    "CUDA_MEM_FREE_NODE_PARAMS", "CUDA_RESOURCE_DESC", "CUDA_RESOURCE_DESC_v1", "CUgraphNodeParams",
    "CUmemcpy3DOperand",
    "CUmemcpy3DOperand_v1", "CUstreamBatchMemOpParams", "CUstreamBatchMemOpParams_v1",
    "CUaccessPolicyWindow", "CUaccessPolicyWindow_v1", "CUlaunchAttribute", "CUlaunchAttributeValue",
    "CUlaunchConfig",
    "CUkernelNodeAttrValue", "CUkernelNodeAttrValue_v1", "CUstreamAttrValue", "CUstreamAttrValue_v1",
)

# Structs that the generated handler checks: may_touch() of runtime/server/handlers/handler_support.h.
GENERATED = ("CUDA_MEMSET_NODE_PARAMS",)

SERVER = "runtime/server/"
# Name -> (file, functions of which each makes the check, what makes it).
CHECKS = {
    "copy": (SERVER + "handlers/memory/copy_plan.cpp", ("plan_end",), "may_touch"),
    "free": (SERVER + "handlers/memory/memory.cpp", ("handle_mem_free",), "memory.find"),
    "pool_free": (SERVER + "memory/pools.cpp", ("Pools::free",), "memory_.find"),
    "reservation": (SERVER + "memory/tenant_memory.cpp", ("TenantMemory::release_reservation",),
                    "reservations_.find"),
    "mapping": (SERVER + "handlers/memory/served_virtual_memory.cpp",
                ("handle_mem_map", "cuMemUnmap", "handle_set_access", "cuMemGetAccess",
                 "cuMemRetainAllocationHandle"),
                "reserved("),
    "batch": (SERVER + "handlers/served_stream.cpp", ("cuStreamBatchMemOp_v2",), "may_touch"),
    "shared": (SERVER + "memory/tenant_sharing.cpp", ("TenantMemory::share",), "large_"),
    "opened": (SERVER + "memory/tenant_sharing.cpp", ("TenantMemory::close_shared",), "opened_.find"),
    "resource": (SERVER + "handlers/memory/served_texture.cpp", ("check",), "may_touch"),
}

EXEMPT = {
    "answer": "the address goes to the program, none comes from it",
    "client": "answered in the application, from the ranges it was given",
    "other_call": "goes on as another call of this table, which checks it",
    "wish": "a hint where to reserve: taken only inside the tenant's own range",
    "cache_hint": "a window of addresses for the cache: nothing is read or written at them",
    "tensor_map": "stands in a tensor map, which only kernels follow, and a kernel's accesses are "
    "not checked",
    "program": "the program's own pointer: handed back to it, never followed by the server",
}
