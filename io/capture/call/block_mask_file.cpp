#include "io/capture/call/block_mask_file.h"

#include <fmt/core.h>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/tensors/npy.h"
#include "io/tensors/npy_header.h"

namespace attnscope {
namespace {

std::shared_ptr<const TensorSource> open_bits(const std::filesystem::path& path) {
  const auto file = open_npy(path);
  auto tensor = file->tensor("");
  const auto shape = tensor->shape();
  if (tensor->dtype() != DType::boolean) {
    throw file_error(path.string(), "",
                     fmt::format("a block mask is bool (got {})", dtype_name(tensor->dtype())));
  }
  if (shape.size() != 2 && shape.size() != 3) {
    throw file_error(path.string(), "",
                     fmt::format("a block mask is [query blocks, key blocks] or [heads, query "
                                 "blocks, key blocks] (got {} dimensions)",
                                 shape.size()));
  }
  return tensor;
}

int64_t count_of(const TensorSource& tensor) {
  const auto count = checked_count(tensor.shape());
  if (!count) throw Error(ErrorCode::resource, tensor.name() + ": is too large");
  return *count;
}

}  // namespace

int64_t block_mask_bytes(const std::filesystem::path& path) {
  const auto tensor = open_bits(path);
  const int64_t key_blocks = tensor->shape().back();
  if (key_blocks == 0) return 0;
  return count_of(*tensor) / key_blocks * ceil_div(key_blocks, 64) * 8;
}

Mask read_block_mask(const std::filesystem::path& path, int64_t block, MemoryBudget& budget) {
  const auto tensor = open_bits(path);
  const auto shape = tensor->shape();
  const int64_t count = count_of(*tensor);
  const MemoryReservation reserved = budget.reserve(count, "the block mask " + path.string());
  BlockMask mask;
  mask.heads = shape.size() == 3 ? shape[0] : 1;
  mask.query_blocks = shape[shape.size() - 2];
  mask.key_blocks = shape[shape.size() - 1];
  mask.block_queries = mask.block_keys = block;
  mask.bits.resize(static_cast<size_t>(count));
  const std::vector<int64_t> begin(shape.size(), 0);
  tensor->read(begin, shape, reinterpret_cast<std::byte*>(mask.bits.data()));
  try {
    return Mask::blocks(mask);
  } catch (const Error& error) {
    throw file_error(path.string(), "", error.what());
  }
}

BlockMaskWriter::BlockMaskWriter(const std::filesystem::path& path, bool force, int64_t heads,
                                 int64_t query_blocks, int64_t key_blocks)
    : file_(path, force) {
  const std::string header = npy_header("|b1", {heads, query_blocks, key_blocks});
  file_.append(std::as_bytes(std::span(header)));
}

void BlockMaskWriter::append(std::span<const uint8_t> bits) { file_.append(std::as_bytes(bits)); }

}  // namespace attnscope
