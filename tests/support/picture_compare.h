#pragma once

#include <filesystem>

#include "tests/support/png_picture.h"

namespace attnscope::test {

/// How alike two pictures of the same size are.
struct PictureLikeness {
  double similarity = 0;  ///< mean structural similarity of 8×8 blocks of luma, 1: the same
  double bad_share = 1;   ///< of the pixels: those with a channel that differs by more than 32
};
/// Only rows above `rows` are looked at.
PictureLikeness compare_pictures(const Picture& a, const Picture& b, uint32_t rows);

/// Writes |a − b|, eight times as bright, for people to look at.
void write_difference(const Picture& a, const Picture& b, const std::filesystem::path& file);

}  // namespace attnscope::test
