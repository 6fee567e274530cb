#pragma once

#include <string>

namespace attnscope {

/// The cells of AtlasLook::metric that have the colours of classes.
inline constexpr const char* kClassCells = "class";

/// How the atlas shows every head of a step. Names are those of head_fields().
struct AtlasLook {
  bool shown = false;
  std::string metric = {};    ///< what colours a cell, kClassCells too; empty: its thumbnail
  std::string sort = {};      ///< heads by this number; empty: layers and heads
  std::string filter = {};    ///< as AtlasFilter::parse() reads it
  bool exact = false;         ///< from all rows, not from a sample
  std::string selected = {};  ///< heads, as `--pick` lists them; empty: none
  friend bool operator==(const AtlasLook&, const AtlasLook&) = default;
};

}  // namespace attnscope
