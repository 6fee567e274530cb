#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/products/norm_store.h"
#include "io/capture/cache_file.h"
#include "io/files/input_set.h"

namespace attnscope {

/// Keeps row norms on disk, as files `lse-KEY.bin`. What decides the norms is in the key, so a file
/// never has to be judged stale: it belongs to this map or to another. Not thread-safe.
class LseCache : public NormStore {
 public:
  /// Files are looked for in all of `folders`, and written to the first that takes them; missing
  /// folders are created then. None: nothing is ever found or written. Files of other
  /// users and links, also as a folder's last part, are passed over: somebody may have laid them
  /// into a capture. `sources`: what norms are computed from; null where that cannot change.
  explicit LseCache(std::vector<std::filesystem::path> folders,
                    std::shared_ptr<const InputSet> sources = nullptr)
      : folders_(std::move(folders)), sources_(std::move(sources)) {}

  bool enabled() const { return !folders_.all().empty(); }

  /// Hex digest of the bytes of q and k of the head and of its mask, scale, score, mask, shapes and
  /// dtypes, the backend's name and this program's version. Reads a mask once.
  std::string key(const NormSource& source, std::string_view backend,
                  std::stop_token stop) override;

  /// A file that is damaged or not readable is none, nor one with a sum that no row can have.
  bool load(const std::string& key, std::span<RowNorm> norms) const override;

  /// Writes a file under a temporary name and renames it. Returns what went wrong in every folder.
  /// Folders that fail are not tried again. Throws Error(file) where a source is not as it was when
  /// it was opened: key and norms may be of different contents then, and nothing is kept.
  std::optional<std::string> store(const std::string& key, std::span<const RowNorm> norms) override;

 private:
  CacheFolders folders_;
  std::shared_ptr<const InputSet> sources_;
  std::map<const TensorSource*, std::string> mask_hashes_;
};

}  // namespace attnscope
