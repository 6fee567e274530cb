#include "io/masks/block_mask_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/files/checksum.h"
#include "io/files/output_file.h"
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

/// Bytes that the masks of the file keep.
int64_t bytes_kept(const TensorSource& tensor) {
  const int64_t key_blocks = tensor.shape().back();
  if (key_blocks == 0) return 0;
  return count_of(tensor) / key_blocks * ceil_div(key_blocks, 64) * 8;
}

/// The planes of the file, a mask each.
std::vector<Mask> read_planes(const TensorSource& tensor, int64_t block, MemoryBudget& budget) {
  const auto shape = tensor.shape();
  const int64_t count = count_of(tensor);
  const MemoryReservation reserved = budget.reserve(count, "the block mask " + tensor.name());
  std::vector<uint8_t> bits(static_cast<size_t>(count));
  const std::vector<int64_t> begin(shape.size(), 0);
  tensor.read(begin, shape, reinterpret_cast<std::byte*>(bits.data()));
  const int64_t heads = shape.size() == 3 ? shape[0] : 1;
  if (heads < 1) throw usage_error("block mask: every extent must be at least 1");
  BlockMask plane{.query_blocks = shape[shape.size() - 2],
                  .key_blocks = shape[shape.size() - 1],
                  .block_queries = block,
                  .block_keys = block,
                  .bits = {}};
  const int64_t size = count / heads;
  std::vector<Mask> planes;
  for (int64_t head = 0; head < heads; ++head) {
    const auto first = bits.begin() + head * size;
    plane.bits.assign(first, first + size);
    planes.push_back(Mask::blocks(plane));
  }
  return planes;
}

int64_t block_of_file(const std::filesystem::path& path, const std::string& name,
                      const BlockSize& block, const std::optional<BlockMaskFacts>& facts) {
  if (block.told && *block.told < 1) {
    throw usage_error(fmt::format("{}: a block has at least 1 token (got {})", name, *block.told));
  }
  if (!facts) {
    if (block.told) return *block.told;
    if (block.otherwise) return *block.otherwise;
    throw usage_error(
        fmt::format("{}: how many tokens is a block? Give --block N, or in a tree "
                    "{{\"file\": ..., \"block\": N}} ({} would say)",
                    name, block_facts_path(path.filename()).string()));
  }
  if (block.told && *block.told != facts->block) {
    throw usage_error(fmt::format("{}: a block is {} tokens, as {} says (got {})", name,
                                  facts->block, block_facts_path(path).string(), *block.told));
  }
  return facts->block;
}

}  // namespace

BlockMaskFile::BlockMaskFile(const std::filesystem::path& path, const std::string& name,
                             const BlockSize& block, MemoryBudget& budget)
    : name_(name) {
  const auto tensor = open_bits(path);
  facts_ = read_block_facts(path);
  block_ = block_of_file(path, name, block, facts_);
  reservation_ = budget.reserve(bytes_kept(*tensor), "the block mask " + path.string());
  try {
    planes_ = read_planes(*tensor, block_, budget);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    throw file_error(path.string(), "", error.what());
  }
  if (facts_ && facts_->heads.size() != planes_.size()) {
    throw file_error(block_facts_path(path).string(), "heads",
                     fmt::format("expected {}, as many as {} has (got {})", planes_.size(),
                                 path.filename().string(), facts_->heads.size()));
  }
}

void BlockMaskFile::check(const AttentionProblem& problem,
                          std::span<const int64_t> selected) const {
  const auto refuse = [&](const std::string& what) {
    throw usage_error(fmt::format("{}: {}: {}", name_, problem.name(), what));
  };
  try {
    planes_.front().check_shape(problem.batch(), problem.num_heads(), problem.num_queries(),
                                problem.num_keys());
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (facts_) {
    if (facts_->order != "stored") {
      refuse(
          fmt::format("the blocks are of tokens in the order {} (expected stored)", facts_->order));
    }
    const std::pair<StatedOrder, StatedOrder> sides[] = {
        {facts_->queries, StatedOrder::of(problem.query_tokens())},
        {facts_->keys, StatedOrder::of(problem.key_tokens())}};
    for (const auto& [told, own] : sides) {
      if (told.agrees_with(own)) continue;
      refuse(fmt::format("the blocks are of tokens in another order: {} (expected {})",
                         told.describe(), own.describe()));
    }
  }
  for (const int64_t head : selected) plane_of(problem, head, selected);
}

size_t BlockMaskFile::plane_of(const AttentionProblem& problem, int64_t head,
                               std::span<const int64_t> selected) const {
  std::vector<int64_t> numbers;
  if (facts_) {
    for (const SavedHead& saved : facts_->heads) numbers.push_back(saved.name.head);
  } else if (std::ssize(planes_) == problem.num_heads()) {
    numbers.resize(planes_.size());
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
  }
  const auto place = [](const auto& list, int64_t value) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), value) - list.begin());
  };
  const bool all_there = std::all_of(selected.begin(), selected.end(), [&](int64_t each) {
    return place(numbers, each) < numbers.size();
  });
  if (all_there) return place(numbers, head);
  if (planes_.size() == 1) return 0;
  if (planes_.size() == selected.size()) return place(selected, head);
  const std::string own = facts_ ? " (" + format_index_list(numbers) + ")" : "";
  throw usage_error(fmt::format(
      "{}: {}: block mask: has {} heads{}, expected 1, {} or as many as are selected ({})", name_,
      problem.name(), planes_.size(), own, problem.num_heads(), selected.size()));
}

void BlockMaskWriter::check_target(const std::filesystem::path& path, bool force,
                                   std::span<const std::filesystem::path> inputs) {
  OutputFile::check_target(path, {.force = force, .inputs = inputs});
  const std::filesystem::path facts = block_facts_path(path);
  OutputFile::check_target(facts, {.force = force || is_block_facts(facts), .inputs = inputs});
}

BlockMaskWriter::BlockMaskWriter(const std::filesystem::path& path, bool force, int64_t heads,
                                 int64_t query_blocks, int64_t key_blocks)
    : path_(path), force_(force), file_(path, force) {
  const std::string header = npy_header("|b1", {heads, query_blocks, key_blocks});
  file_.append(std::as_bytes(std::span(header)));
}

void BlockMaskWriter::append(std::span<const uint8_t> bits) { file_.append(std::as_bytes(bits)); }

void BlockMaskWriter::commit(const BlockMaskFacts& facts) {
  const std::filesystem::path facts_path = block_facts_path(path_);
  StagedFile about(facts_path, force_ || is_block_facts(facts_path));
  const std::string text =
      block_facts_text(facts, path_, file_checksum(file_.part_path(), std::stop_token()));
  about.append(std::as_bytes(std::span(text)));
  file_.commit();
  about.commit();
}

}  // namespace attnscope
