// Curves of profiles as an SVG picture (profile_rows.h): two charts, one line a kernel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/smt/profile_rows.h"

namespace smt::tools {

namespace {

constexpr double kWidth = 420, kHeight = 300, kMargin = 60, kLegendLine = 18;
// Distinct for most eyes (Okabe and Ito), then with dashes.
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000"};
constexpr std::array<const char*, 4> kDashes = {"none", "6 3", "2 3", "8 3 2 3"};

using Points = std::vector<std::pair<double, double>>;

struct Line {
    size_t style = 0;
    Points points;
};

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text)
        safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return safe;
}

std::string style(size_t index) {
    return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\" fill=\"none\" stroke-width=\"1.5\"",
                       kColours[index % kColours.size()], kDashes[index / kColours.size() % kDashes.size()]);
}

// From 0 to the largest of each axis.
std::string chart(double left, const std::string& title, const std::string& below,
                  const std::vector<Line>& lines, bool logarithmic) {
    const auto place = [&](double x) { return logarithmic ? std::log2(std::max(1.0, x)) : x; };
    double most_x = 1e-9, most_y = 1e-9;
    for (const Line& line : lines) {
        for (const auto& [x, y] : line.points)
            most_x = std::max(most_x, place(x)), most_y = std::max(most_y, y);
    }
    const auto at_x = [&](double x) { return left + place(x) / most_x * kWidth; };
    const auto at_y = [&](double y) { return kMargin + kHeight - y / most_y * kHeight; };
    std::string svg = fmt::format(
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n<path d=\"M{} {}V{}H{}\" stroke=\"#333\" "
        "fill=\"none\"/>\n",
        left, kMargin - 20, title, left, kMargin, kMargin + kHeight, left + kWidth);
    constexpr int kTicks = 4;
    for (int i = 0; i <= kTicks; ++i) {
        const double y = most_y * i / kTicks, x = most_x * i / kTicks;
        svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>\n", left - 6,
                           at_y(y) + 4, y);
        svg +=
            fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.3g}</text>\n",
                        left + x / most_x * kWidth, kMargin + kHeight + 18, logarithmic ? std::exp2(x) : x);
    }
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", left + kWidth / 2,
                       kMargin + kHeight + 38, below);
    for (const Line& line : lines) {
        std::string path;
        for (const auto& [x, y] : line.points) path += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
        svg += fmt::format("<polyline points=\"{}\" {}/>\n", path, style(line.style));
    }
    return svg;
}

}  // namespace

std::string plot_of(const std::vector<ProfileRow>& rows) {
    std::vector<Line> by_ctas, by_sms;
    std::string legend;
    double next = kMargin + kHeight + 60;
    size_t index = 0;
    for (const ProfileRow& row : rows) {
        if (row.by_ctas.points.empty() && row.by_sms.points.empty()) continue;
        const double best = [&] {
            double least = INFINITY;
            for (const auto& [ctas, each] : row.by_ctas.points) least = std::min(least, each);
            return least;
        }();
        Line time{index, {}}, throughput{index, {}};
        for (const auto& [ctas, each] : row.by_ctas.points) time.points.emplace_back(ctas, each / best);
        const double whole = row.by_sms.points.empty() ? 1 : row.by_sms.points.back().second;
        for (const auto& [sms, each] : row.by_sms.points) throughput.points.emplace_back(sms, whole / each);
        if (!time.points.empty()) by_ctas.push_back(std::move(time));
        if (!throughput.points.empty()) by_sms.push_back(std::move(throughput));
        legend += fmt::format(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n<text x=\"{}\" y=\"{}\">{} ({}, 2^{} "
            "blocks)</text>\n",
            kMargin, next, kMargin + 40, next, style(index), kMargin + 48, next + 4, escaped(row.name),
            fmt::join(row.profile->key.block, "x"), row.profile->key.grid_class);
        next += kLegendLine;
        ++index;
    }
    if (index == 0) return "";
    const double second = 2 * kMargin + kWidth + 20;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{2}{3}{4}</svg>\n",
        second + kWidth + kMargin, next + kMargin / 2,
        chart(kMargin, "Time, of the best", "CTAs on each multiprocessor", by_ctas, false),
        chart(second, "Throughput, of all multiprocessors'", "multiprocessors (by doubling)", by_sms, true),
        legend);
}

}  // namespace smt::tools
