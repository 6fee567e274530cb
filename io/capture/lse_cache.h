#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// Keeps the row norms of heads on disk from one run to the next, both of their parts, as files
/// `lse-KEY.bin`. What decides the norms is in the key, so a file never has to be judged stale: it
/// belongs to this map or to another. Not thread-safe.
class LseCache {
 public:
  /// Files are looked for in all of `folders`, and written to the first that takes them; missing
  /// folders are created then. None: nothing is ever found or written.
  explicit LseCache(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  bool enabled() const { return !folders_.empty(); }

  /// Hex digest of everything that decides the norms of one head: the bytes of its q and k, of
  /// `mask` (the tensor of the problem's mask; null: it has none), scale, score, mask, shapes and
  /// dtypes, the backend's name and this program's version. Reads q and k of the head, and a mask
  /// once. Throws Error(interrupted) soon after a stop is requested.
  std::string key(const AttentionProblem& problem, const TensorSource* mask, int64_t batch,
                  int64_t head, std::string_view backend, std::stop_token stop = {});

  /// Fills `norms`, one a row, and returns true; or returns false and leaves them in any state:
  /// there is no such file, or it is damaged or not readable.
  bool load(const std::string& key, std::span<RowNorm> norms) const;

  /// Writes a file under a temporary name and renames it. Never throws for want of a place: returns
  /// what went wrong in every folder, one line, or nothing. Folders that fail are not tried again.
  std::optional<std::string> store(const std::string& key, std::span<const RowNorm> norms);

 private:
  std::vector<std::filesystem::path> folders_;
  size_t first_writable_ = 0;
  std::map<const TensorSource*, std::string> mask_hashes_;
};

}  // namespace attnscope
