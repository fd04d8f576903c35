// Files of any kind that smt inspect may be given, and images that the server checks before its driver gets
// them: what is found lies in the file, and is said in words.
#include <cstdlib>

#include "runtime/image/survey.h"

namespace {

using namespace smt::image;

bool within(std::string_view part, std::string_view file) {
    return part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size();
}

void check_survey(std::string_view file, int architecture) {
    const Judge judge = [](std::string_view) -> ImageVerdict {
        return [](const std::string& kernel) {
            return kernel == "k" ? Verdict{Management::kPtx, ""}
                                 : Verdict{Management::kUnmanaged, "it is other"};
        };
    };
    auto survey = survey_file(file, {architecture}, judge);
    auto* found = std::get_if<Survey>(&survey);
    if (!found) return std::get<Problem>(survey).text.empty() ? std::abort() : void();
    for (const SurveyedImage& image : found->images)
        if (!within(image.found.bytes, file) || image.found.bytes.data() != file.data() + image.found.offset)
            std::abort();
    for (const SurveyedKernel& kernel : found->kernels)
        if (kernel.image >= found->images.size() || kernel.verdict.reason.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    std::string_view file(reinterpret_cast<const char*>(data), size);
    for (int architecture : {75, 90}) check_survey(file, architecture);
    if (auto problem = check(file); problem && problem->text.empty()) std::abort();
    return 0;
}
