#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/stream/tile_sink.h"
#include "io/capture/capture.h"
#include "io/masks/block_mask_file.h"
#include "io/masks/mask_choice.h"

namespace attnscope {

/// The blocks of a mask on their way to a file, head after head, as --save writes them.
class SavedBlocks {
 public:
  /// Of `heads` heads like `first`, in blocks of `block` tokens.
  SavedBlocks(const std::filesystem::path& path, bool force, const HeadTask& first, int64_t heads,
              int64_t block);

  int64_t block() const { return block_; }
  /// The most bytes that add() makes and keeps for a head, of blocks of so many tokens.
  static int64_t bytes(const HeadTask& head, int64_t block);
  /// Writes the blocks that the mask keeps anything of, and returns the mask that the file has with
  /// them. Throws Error(interrupted) soon after a stop.
  Mask add(const HeadTask& head, const Mask& mask, const std::stop_token& stop);
  /// `heads`: those that were added. Reads the call's tensors, to say which they are.
  void commit(const Capture& capture, const SelectedCall& call, const std::string& mask,
              std::vector<SavedHead> heads, const std::stop_token& stop);

 private:
  const int64_t block_;
  BlockMaskWriter writer_;
};

/// A line for every file of blocks in `masks` that is measured on other heads than it was saved of.
/// `calls`: all that are selected, not a share of them.
/// Throws Error(interrupted) soon after a stop.
std::vector<std::string> other_head_notes(const std::vector<MaskChoice>& masks,
                                          const std::vector<SelectedCall>& calls,
                                          const Capture& capture, const std::stop_token& stop);

}  // namespace attnscope
