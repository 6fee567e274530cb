#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/head_name.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// How the tokens of a sequence follow each other, as far as it is known; empty: it is not. A
/// value.
struct StatedOrder {
  std::string grid, text;  ///< "13x30x45", "226@start"
  std::string segments;    ///< of a token map, as JSON

  static StatedOrder of(const TokenGrid& tokens);
  /// True where no fact that both know differs.
  bool agrees_with(const StatedOrder& other) const;
  /// "grid 13x30x45, text 226@start".
  std::string describe() const;
};

/// A head whose blocks a file holds, and what they keep of it where that was measured.
struct SavedHead {
  HeadName name;
  std::optional<double> density = {}, recall = {};
};

/// Of what the blocks in X.npy are. They stand beside it as X.npy.json ("attnscope-blocks/1",
/// docs/lab.md), so that X.npy is nothing but the array. A value.
struct BlockMaskFacts {
  std::string capture = {};       ///< its base name
  std::string capture_hash = {};  ///< of all heads of the call; empty: not known
  std::string mask = {};          ///< as it was asked for
  int64_t block = 0;              ///< tokens of a block
  std::string order = "stored";   ///< of the tokens that the blocks are of
  StatedOrder queries = {}, keys = {};
  std::vector<SavedHead> heads = {};  ///< of the file's planes, in their order
};

/// Where the facts of the blocks in X.npy stand: X.npy.json.
std::filesystem::path block_facts_path(const std::filesystem::path& blocks);

/// True of a file of such facts, of whichever blocks.
bool is_block_facts(const std::filesystem::path& file);

/// The facts as the text of their file, for blocks whose file has that checksum.
std::string block_facts_text(const BlockMaskFacts& facts, const std::filesystem::path& blocks,
                             uint64_t checksum);

/// The facts beside a file of blocks; nothing where there are none. Throws Error(file) where they
/// are something else, or of blocks that are not those of the file as it is (all of it is read).
std::optional<BlockMaskFacts> read_block_facts(const std::filesystem::path& blocks);

}  // namespace attnscope
