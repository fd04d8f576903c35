"""Which calls give memory, and where it is counted against the tenant's limits.

A line whose call gives memory names, as `memory=NAME`, where that is counted (CHARGED) or why it is not
(UNCHARGED). Where the handler is generated, also around a served function, `memory=FUNCTION(ARGUMENTS)` is
how many bytes of device memory the new object takes: the handler counts them for as long as the object lives.
table.py refuses a line that says nothing; tests/unit/api_table_test.py looks for the charges in the sources.
"""

# What comes out of a call that gives memory.
OBJECTS = ("CUarray", "CUmipmappedArray", "CUmemGenericAllocationHandle", "CUmemoryPool",
           "CUdeviceptr", "CUmodule",
           "CUlibrary", "CUgraphExec", "CUlinkState")
# Calls that give memory in another form.
OTHER_CALLS = ("cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister_v2", "cuCtxSetLimit",
               "cuLinkAddData_v2", "cuLinkAddFile_v2")

SERVER = "runtime/server/"
# Name -> (file, the function that makes the charge, how it does).
CHARGED = {
    "chunk": (SERVER + "memory/tenant_memory.cpp", "TenantMemory::make_chunk", "account_->take"),
    "physical": (SERVER + "handlers/memory/served_virtual_memory.cpp", "cuMemCreate", "memory.charge("),
    "pinned": (SERVER + "memory/arena.cpp", "Arena::allocate_block", "charge.take"),
    "image": (SERVER + "handlers/code/image.cpp", "load_bytes", "charge("),
    "upload": (SERVER + "handlers/code/image.cpp", "handle_upload_begin", ".take("),
    "limit": (SERVER + "code/limits.cpp", "Limits::set", "charge("),
}

UNCHARGED = {
    "exists": "gives what is there and is counted already",
    "range": "gives addresses without memory behind them",
    "pool": "a pool holds nothing: what is allocated from it is counted",
    "graph": "the driver's copy of the nodes, whose size it does not tell",
    "linker": "an empty linker: its inputs are counted on their way",
}
