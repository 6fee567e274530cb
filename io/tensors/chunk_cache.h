#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace attnscope {

/// Pieces of files as they unpack, those used last: at most as many bytes as it was made for, or
/// one piece. Thread-safe; pieces are unpacked one at a time.
class ChunkCache {
 public:
  static constexpr int64_t kMostBytes = 16 << 20;
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  /// Whose piece (its file, its dataset), where what it belongs to begins, and which piece of that.
  struct Key {
    const void* owner = nullptr;
    int64_t place = 0;
    int64_t piece = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  explicit ChunkCache(int64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  /// The piece, unpacked by `unpack` where it is not there. What that throws is passed on.
  Bytes get(const Key& key, const std::function<std::vector<std::byte>()>& unpack);

 private:
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::list<std::pair<Key, Bytes>> entries_;  ///< the one used last first
  int64_t bytes_ = 0;
};

}  // namespace attnscope
