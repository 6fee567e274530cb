#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_range.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The fields that the name of a file, or of a tensor, tells.
struct NameFields {
  std::optional<int64_t> step, layer, head;
  std::string branch, kind, name;
  std::string role;       ///< q, k, v; empty: what has the name holds them all
  IndexRange role_place;  ///< where in the name it stands
};

/// A pattern of names: literal text with {step} {layer} {head} (digits), {branch} {kind} {name}
/// (any text), and one {q|k} or {q|k|v}, which matches q, query, Q and so on. Each placeholder at
/// most once. Names of tensors may have a "/".
class NamePattern {
 public:
  enum class Of { files, tensors };
  /// Throws Error(usage) where the text is no such pattern.
  explicit NamePattern(const std::string& text, Of of = Of::files);
  /// Reads the fields of a name; nothing where the pattern does not fit all of it.
  std::optional<NameFields> match(std::string_view name) const;
  const std::string& text() const { return text_; }
  bool has_role() const { return has_role_; }

 private:
  struct WorkItem {
    std::string text;  ///< the literal, or the placeholder's name
    bool placeholder = false;
  };
  /// True where the pieces from `piece` on fit `rest`, which ends the name; fills `fields`.
  bool match_from(size_t piece, std::string_view rest, NameFields& fields) const;

  std::string text_;
  std::vector<WorkItem> pieces_;
  bool has_role_ = false;
};

/// The patterns that are tried where none is given, most telling first.
std::span<const std::string> common_patterns();

/// A file of a folder, or a tensor of a file, that a pattern fits.
struct NamedPart {
  std::optional<int64_t> head;
  std::filesystem::path path;
  std::string key;  ///< the tensor's; of a file empty
};

/// The parts of one call: by role ("" where one holds all), in the order of their heads.
struct NamedCall {
  NameFields fields;  ///< head and role are those of no particular part
  std::map<std::string, std::vector<NamedPart>> parts;
  /// The file whose tensors the parts are; null: they are files.
  std::shared_ptr<const TensorFile> file = nullptr;
  /// The call's tensors and facts in it as a file of their own (call_in_file.h); null: the parts
  /// are heads, or files.
  std::shared_ptr<const TensorFile> within = nullptr;
};

/// The files of a folder, or the tensors of a file, put together into calls.
struct NamedFiles {
  std::string pattern;  ///< the one that was used; empty where none fits any name
  std::vector<NamedCall> calls;
  std::vector<std::string> left_out;  ///< names that the pattern does not fit
};

/// Puts what has these names together into calls; `part` tells what has a name. Throws Error(file)
/// where two are the same head of the same tensor.
NamedFiles group_named(const std::vector<std::string>& names, const NamePattern& pattern,
                       const std::function<NamedPart(const std::string& name)>& part);
/// True where the names make calls: both q and k of every one, or what holds all.
bool are_whole_calls(const NamedFiles& files);

/// True of a word by which names call q, k or v.
bool is_role_word(std::string_view word);
/// The role that a file's name tells of its tensor, as "q" of q.pt, attn_q.npy, q_layer3.npy; empty
/// where it tells none.
std::string role_of_file(const std::filesystem::path& file);

/// Reads the folder (not those in it). Without a pattern the first common one that gives calls with
/// both q and k, or files that hold all, is used. Throws Error(file) where the folder cannot be
/// read, or two files are the same head of the same tensor.
NamedFiles find_named_files(const std::filesystem::path& folder,
                            const std::optional<std::string>& pattern);

}  // namespace attnscope
