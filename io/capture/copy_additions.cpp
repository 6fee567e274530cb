#include "io/capture/copy_additions.h"

// Additions to a copy of a capture that were not recorded: text tokens and pictures.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTokenBytes = 16 << 20;
constexpr int64_t kMaxTokenValues = 1 << 20;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> string_list(const Json& json, const std::string& file) {
  std::vector<std::string> list;
  if (!json.is_array()) throw file_error(file, "", "expected a list of strings");
  for (const Json& item : json) {
    if (!item.is_string()) {
      throw file_error(file, "entry " + std::to_string(list.size()),
                       "expected a string (got " + one_line(item.dump()) + ")");
    }
    list.push_back(item.get<std::string>());
  }
  return list;
}

/// Digits as numbers, so that frame10 comes after frame9.
bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto number = [&](const std::string& text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string x = number(a, i), y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

std::vector<std::vector<std::string>> read_token_file(const fs::path& path) {
  const std::string name = path.string();
  const std::string text = read_file_text(path, "text tokens", kMaxTokenBytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw file_error(name, "", "is empty");
  if (text[first] != '[') return {lines_of(text)};
  const Json json = parse_strict_json(text, name, "", {.values = kMaxTokenValues});
  if (json.empty() || !json.front().is_array()) return {string_list(json, name)};
  std::vector<std::vector<std::string>> lists;
  for (const Json& list : json) lists.push_back(string_list(list, name));
  return lists;
}

std::vector<fs::path> frame_pictures(const fs::path& folder, int64_t frames) {
  std::vector<fs::path> pictures;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    if (item->path().extension() == ".png") pictures.push_back(item->path());
  }
  if (error) throw file_error(folder.string(), "", "cannot be read: " + error.message());
  std::sort(pictures.begin(), pictures.end(), [](const fs::path& a, const fs::path& b) {
    return comes_before(a.filename().string(), b.filename().string());
  });
  const auto count = static_cast<int64_t>(pictures.size());
  if (count == frames) return pictures;
  if (frames < 2 || count < frames || (count - 1) % (frames - 1) != 0) {
    throw usage_error("--video-frames " + folder.string() + ": has " + std::to_string(count) +
                      " .png files; expected " + std::to_string(frames) +
                      ", one a latent frame, or all of the video (1 + n x " +
                      std::to_string(frames - 1) + ")");
  }
  // The first latent frame is one of the video, every other one `step`.
  const int64_t step = (count - 1) / (frames - 1);
  std::vector<fs::path> chosen{pictures.front()};
  for (int64_t t = 1; t < frames; ++t) {
    chosen.push_back(pictures[static_cast<size_t>(1 + (t - 1) * step)]);
  }
  return chosen;
}

}  // namespace attnscope
