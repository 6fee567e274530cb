#include "core/patterns/edit_sweep.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr size_t kMostEdits = 256;
constexpr const char* kShares = "keep=0.05/0.1/0.2/0.3/0.5/0.75";

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0;; ++begin) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end;
  }
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::string text_of(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// The values of FROM..TO:COUNT, or those of a list.
std::vector<std::string> values_of(const std::string& text, const std::string& where) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return split(text, '/');
  const size_t colon = text.find(':', dots);
  const auto refuse = [&]() -> Error {
    return usage_error(where + ": " + text + ": expected FROM..TO:COUNT, COUNT from 2 to " +
                       std::to_string(kMostEdits) + ", or a list A/B/C");
  };
  if (colon == std::string::npos) throw refuse();
  const std::string_view whole(text);
  const auto from = number_of(whole.substr(0, dots));
  const auto to = number_of(whole.substr(dots + 2, colon - dots - 2));
  const auto count = number_of(whole.substr(colon + 1));
  if (!from || !to || !count) throw refuse();
  if (!(*count >= 2) || *count > double{kMostEdits}) throw refuse();
  const auto steps = static_cast<int64_t>(*count);
  if (static_cast<double>(steps) != *count) throw refuse();
  std::vector<std::string> values;
  for (int64_t i = 0; i < steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps - 1);
    values.push_back(text_of(*from + (*to - *from) * share));
  }
  return values;
}

}  // namespace

std::vector<std::string> swept_edits(const std::string& text, const std::string& option) {
  const std::string extension = std::filesystem::path(text).extension().string();
  if (extension == ".npy" || extension == ".json") return {text};
  if (text == "dense") return {"none"};
  const size_t colon = text.find(':');
  std::vector<std::string> edits{text.substr(0, colon)};
  if (colon == std::string::npos) return edits;
  const std::string where = option + " " + text;
  bool first = true;
  for (const std::string& part : split(std::string_view(text).substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string key = equals == std::string::npos ? "" : part.substr(0, equals + 1);
    const std::vector<std::string> values = values_of(part.substr(key.size()), where);
    if (edits.size() * values.size() > kMostEdits) {
      throw usage_error(where + ": stands for more than " + std::to_string(kMostEdits) + " edits");
    }
    std::vector<std::string> longer;
    for (const std::string& edit : edits) {
      for (const std::string& value : values) {
        longer.push_back(edit + (first ? ":" : ",") + key + value);
      }
    }
    edits = std::move(longer);
    first = false;
  }
  return edits;
}

std::string usual_sweep(const std::string& name) {
  if (name.find(':') != std::string::npos) return name;
  static const std::vector<std::pair<std::string, std::string>> sweeps{
      {"sol", "tau=0/0.5/1/1.5/2"},
      {"subblock", "keep=0.1/0.15/0.25/0.5/0.75"},
      {"vsa", kShares},
      {"sla", kShares},
      {"dfs", kShares},
      {"draft", kShares},
      {"topk", kShares},
      {"block-oracle", kShares},
      {"sparge", "cdf=0.5/0.7/0.8/0.9/0.95/0.98"},
      {"nabla", "p=0.5/0.7/0.8/0.9/0.95"},
      {"topp", "p=0.5/0.7/0.8/0.9/0.95"},
      {"xattention", "p=0.5/0.7/0.8/0.9/0.95"},
      {"skip-softmax", "lambda=0.0001/0.001/0.01/0.1"},
      {"sta", "window=1x1x1/1x3x3/3x1x1/3x3x3/3x5x5/5x3x3/5x5x5"},
      {"tiles", "window=1x1x1/1x3x3/3x1x1/3x3x3/3x5x5/5x3x3/5x5x5"},
      {"spatial", "frames=0/1/2/4"},
      {"radial", "decay=0.25/0.5/1/2"}};
  for (const auto& [known, values] : sweeps) {
    if (known == name) return name + ":" + values;
  }
  return name;
}

}  // namespace attnscope
