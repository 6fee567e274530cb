#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// What a file's name says.
struct NameFields {
  std::optional<int64_t> step, layer, head;
  std::string branch, kind, name;
  std::string role;  ///< q, k, v; empty: the file holds them all
};

/// A pattern of file names: literal text with {step} {layer} {head} (digits), {branch} {kind}
/// {name} (any text), and one {q|k} or {q|k|v}, which matches q, query, Q and so on. Each
/// placeholder at most once.
class NamePattern {
 public:
  /// Throws Error(usage) where the text is no such pattern.
  explicit NamePattern(const std::string& text);
  /// What the name says, where the pattern fits all of it.
  std::optional<NameFields> match(std::string_view file_name) const;
  const std::string& text() const { return text_; }
  bool has_role() const { return has_role_; }

 private:
  struct WorkItem {
    std::string text;  ///< the literal, or the placeholder's name
    bool placeholder = false;
  };
  bool match_from(size_t piece, std::string_view rest, NameFields& fields) const;

  std::string text_;
  std::vector<WorkItem> pieces_;
  bool has_role_ = false;
};

/// The patterns that are tried where none is given, most telling first.
std::span<const std::string> common_patterns();

/// The files of one call: by role ("" where a file holds all), in the order of their heads.
struct NamedCall {
  NameFields fields;  ///< head and role are those of no particular file
  std::map<std::string, std::vector<std::pair<std::optional<int64_t>, std::filesystem::path>>>
      files;
};

/// The files of a folder, put together into calls.
struct NamedFiles {
  std::string pattern;  ///< the one that was used; empty where none fits any file
  std::vector<NamedCall> calls;
  std::vector<std::string> left_out;  ///< names that the pattern does not fit
};

/// Reads the folder (not those in it). Without a pattern the first common one that gives calls with
/// both q and k, or files that hold all, is used. Throws Error(file) where the folder cannot be
/// read, or two files are the same head of the same tensor.
NamedFiles find_named_files(const std::filesystem::path& folder,
                            const std::optional<std::string>& pattern);

}  // namespace attnscope
