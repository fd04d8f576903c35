#include "tools/smt/inspect_view.h"

#include <fmt/format.h>

#include <array>

#include "tools/smt/json.h"
#include "tools/smt/log_view.h"

namespace smt::tools {

using namespace image;

namespace {

constexpr const char* kKinds[] = {"ptx", "cubin", "other"};
constexpr const char* kCompressions[] = {"none", "lz4", "zstd"};

const char* section_of(Place place) {
    return place == Place::kItself ? "" : place == Place::kRegistered ? ".nv_fatbin" : "__nv_relfatbin";
}

bool is_said(const Shape& shape) { return shape != Shape{}; }

std::string text_of(const Shape& shape) { return fmt::format("{}x{}x{}", shape[0], shape[1], shape[2]); }

// ---- text

std::string count_of(uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string image_line(size_t number, const SurveyedImage& image) {
    std::string line =
        fmt::format("image {}: {} bytes at {}", number, image.found.bytes.size(), image.found.offset);
    if (image.found.place != Place::kItself) line += fmt::format(", {}", section_of(image.found.place));
    if (!image.found.member.empty()) line += fmt::format(" of {}", image.found.member);
    if (image.found.linked) line += ", linked from relocatable device code";
    if (!image.used) line += ", not loaded: another image was linked from it";
    return line + "\n";
}

std::string entry_line(const SurveyedEntry& each) {
    const Entry& entry = each.entry;
    std::string size =
        entry.compression == Compression::kNone
            ? fmt::format("{} bytes", entry.bytes)
            : fmt::format("{} bytes, {} as {}", entry.bytes,
                          kCompressions[static_cast<int>(entry.compression)], entry.stored.size());
    return fmt::format("  {:<6}{:<13}{}{}{}\n", kKinds[static_cast<int>(entry.kind)], target_of(entry), size,
                       each.relocatable ? ", relocatable" : "", each.chosen ? "  <- runs" : "");
}

std::string limits_of(const SurveyedKernel& kernel) {
    const KernelFacts& facts = kernel.facts;
    std::string text;
    if (is_said(facts.required_block)) text += ", blocks of " + text_of(facts.required_block);
    if (is_said(facts.most_threads)) text += ", blocks of at most " + text_of(facts.most_threads);
    if (is_said(facts.cluster)) text += ", clusters of " + text_of(facts.cluster);
    if (facts.most_cluster_blocks) text += fmt::format(", clusters of at most {}", facts.most_cluster_blocks);
    if (facts.explicit_cluster) text += ", synchronises its cluster";
    if (kernel.cooperative) text += ", waits for its grid";
    return text;
}

std::string resources_of(const SurveyedKernel& kernel) {
    const KernelFacts& facts = kernel.facts;
    std::string shared = facts.shared_bytes ? fmt::format("{} bytes", *facts.shared_bytes) : "unlinked";
    if (!kernel.from_machine_code)
        return fmt::format("shared {}; the rest is known when it is compiled", shared);
    return fmt::format("{}, shared {}, local {} bytes, {}", count_of(facts.registers, "register"), shared,
                       facts.stack_bytes, count_of(facts.barriers, "barrier"));
}

std::string kernel_lines(const SurveyedKernel& kernel) {
    std::string parameters;
    for (const Parameter& each : kernel.facts.parameters)
        parameters += fmt::format(" {}:{}", each.offset, each.bytes);
    return fmt::format("{}\n  {}: {}\n  image {}: {}{}\n  parameters{}\n", demangle(kernel.facts.name),
                       name(kernel.verdict.management), kernel.verdict.reason, kernel.image,
                       resources_of(kernel), limits_of(kernel), parameters.empty() ? " none" : parameters);
}

std::string summary_of(const Survey& survey) {
    static constexpr const char* kWords[] = {"managed by source", "managed by PTX", "with PTX", "unmanaged"};
    std::array<size_t, 4> counts{};
    for (const SurveyedKernel& kernel : survey.kernels)
        ++counts[static_cast<size_t>(kernel.verdict.management)];
    std::string text = count_of(survey.kernels.size(), "kernel");
    const char* separator = ": ";
    for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == 0) continue;
        text += fmt::format("{}{} {}", separator, counts[i], kWords[i]);
        separator = ", ";
    }
    return text + "\n";
}

// ---- JSON

template <typename Items, typename Text>
std::string json_list(const Items& items, Text&& text) {
    std::string list;
    for (const auto& item : items) list += (list.empty() ? "" : ",") + text(item);
    return "[" + list + "]";
}

std::string json_shape(const Shape& shape) {
    return is_said(shape) ? fmt::format("[{},{},{}]", shape[0], shape[1], shape[2]) : "null";
}

std::string json_of(const SurveyedEntry& each) {
    const Entry& entry = each.entry;
    return fmt::format(
        R"({{"kind":{},"target":{},"compression":{},"stored":{},"bytes":{},"relocatable":{},"runs":{}}})",
        json_string(kKinds[static_cast<int>(entry.kind)]), json_string(target_of(entry)),
        json_string(kCompressions[static_cast<int>(entry.compression)]), entry.stored.size(), entry.bytes,
        each.relocatable, each.chosen);
}

std::string json_of(const SurveyedImage& image) {
    return fmt::format(
        R"({{"section":{},"member":{},"offset":{},"bytes":{},"linked":{},"loaded":{},"problem":{},)"
        R"("entries":{}}})",
        json_string(section_of(image.found.place)), json_string(image.found.member), image.found.offset,
        image.found.bytes.size(), image.found.linked, image.used,
        image.problem ? json_string(image.problem->text) : "null",
        json_list(image.entries, [](const SurveyedEntry& each) { return json_of(each); }));
}

std::string json_of(const SurveyedKernel& kernel) {
    const KernelFacts& facts = kernel.facts;
    auto compiled = [&](uint32_t value) {
        return kernel.from_machine_code ? fmt::format("{}", value) : "null";
    };
    std::string text =
        fmt::format(R"({{"name":{},"demangled":{},"image":{},"management":{},"reason":{},)",
                    json_string(facts.name), json_string(demangle(facts.name)), kernel.image,
                    json_string(name(kernel.verdict.management)), json_string(kernel.verdict.reason));
    text += fmt::format(R"("registers":{},"shared":{},"local":{},"barriers":{},)", compiled(facts.registers),
                        facts.shared_bytes ? fmt::format("{}", *facts.shared_bytes) : "null",
                        compiled(facts.stack_bytes), compiled(facts.barriers));
    text += fmt::format(R"("most_threads":{},"block":{},"cluster":{},"most_cluster_blocks":{},)",
                        json_shape(facts.most_threads), json_shape(facts.required_block),
                        json_shape(facts.cluster), facts.most_cluster_blocks);
    text +=
        fmt::format(R"("explicit_cluster":{},"cooperative":{},)", facts.explicit_cluster, kernel.cooperative);
    return text +
           fmt::format(R"("parameters":{}}})", json_list(facts.parameters, [](const Parameter& each) {
                           return fmt::format(R"({{"offset":{},"bytes":{}}})", each.offset, each.bytes);
                       }));
}

}  // namespace

std::string inspect_text(const std::string& path, int architecture, const Survey& survey) {
    std::string text =
        fmt::format("{}: {}, {}\n", path, name(survey.kind), count_of(survey.images.size(), "image"));
    for (size_t i = 0; i < survey.images.size(); ++i) {
        const SurveyedImage& image = survey.images[i];
        text += image_line(i, image);
        bool runs = false;
        for (const SurveyedEntry& entry : image.entries) {
            text += entry_line(entry);
            runs |= entry.chosen;
        }
        if (image.problem) text += fmt::format("  broken: {}\n", image.problem->text);
        if (image.entries.empty() && !image.problem)
            text += "  empty: it holds no code\n";
        else if (!runs && image.used && !image.problem)
            text += fmt::format("  nothing here runs on sm_{}\n", architecture);
    }
    text += fmt::format("\nOn sm_{}:\n", architecture);
    for (const SurveyedKernel& kernel : survey.kernels) text += kernel_lines(kernel);
    return text + summary_of(survey);
}

std::string inspect_json(const std::string& path, int architecture, const Survey& survey) {
    return fmt::format(
        "{{\"file\":{},\"kind\":{},\"architecture\":{},\n\"images\":{},\n\"kernels\":{}}}\n",
        json_string(path), json_string(name(survey.kind)), architecture,
        json_list(survey.images, [](const SurveyedImage& each) { return "\n" + json_of(each); }),
        json_list(survey.kernels, [](const SurveyedKernel& each) { return "\n" + json_of(each); }));
}

}  // namespace smt::tools
