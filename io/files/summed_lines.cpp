#include "io/files/summed_lines.h"

#include <fmt/core.h>

#include <span>
#include <utility>

#include "core/base/error.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

constexpr size_t kSumDigits = 8;

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

/// The checksum of the next line, which then counts as read or written.
std::string LineSums::next_sum(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  if (lines_ == 0) first_ = checksum64(bytes);
  const auto number = static_cast<uint64_t>(lines_++);
  RunningChecksum sum;
  sum.add(bytes_of(first_));
  sum.add(bytes_of(number));
  sum.add(bytes);
  return fmt::format("{:0{}x}", static_cast<uint32_t>(sum.digest()), kSumDigits);
}

std::string LineSums::add(std::string_view text) {
  return std::string(text) + " " + next_sum(text) + "\n";
}

std::optional<std::string_view> LineSums::take(std::string_view line) {
  if (line.size() <= kSumDigits || line[line.size() - kSumDigits - 1] != ' ') return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - kSumDigits - 1);
  if (line.substr(text.size() + 1) != next_sum(text)) return std::nullopt;
  return text;
}

SummedLineReader::SummedLineReader(const std::filesystem::path& path, std::string text)
    : path_(path), text_(std::move(text)) {}

std::optional<std::string> SummedLineReader::next(std::string_view advice) {
  const auto begin = static_cast<size_t>(bytes_);
  const size_t end = text_.find('\n', begin);
  if (end == std::string::npos) return std::nullopt;
  const int64_t number = sums_.lines() + 1;
  const auto text = sums_.take(std::string_view(text_).substr(begin, end - begin));
  if (!text) {
    throw file_error(
        path_.string(), fmt::format("line {}", number),
        "is damaged: its checksum is wrong" + (advice.empty() ? "" : fmt::format(" ({})", advice)));
  }
  bytes_ = static_cast<int64_t>(end) + 1;
  return std::string(*text);
}

}  // namespace attnscope
