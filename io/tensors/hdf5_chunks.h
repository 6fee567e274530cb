#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/input_file.h"
#include "io/files/read_box.h"
#include "io/tensors/chunk_cache.h"
#include "io/tensors/chunk_packing.h"

namespace attnscope {

/// A dataset in chunks, all of full size, its values checked against the file.
struct ChunkedLayout {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool big_endian = false;
  std::vector<int64_t> chunk;
  ChunkPacking packing;
  std::vector<ChunkPlace> places;  ///< row-major over the grid of chunks; empty: no elements
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
