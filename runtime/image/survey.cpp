#include "runtime/image/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace smt::image {

namespace {

// PTX that makes one module, and what is in it.
struct Texts {
    struct Kernel {
        PtxKernel ptx;
        size_t text;  // its number
    };
    std::vector<std::string> texts;
    std::vector<Kernel> kernels;
    std::map<std::string, size_t> by_name;  // into `kernels`
    std::string target;
    std::string problem;  // why one of the texts cannot be read
    size_t without = 0;   // images that have no text for the device

    const Kernel* find(const std::string& name) const {
        auto found = by_name.find(name);
        return found == by_name.end() ? nullptr : &kernels[found->second];
    }
};

std::string count_of(size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class Surveyor {
public:
    Surveyor(const Container& container, const Device& device, const Judge& judge)
        : container_(container), device_(device), judge_(judge) {}

    Survey run() {
        survey_.kind = container_.kind;
        for (const Found& found : container_.images) survey_.images.push_back(read_image(found));
        find_unused();
        for (const SurveyedImage& image : survey_.images)
            if (!image.used) add_text(image, linked_from_);
        for (size_t i = 0; i < survey_.images.size(); ++i)
            if (survey_.images[i].used) add_kernels(i);
        return std::move(survey_);
    }

private:
    SurveyedImage read_image(const Found& found) const {
        SurveyedImage image{found, {}, {}, true};
        if (is_empty_fatbin(found.bytes)) return image;
        auto entries = read(found.bytes);
        if (auto* problem = std::get_if<Problem>(&entries)) return image.problem = *problem, image;
        const auto& all = std::get<std::vector<Entry>>(entries);
        const Entry* chosen = choose(all, device_);
        for (const Entry& entry : all) {
            const bool plain = entry.kind == Kind::kCubin && entry.compression == Compression::kNone;
            image.entries.push_back({entry, plain && is_relocatable(entry.stored), &entry == chosen});
        }
        return image;
    }

    // In a program relocatable images are what another was linked from; elsewhere they wait for the linker.
    void find_unused() {
        if (container_.kind != FileKind::kProgram && container_.kind != FileKind::kLibrary) return;
        for (SurveyedImage& image : survey_.images) {
            image.used = image.found.place != Place::kRelocatable;
            for (SurveyedEntry& entry : image.entries) entry.chosen &= image.used;
        }
    }

    static std::vector<Entry> entries_of(const SurveyedImage& image) {
        std::vector<Entry> entries;
        for (const SurveyedEntry& each : image.entries) entries.push_back(each.entry);
        return entries;
    }

    // The PTX of the image that fits the device best goes to `texts`.
    void add_text(const SurveyedImage& image, Texts& texts) const {
        const std::vector<Entry> entries = entries_of(image);
        const Entry* best = best_ptx(entries, device_.architecture);
        if (!best) return void(++texts.without);
        texts.target = target_of(*best);
        auto text = expand(*best);
        if (auto* problem = std::get_if<Problem>(&text)) return void(texts.problem = problem->text);
        auto facts = ptx_facts(std::get<std::string>(text));
        if (auto* problem = std::get_if<Problem>(&facts)) return void(texts.problem = problem->text);
        for (PtxKernel& kernel : std::get<PtxFacts>(facts).kernels) {
            texts.by_name.emplace(kernel.facts.name, texts.kernels.size());
            texts.kernels.push_back({std::move(kernel), texts.texts.size()});
        }
        texts.texts.push_back(std::move(std::get<std::string>(text)));
    }

    void add_kernels(size_t number) {
        SurveyedImage& image = survey_.images[number];
        auto chosen =
            std::find_if(image.entries.begin(), image.entries.end(), [](auto& each) { return each.chosen; });
        if (chosen == image.entries.end()) return;
        Texts texts;
        add_text(image, texts);
        const ImageVerdict verdict = judge_ ? judge_(image.found.bytes) : ImageVerdict();
        if (chosen->entry.kind == Kind::kPtx) {
            if (!texts.problem.empty()) image.problem = Problem{"its PTX cannot be read: " + texts.problem};
            for (const Texts::Kernel& kernel : texts.kernels)
                add_kernel(number, kernel.ptx.facts, false, texts, verdict);
            return;
        }
        auto cubin = expand(chosen->entry);
        if (auto* problem = std::get_if<Problem>(&cubin)) return void(image.problem = *problem);
        chosen->relocatable = is_relocatable(std::get<std::string>(cubin));
        auto facts = kernel_facts(std::get<std::string>(cubin));
        if (auto* problem = std::get_if<Problem>(&facts)) return void(image.problem = *problem);
        for (KernelFacts& each : std::get<std::vector<KernelFacts>>(facts))
            if (each.kernel) add_kernel(number, std::move(each), true, texts, verdict);
    }

    void add_kernel(size_t image, KernelFacts facts, bool from_machine_code, const Texts& own,
                    const ImageVerdict& verdict) {
        SurveyedKernel kernel{std::move(facts), image, from_machine_code, false, {}};
        const std::string& name = kernel.facts.name;
        const bool linked = !own.find(name) && linked_from_.find(name);
        const Texts& texts = linked ? linked_from_ : own;
        const Texts::Kernel* text = texts.find(name);
        if (text) {
            kernel.cooperative = text->ptx.cooperative;
            if (!kernel.facts.shared_bytes) kernel.facts.shared_bytes = text->ptx.facts.shared_bytes;
        }
        const bool unlinked = is_unlinked(image);  // the server never sees it so
        kernel.verdict = text ? with_text(texts, unlinked) : without_text(image, own);
        if (verdict && !unlinked) kernel.verdict = judged(verdict(name), kernel.verdict);
        survey_.kernels.push_back(std::move(kernel));
    }

    bool is_unlinked(size_t image) const {
        const auto& entries = survey_.images[image].entries;
        if (survey_.images[image].found.place == Place::kRelocatable) return true;
        return std::any_of(entries.begin(), entries.end(),
                           [](auto& each) { return each.chosen && each.relocatable; });
    }

    // `seen`: what there is to be seen of it without a judge.
    static Verdict judged(Verdict verdict, const Verdict& seen) {
        if (verdict.management == Management::kPtx) return {Management::kPtx, seen.reason};
        if (verdict.management == Management::kUnmanaged && seen.management == Management::kHasPtx)
            verdict.reason = seen.reason + ", but " + verdict.reason;
        return verdict;
    }

    Verdict with_text(const Texts& texts, bool unlinked) const {
        std::string what = "PTX for " + texts.target;
        if (unlinked) what += ", relocatable: before a program has it, it is linked";
        if (&texts == &linked_from_) {
            what += fmt::format(", in __nv_relfatbin: {} to be linked", count_of(texts.texts.size(), "text"));
            if (texts.without) what += fmt::format(" with {} without PTX", count_of(texts.without, "image"));
            if (!texts.problem.empty()) what += ", one of which cannot be read: " + texts.problem;
        }
        return {Management::kHasPtx, what};
    }

    // Why a kernel of machine code has no PTX.
    Verdict without_text(size_t image, const Texts& own) const {
        const bool linked = survey_.images[image].found.linked;
        const std::string& problem = linked ? linked_from_.problem : own.problem;
        if (!problem.empty()) return {Management::kUnmanaged, "its PTX cannot be read: " + problem};
        std::string targets;
        bool link_time = false;
        for (const SurveyedEntry& each : survey_.images[image].entries) {
            link_time |= each.entry.kind == Kind::kOther;
            if (each.entry.kind == Kind::kPtx)
                targets += (targets.empty() ? "" : ", ") + target_of(each.entry);
        }
        if (!own.kernels.empty())
            return {Management::kUnmanaged, "machine code alone: the image's PTX does not define it"};
        if (!targets.empty())
            return {Management::kUnmanaged,
                    "machine code alone: its PTX is for other devices (" + targets + ")"};
        if (link_time)
            return {Management::kUnmanaged,
                    "machine code alone: beside it is link-time code, which only NVIDIA's linker reads"};
        return {Management::kUnmanaged, "machine code alone"};
    }

    const Container& container_;
    const Device& device_;
    const Judge& judge_;
    Survey survey_;
    Texts linked_from_;  // the PTX of relocatable code
};

}  // namespace

const char* name(Management management) {
    static constexpr const char* kNames[] = {"managed by source", "managed by PTX", "has PTX", "unmanaged"};
    return kNames[static_cast<int>(management)];
}

std::variant<Survey, Problem> survey_file(std::string_view file, const Device& device, const Judge& judge) {
    auto container = find_images(file);
    if (auto* problem = std::get_if<Problem>(&container)) return *problem;
    return Surveyor(std::get<Container>(container), device, judge).run();
}

int newest_architecture(const std::vector<Found>& images) {
    int newest = 0;
    for (const Found& found : images) {
        auto entries = read(found.bytes);
        auto* all = std::get_if<std::vector<Entry>>(&entries);
        for (size_t i = 0; all && i < all->size(); ++i) newest = std::max(newest, (*all)[i].architecture);
    }
    return newest;
}

}  // namespace smt::image
