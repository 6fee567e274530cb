#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/heads/head_sketch.h"
#include "io/capture/cache_file.h"
#include "io/files/input_set.h"

namespace attnscope {

/// Keeps the sketches of a call's heads on disk, one file `atlas-KEY.bin` for a batch item. What
/// decides them is in the key. Not thread-safe.
class SketchCache {
 public:
  using Sketches = std::vector<std::shared_ptr<const HeadSketch>>;

  /// As LseCache's.
  explicit SketchCache(std::vector<std::filesystem::path> folders,
                       std::shared_ptr<const InputSet> sources = nullptr)
      : folders_(std::move(folders)), sources_(std::move(sources)) {}

  /// Of a call's stamp (Capture::call_stamps()), the name of what computes it and a batch item.
  static std::string key(const std::string& stamp, std::string_view backend, int64_t batch);

  /// Of every head, [heads]; nothing where there is no file, or one that is damaged, not readable
  /// or has values that no map can have.
  std::optional<Sketches> load(const std::string& key, const SketchCells& cells,
                               int64_t heads) const;
  /// Returns what went wrong in every folder. Folders that fail are not tried again. Throws
  /// Error(file) where a source is not as it was when it was opened.
  std::optional<std::string> store(const std::string& key, const Sketches& sketches);

 private:
  CacheFolders folders_;
  std::shared_ptr<const InputSet> sources_;
};

}  // namespace attnscope
