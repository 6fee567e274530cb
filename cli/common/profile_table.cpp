#include "cli/common/profile_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace attnscope {
namespace {

using Line = std::vector<std::string>;

constexpr size_t kLeftColumns = 3;  ///< names; numbers are aligned at the right

const Line& headings() {
  static const Line line{"device",    "kernel",    "product",   "launches", "grid",  "threads",
                         "registers", "shared",    "blocks/SM", "warps %",  "waves", "splits",
                         "ms",        "us/launch", "TFLOP/s",   "GB/s",     "remark"};
  return line;
}

std::string number_or_dash(bool known, int64_t value) {
  return known ? std::to_string(value) : "-";
}

Line line_of(const LaunchProfile& p) {
  const bool shaped = p.has_shape();
  const auto launches = static_cast<double>(std::max<int64_t>(1, p.launches));
  const auto rate = [&](double amount, double unit) {
    return amount > 0 && p.seconds > 0 ? fmt::format("{:.4g}", amount / p.seconds / unit) : "-";
  };
  const auto at_once = static_cast<double>(int64_t{p.multiprocessors} * p.resident_blocks);
  const double waves = at_once > 0 ? static_cast<double>(p.blocks()) / at_once : 0;
  return {p.device,
          p.kernel,
          p.product.empty() ? "-" : p.product,
          std::to_string(p.launches),
          shaped ? fmt::format("{}x{}x{}", p.grid[0], p.grid[1], p.grid[2]) : "-",
          number_or_dash(shaped, p.threads),
          number_or_dash(shaped, p.registers),
          number_or_dash(shaped, p.shared_bytes),
          number_or_dash(shaped, p.resident_blocks),
          shaped ? fmt::format("{:.0f}", 100 * p.occupancy) : "-",
          shaped ? fmt::format("{:.2f}", waves) : "-",
          number_or_dash(p.splits > 0, p.splits),
          fmt::format("{:.3f}", 1e3 * p.seconds),
          fmt::format("{:.2f}", 1e6 * p.seconds / launches),
          rate(p.flops, 1e12),
          rate(p.bytes, 1e9),
          p.fills_device() ? "-"
                           : fmt::format("idle: {} of {} SMs", p.multiprocessors - p.blocks(),
                                         p.multiprocessors)};
}

}  // namespace

std::string profile_table(std::span<const LaunchProfile> profiles) {
  std::vector<Line> lines{headings()};
  for (const LaunchProfile& profile : profiles) lines.push_back(line_of(profile));
  std::vector<size_t> widths(headings().size());
  for (const Line& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (const Line& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string space(widths[c] - line[c].size(), ' ');
      if (c + 1 == line.size()) {
        text += line[c];
      } else {
        text += (c < kLeftColumns ? line[c] + space : space + line[c]) + "  ";
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace attnscope
