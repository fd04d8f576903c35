// Doors in cubins that are opened: what is said is of the cubin with doors, and managed forms get none. The
// kernels are compiled here.
#include "runtime/jit/worker/doors.h"

#include <catch2/catch.hpp>
#include <map>

#include "runtime/image/image.h"
#include "runtime/jit/messages.h"
#include "runtime/jit/source.h"
#include "runtime/jit/worker/ptx_compiler.h"
#include "tests/image/made.h"

using namespace smt;
using namespace smt::runtime::jit;

namespace {

const std::string kPlainKernel =
    ".visible .entry k(.param .u64 p, .param .u32 n) { .reg .u64 %rd<2>; .reg .u32 %r<2>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; st.global.u32 [%rd1], %r1; ret; }\n";
const std::string kManagedVariable =
    ".visible .global .attribute(.managed) .align 4 .u32 shared_with_host[5];\n";
constexpr uint16_t kCubin = 2;

std::string cubin_of(const std::string& content) {
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n" + content;
    Order order;
    order.language = Language::kAssembly;
    order.form = Form::kCubin;
    order.architecture = "sm_90";
    order.inputs.push_back({0, 0, text.size(), "", text});
    Result result = compile_ptx(order);
    INFO(result.reason);
    REQUIRE(!result.image.empty());
    return std::move(result.image);
}

OpenOrder asked_for(bool doors) {
    OpenOrder asked{{90}, {90}, 1 << 20};
    asked.doors = doors;
    return asked;
}

std::string given_in_place;  // by the PutDoors below
std::string seen_by_doors;
std::string put_given(std::string_view cubin, std::vector<Door>& doors) {
    seen_by_doors = cubin;
    doors.push_back({"k", "", 8, 16, true});
    return given_in_place;
}

}  // namespace

TEST_CASE("an image with doors is said to be what is loaded in its place", "[doors]") {
    const std::string own = cubin_of(kPlainKernel);
    given_in_place = cubin_of(kManagedVariable + kPlainKernel);
    const std::string images[] = {own, image::fatbin({{kCubin, 90, 0, own}}),
                                  image::fatbin({{kCubin, 90, image::kZstd, image::zstd(own), own.size()}})};
    for (const std::string& image : images) {
        const Opened opened = open_image(asked_for(true), image, put_given);
        REQUIRE(opened.problem.empty());
        CHECK(seen_by_doors == own);
        CHECK(opened.code == Code::kCubin);
        CHECK(opened.unpacked == given_in_place);
        CHECK(opened.at == 0);
        CHECK(opened.bytes == given_in_place.size());
        CHECK(code_of(opened, image) == given_in_place);
        CHECK(opened.managed.variables.count("shared_with_host") == 1);
        CHECK(opened.managed.bytes > 0);
        CHECK(opened.architecture == 90);
        REQUIRE(opened.doors.size() == 1);
        CHECK(opened.doors[0].kernel == "k");
        bool unpacked = false;
        CHECK(decode_opened(encode(opened), image.size(), &unpacked));
        CHECK(unpacked);
    }
}

TEST_CASE("an image that gets no door is as it was", "[doors]") {
    const std::string own = cubin_of(kManagedVariable + kPlainKernel);
    given_in_place.clear();
    for (const std::string& image :
         {own, image::fatbin({{kCubin, 90, 0, own}}),
          image::fatbin({{kCubin, 90, image::kZstd, image::zstd(own), own.size()}})}) {
        const Opened plain = open_image(asked_for(false), image);
        CHECK(encode(open_image(asked_for(true), image, put_given)) == encode(plain));
        CHECK(encode(open_image(asked_for(true), image)) == encode(plain));
        seen_by_doors.clear();
        CHECK(encode(open_image(asked_for(false), image, put_given)) == encode(plain));
        CHECK(seen_by_doors.empty());
    }
    OpenOrder links = asked_for(true);
    links.links = true;
    CHECK(open_image(links, own, put_given).doors.empty());
    CHECK(seen_by_doors.empty());
}

TEST_CASE("the worker's kernels get doors, and managed forms none", "[doors]") {
    std::string text;
    for (const char* name : {"k", "smt_k", "_Z1kN3smt6LaunchE", "N3smt6LaunchEk"}) {
        std::string kernel = kPlainKernel;
        text += kernel.replace(kernel.find("k("), 1, name);
    }
    const std::string own = cubin_of(text);
    const Opened opened = open_with_doors(asked_for(true), own);
    REQUIRE(opened.problem.empty());
    CHECK(opened.unpacked.size() > own.size());
    std::map<std::string, Door> doors;
    for (const Door& door : opened.doors) doors[door.kernel] = door;
    REQUIRE(doors.size() == 4);
    for (const char* patched : {"k", "N3smt6LaunchEk"}) {
        INFO(patched);
        CHECK(doors[patched].reason.empty());
        CHECK(doors[patched].offset == 16);
        CHECK(doors[patched].registers > 0);
        CHECK_FALSE(doors[patched].waits);
    }
    for (const char* managed : {"smt_k", "_Z1kN3smt6LaunchE"})
        CHECK(doors[managed].reason == "it is a managed form");
    CHECK(open_with_doors(asked_for(false), own).unpacked.empty());
}

TEST_CASE("a cubin with managed forms only is loaded as it is", "[doors]") {
    std::string kernel = kPlainKernel;
    const std::string own = cubin_of(kernel.replace(kernel.find("k("), 1, "smt_k"));
    const Opened opened = open_with_doors(asked_for(true), own);
    CHECK(opened.unpacked.empty());
    REQUIRE(opened.doors.size() == 1);
    CHECK(opened.doors[0].reason == "it is a managed form");
    CHECK(code_of(opened, own) == own);
}
