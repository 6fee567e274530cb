#include "io/tensors/chunk_cache.h"

#include <algorithm>

namespace attnscope {

ChunkCache::Bytes ChunkCache::get(const Key& key,
                                  const std::function<std::vector<std::byte>()>& unpack) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return found->second;
  }
  auto bytes = std::make_shared<const std::vector<std::byte>>(unpack());
  bytes_ += static_cast<int64_t>(bytes->size());
  entries_.emplace_front(key, bytes);
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= static_cast<int64_t>(entries_.back().second->size());
    entries_.pop_back();
  }
  return bytes;
}

}  // namespace attnscope
