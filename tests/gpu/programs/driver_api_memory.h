// Second half of driver_api.cu: virtual memory management, and words that streams write and await.
#pragma once

// Two physical pieces behind one address range, the second mapped at two places.
void memory_by_hand(Result& result, CUdevice device) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    size_t granule = 0;
    CHECK(cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    std::printf("granularity %zu\n", granule);
    CUdeviceptr range;
    CUmemGenericAllocationHandle first, second;
    CHECK(cuMemAddressReserve(&range, 3 * granule, 0, 0, 0));
    CHECK(cuMemCreate(&first, granule, &properties, 0));
    CHECK(cuMemCreate(&second, granule, &properties, 0));
    CHECK(cuMemMap(range, granule, 0, first, 0));
    CHECK(cuMemMap(range + granule, granule, 0, second, 0));
    CHECK(cuMemMap(range + 2 * granule, granule, 0, second, 0));
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK(cuMemSetAccess(range, 3 * granule, &access, 1));
    std::vector<unsigned char> bytes(3 * granule);
    CHECK(cuMemsetD8(range, 0x11, granule));
    CHECK(cuMemsetD8(range + granule, 0x22, granule));
    CHECK(cuMemcpyDtoD(range + granule + 100, range, 50));
    CHECK(cuMemcpyDtoH(bytes.data(), range, 3 * granule));
    result.expect(bytes[granule - 1] == 0x11 && bytes[granule] == 0x22 && bytes[granule + 100] == 0x11,
                  "pieces");
    result.expect(bytes[2 * granule + 149] == 0x11 && bytes[2 * granule + 150] == 0x22, "second mapping");
    result.fold(bytes.data() + granule, 4096);
    CHECK(cuMemUnmap(range, 3 * granule));
    CHECK(cuMemRelease(first));
    CHECK(cuMemRelease(second));
    CHECK(cuMemAddressFree(range, 3 * granule));
}

void words_and_events(Result& result, CUdeviceptr words) {
    CUstream waiter, writer;
    CUevent begin, end;
    CHECK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreateWithPriority(&writer, CU_STREAM_NON_BLOCKING, -1));
    CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CHECK(cuMemsetD32(words, 0, 16));
    CHECK(cuCtxSynchronize());
    CHECK(cuEventRecord(begin, waiter));
    CHECK(cuStreamWaitValue32(waiter, words, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(cuMemcpyDtoDAsync(words + 8, words + 4, 4, waiter));
    CHECK(cuEventRecord(end, waiter));
    CHECK(cuStreamQuery(writer));
    std::printf("waiting: %d, event: %d\n", cuStreamQuery(waiter), cuEventQuery(end));
    CHECK(cuMemsetD32Async(words + 4, 99, 1, writer));
    CHECK(cuStreamWriteValue32(writer, words, 6, 0));
    CHECK(cuStreamWriteValue64(writer, words + 16, 0x123456789abcdefull, 0));
    CHECK(cuStreamSynchronize(waiter));
    CHECK(cuEventSynchronize(end));
    float milliseconds = -1;
    CHECK(cuEventElapsedTime(&milliseconds, begin, end));
    CHECK(cuStreamSynchronize(writer));
    unsigned back[6] = {};
    CHECK(cuMemcpyDtoH(back, words, sizeof back));
    std::printf("words: %u %u %u %08x%08x\n", back[0], back[1], back[2], back[5], back[4]);
    result.expect(back[0] == 6 && back[1] == 99 && back[2] == 99 && milliseconds >= 0, "words");
    unsigned type = 0;
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, words + 4));
    std::printf("memory type %u\n", type);
    result.fold(back);
    CHECK(cuEventDestroy(begin));
    CHECK(cuEventDestroy(end));
    CHECK(cuStreamDestroy(waiter));
    CHECK(cuStreamDestroy(writer));
}
