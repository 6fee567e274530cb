#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/layout.h"
#include "core/tensor/tensor_source.h"
#include "io/files/staged_file.h"

namespace attnscope {

/// A tensor that is to be written: what it is, and how to bring it forth piece by piece.
struct TensorToWrite {
  using Pieces = std::function<void(const std::function<void(std::span<const std::byte>)>& write)>;
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Pieces pieces;  ///< gives all bytes, row-major, in pieces of about 1 MiB

  int64_t bytes() const;
};

/// Some batch items and heads of `tensor` as [batch, heads, tokens, width], in its dtype().
TensorToWrite head_tensor_part(std::string name, const HeadTensor& tensor,
                               std::vector<int64_t> batch, std::vector<int64_t> heads);
/// Some places of the first two of a tensor's axes, all of the others; lists that are empty take
/// all of their axis. For tensors of at least two axes, else all of it.
TensorToWrite tensor_part(std::string name, std::shared_ptr<const TensorSource> tensor,
                          std::vector<int64_t> first, std::vector<int64_t> second);

/// Writes a safetensors file: `metadata`, then the tensors in their order, each piece told to
/// `progress` by its bytes. Throws Error(file), and what reading throws.
void write_safetensors(StagedFile& file, const std::map<std::string, std::string>& metadata,
                       const std::vector<TensorToWrite>& tensors,
                       const std::function<void(int64_t bytes)>& progress);

}  // namespace attnscope
