#pragma once

#include <string>
#include <vector>

#include "core/problem/token_grid.h"
#include "viewer/view/looks/mask_look.h"

namespace attnscope {

/// True of a mask's text that names a file (.npy of blocks, .json of a tree), not a pattern.
bool is_mask_file(const std::string& text);
/// Throws Error(usage) for a pattern that cannot be read and for blocks without tokens; files are
/// looked at where they are read.
void check_mask_look(const MaskLook& look);

/// A number of a pattern that can be moved by a slider.
struct MaskParameter {
  std::string name;  ///< "frames"; empty: the pattern's own number, as in window:64
  double value = 0, low = 0, high = 0;
  bool whole = true;
};
/// Those of a pattern over keys of this grid. None of files, of what cannot be read, and of
/// `tiles`, whose numbers come in threes.
std::vector<MaskParameter> mask_parameters(const std::string& text, const TokenGrid& keys);
/// The pattern with one of its numbers changed; what else was written stays.
std::string with_parameter(const std::string& text, const MaskParameter& parameter);
/// The text that a pattern of this name begins with: "window:64", "spatial".
std::string first_mask_text(const std::string& name);
/// A line about the pattern of this name; empty of names that are none.
std::string mask_pattern_about(const std::string& name);
/// The name of the pattern that a text has; of a file, all of it.
std::string mask_pattern_name(const std::string& text);
/// That of a file without its folder, as folders are long.
std::string mask_short_name(const std::string& text);

}  // namespace attnscope
