#include "io/capture/rank_folders.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// A number as it is written without zeros before it.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::to_string(value) == text ? std::optional(value) : std::nullopt;
}

std::optional<RankFolder> rank_folder(const fs::path& path) {
  constexpr std::string_view kBefore = "rank-", kBetween = "-of-";
  const std::string name = path.filename().string();
  const size_t between = name.find(kBetween);
  if (!name.starts_with(kBefore) || between == std::string::npos) return std::nullopt;
  const std::string_view text = name;
  const auto rank = whole_number(text.substr(kBefore.size(), between - kBefore.size()));
  const auto ranks = whole_number(text.substr(between + kBetween.size()));
  if (!rank || !ranks || *rank < 0 || *ranks < 1) return std::nullopt;
  return RankFolder{path, *rank, *ranks};
}

}  // namespace

std::vector<RankFolder> rank_folders(const fs::path& folder) {
  std::vector<RankFolder> found;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code ignored;
    if (!item->is_directory(ignored)) continue;
    if (auto one = rank_folder(item->path())) found.push_back(std::move(*one));
  }
  std::sort(found.begin(), found.end(), [](const RankFolder& a, const RankFolder& b) {
    return std::tie(a.ranks, a.rank) < std::tie(b.ranks, b.rank);
  });
  return found;
}

}  // namespace attnscope
