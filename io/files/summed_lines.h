#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace attnscope {

/// The checksums of a list of lines, in the order of the list: each line ends with a space and, in
/// 8 hexadecimal digits, the low 32 bits of the XXH3-64 of the first line's XXH3-64 (uint64), the
/// line's number from 0 on (uint64) and its text. So no line is believed that was changed, that
/// stands elsewhere, or that is of a list with another first line. A value.
class LineSums {
 public:
  /// The list's next line, with its checksum and its line break.
  std::string add(std::string_view text);
  /// The text of the list's next line, which has no line break any more; nothing where it is not as
  /// it was written.
  std::optional<std::string_view> take(std::string_view line);
  int64_t lines() const { return lines_; }

 private:
  std::string next_sum(std::string_view text);

  uint64_t first_ = 0;  ///< hash of the first line's text
  int64_t lines_ = 0;
};

/// Reads such a list from its front. What has no line break was not written to its end: the list
/// ends before it. Not thread-safe.
class SummedLineReader {
 public:
  /// `text` is all that the file at `path` holds, which messages name.
  SummedLineReader(const std::filesystem::path& path, std::string text);

  /// The next line's text; nothing at the end. Throws Error(file) that names the line where it is
  /// not as it was written; `advice` is what helps then, in brackets, or empty.
  std::optional<std::string> next(std::string_view advice);
  /// Bytes of the lines that were read, and their checksums: where a writer goes on.
  int64_t bytes() const { return bytes_; }
  const LineSums& sums() const { return sums_; }

 private:
  std::filesystem::path path_;
  std::string text_;
  LineSums sums_;
  int64_t bytes_ = 0;
};

}  // namespace attnscope
