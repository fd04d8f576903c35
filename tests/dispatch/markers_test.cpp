// Markers: events where there are some, else words that the GPU writes; what is reached is seen in order.
#include "runtime/dispatch/markers.h"

#include <catch2/catch.hpp>

#include "tests/dispatch/door_gpu.h"

namespace smt::runtime::dispatch {

namespace {

using tests::DoorGpu;

unsigned marker_writes = 0, marker_questions = 0;
bool marker_events_fail = false;
DriverApi marker_driver;  // what the counting functions call

struct MarkedStream {
    DoorGpu gpu;
    DriverApi driver = DoorGpu::driver();
    std::unique_ptr<StreamWordsPool> pool;
    std::unique_ptr<Markers> markers;

    MarkedStream() {
        marker_writes = marker_questions = 0;
        marker_events_fail = false;
        marker_driver = driver;
        driver.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr at, cuuint64_t value,
                                            unsigned flags) {
            ++marker_writes;
            return marker_driver.cuStreamWriteValue64_v2(stream, at, value, flags);
        };
        driver.cuEventRecord = [](CUevent event, CUstream stream) {
            return marker_events_fail ? CUDA_ERROR_INVALID_HANDLE
                                      : marker_driver.cuEventRecord(event, stream);
        };
        driver.cuEventQuery = [](CUevent event) {
            ++marker_questions;
            return marker_driver.cuEventQuery(event);
        };
        pool = std::make_unique<StreamWordsPool>(driver);
        markers = std::make_unique<Markers>(driver, *pool, DoorGpu::kProgram);
        REQUIRE(markers->open() == CUDA_SUCCESS);
        markers->words().reached.store(0);
    }
};

}  // namespace

TEST_CASE("markers: events, each seen once the GPU has come so far, without a write", "[dispatch]") {
    MarkedStream it;
    for (int round = 0; round < 5; ++round) {
        const uint64_t before = it.markers->last();
        for (unsigned i = 0; i < 20; ++i) {
            it.gpu.enqueue_unit();
            REQUIRE(it.markers->mark() == CUDA_SUCCESS);
        }
        CHECK(it.markers->last() == before + 20);
        for (unsigned i = 0; i < 20; ++i) {
            CHECK(it.markers->reached() == before + i);
            it.gpu.run(1);
        }
        CHECK(it.markers->reached() == it.markers->last());
    }
    CHECK(marker_writes == 0);
}

TEST_CASE("markers: without an event that is free the GPU writes", "[dispatch]") {
    MarkedStream it;
    for (uint64_t i = 0; i < 2 * Markers::kEvents; ++i) {
        it.gpu.enqueue_unit();
        REQUIRE(it.markers->mark() == CUDA_SUCCESS);
    }
    CHECK(marker_writes == Markers::kEvents);
    for (uint64_t i = 0; i < 2 * Markers::kEvents; ++i) {
        CHECK(it.markers->reached() == i);
        it.gpu.run(1);
    }
    marker_events_fail = true;  // a stream of another context, say
    REQUIRE(it.markers->mark() == CUDA_SUCCESS);
    CHECK(marker_writes == Markers::kEvents + 1);
    it.gpu.run();
    CHECK(it.markers->reached() == it.markers->last());
}

TEST_CASE("markers: few questions find what is over", "[dispatch]") {
    MarkedStream it;
    for (uint64_t i = 0; i < Markers::kEvents; ++i) {
        it.gpu.enqueue_unit();
        REQUIRE(it.markers->mark() == CUDA_SUCCESS);
    }
    marker_questions = 0;
    CHECK(it.markers->reached() == 0);
    CHECK(marker_questions == 1);
    it.gpu.run(Markers::kEvents - 1);
    CHECK(it.markers->reached() == Markers::kEvents - 1);
    CHECK(marker_questions < 10);
    it.gpu.run();
    CHECK(it.markers->reached() == Markers::kEvents);
    marker_questions = 0;
    CHECK(it.markers->reached() == Markers::kEvents);
    CHECK(marker_questions == 0);
}

}  // namespace smt::runtime::dispatch
