// What a file holds for one device: its images, which entry of each the driver loads, and the kernels of
// those with their resources and how smt can manage them.
//
//   Survey survey = survey_file(bytes, {.architecture = 90}, judge);
//
// A kernel is managed from source if an index knows it, else from its PTX if the rewriter takes that, else
// it is unmanaged. That is for the server to say, as a Judge; without one nothing is guessed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/choice.h"
#include "runtime/image/container.h"
#include "runtime/image/ptx_facts.h"

namespace smt::image {

enum class Management : uint8_t {
    kSource,  // managed, from source
    kPtx,     // managed, from its PTX
    kHasPtx,  // there is PTX that was not judged
    kUnmanaged,
};

const char* name(Management management);  // in words

struct Verdict {
    Management management = Management::kUnmanaged;
    std::string reason;
    bool operator==(const Verdict&) const = default;
};

// What becomes of an image when it is loaded, as a function of a kernel's symbol: by what it is managed, or
// that it is unmanaged, and then the reason.
using ImageVerdict = std::function<Verdict(const std::string& kernel)>;
// Asked once for each image that the device would load; `image` is all of its bytes.
using Judge = std::function<ImageVerdict(std::string_view image)>;

struct SurveyedEntry {
    Entry entry;
    bool relocatable =
        false;  // a cubin that only the linker takes; unknown of compressed ones that were not chosen
    bool chosen = false;  // the driver loads it on this device
};

struct SurveyedImage {
    Found found;
    std::vector<SurveyedEntry> entries;
    // What is wrong with it or with the entry that the driver would load.
    std::optional<Problem> problem;
    bool used = true;  // false: what another image of this file was linked from
};

struct SurveyedKernel {
    KernelFacts facts;
    size_t image = 0;
    bool from_machine_code = false;  // else the facts are those of its PTX
    bool cooperative = false;        // its PTX waits for the whole grid
    Verdict verdict;
};

struct Survey {
    FileKind kind = FileKind::kFatbin;
    std::vector<SurveyedImage> images;
    std::vector<SurveyedKernel> kernels;  // by image, each in its own order
};

// Entries view `file`.
[[nodiscard]] std::variant<Survey, Problem> survey_file(std::string_view file, const Device& device,
                                                        const Judge& judge);

// The newest architecture that the images of a file hold something for; 0: they name none.
int newest_architecture(const std::vector<Found>& images);

}  // namespace smt::image
