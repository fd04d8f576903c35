// What smt inspect prints, as text.
#include <catch2/catch.hpp>

#include "tools/smt/command.h"
#include "tools/smt/inspect_view.h"
#include "tools/smt/mapped_file.h"

namespace smt::tools {
namespace {

const std::string kCorpus = SMT_IMAGE_CORPUS;

std::string inspected(const std::string& path, int architecture) {
    MappedFile file(path);
    auto survey = image::survey_file(file.bytes(), {architecture}, {});
    return inspect_text("it", architecture, std::get<image::Survey>(survey));
}

TEST_CASE("smt inspect as text", "[command]") {
    CHECK(inspected(kCorpus + "/zstd", 90) == R"(it: a fatbin, 1 image
image 0: 1280 bytes at 0
  cubin sm_90        3440 bytes, zstd as 923  <- runs
  ptx   compute_90   253 bytes, zstd as 188

On sm_90:
k
  has PTX: PTX for compute_90
  image 0: 8 registers, shared 0 bytes, local 0 bytes, 0 barriers
  parameters 0:8
1 kernel: 1 with PTX
)");
    CHECK(inspected(kCorpus + "/cubin", 90) == R"(it: a cubin, 1 image
image 0: 2856 bytes at 0
  cubin sm_75        2856 bytes
  nothing here runs on sm_90

On sm_90:
0 kernels
)");
}

TEST_CASE("a fatbin without entries is empty, not broken", "[command]") {
    const std::string empty("\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0", 16);
    auto survey = image::survey_file(empty, {90}, {});
    CHECK(inspect_text("it", 90, std::get<image::Survey>(survey)) == R"(it: a fatbin, 1 image
image 0: 16 bytes at 0
  empty: it holds no code

On sm_90:
0 kernels
)");
}

TEST_CASE("smt inspect says what is wrong with its file or its command line", "[command]") {
    auto problem = [](const Arguments& arguments) -> std::string {
        try {
            inspect_command.run(arguments);
        } catch (const std::exception& error) {
            return error.what();
        }
        return "";
    };
    CHECK(problem({"/nowhere"}).starts_with("cannot read /nowhere: No such file or directory."));
    CHECK(problem({"/tmp"}).starts_with("cannot read /tmp: it is a folder."));
    CHECK(problem({"/etc/passwd"}).ends_with("is no program, library, object, fatbin, cubin or PTX text"));
    CHECK(problem({kCorpus + "/zstd", "--arch", "new"}) ==
          "--arch takes an architecture like sm_90, not 'new'");
    CHECK(problem({kCorpus + "/zstd", "--arch", "sm_90x"}) ==
          "--arch takes an architecture like sm_90, not 'sm_90x'");
    CHECK_THROWS_AS(inspect_command.run({}), Misuse);
    CHECK_THROWS_AS(inspect_command.run({"one", "two"}), Misuse);
}

TEST_CASE("options may stand behind operands", "[command]") {
    Options options = parse_options({"a", "--json", "b", "--", "--c"}, {"--json"}, {}, Operands::kMixed);
    CHECK(options.has("--json"));
    CHECK(options.operands == Arguments{"a", "b", "--c"});
}

}  // namespace
}  // namespace smt::tools
