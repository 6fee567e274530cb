#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/input_file.h"

namespace attnscope {

/// How chunks are packed, in the order in which it was done.
struct ChunkFilter {
  enum class Kind : uint8_t { deflate, shuffle, fletcher32 };
  Kind kind = Kind::deflate;
  int64_t element = 0;  ///< shuffle: bytes of an element
};

/// Where a chunk stands in the file.
struct ChunkPlace {
  int64_t offset = -1;
  int64_t bytes = 0;
  uint32_t skipped = 0;  ///< bit i: filter i was not applied to it
};

/// A dataset in chunks, all of full size, its values checked against the file.
struct ChunkedLayout {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool big_endian = false;
  std::vector<int64_t> chunk;
  int64_t chunk_bytes = 0;  ///< unpacked
  std::vector<ChunkFilter> filters;
  std::vector<ChunkPlace> places;  ///< row-major over the grid of chunks; empty: no elements
};

/// Unpacked chunks of one file, those used last: at most 16 MiB, or one chunk. Thread-safe; chunks
/// are unpacked one at a time.
class ChunkCache {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  /// The chunk at `offset` of the file, unpacked by `unpack` where it is not there.
  Bytes get(int64_t offset, const std::function<std::vector<std::byte>()>& unpack);

 private:
  std::mutex mutex_;
  std::list<std::pair<int64_t, Bytes>> entries_;  ///< the one used last first
  int64_t bytes_ = 0;
};

/// A chunked dataset, read with pread. Immutable; thread-safe.
class ChunkedTensor : public TensorSource {
 public:
  ChunkedTensor(std::shared_ptr<const InputFile> file, std::shared_ptr<ChunkCache> cache,
                std::string name, ChunkedLayout layout)
      : file_(std::move(file)),
        cache_(std::move(cache)),
        name_(std::move(name)),
        layout_(std::move(layout)) {}

  DType dtype() const override { return layout_.dtype; }
  std::span<const int64_t> shape() const override { return layout_.shape; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;

 private:
  void read_chunk(const ChunkPlace& place, std::span<const FileAxis> axes,
                  std::byte* destination) const;
  std::vector<std::byte> unpack(const ChunkPlace& place) const;

  std::shared_ptr<const InputFile> file_;
  std::shared_ptr<ChunkCache> cache_;
  std::string name_;
  ChunkedLayout layout_;
};

}  // namespace attnscope
