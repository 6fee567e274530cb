#pragma once

#include "io/pictures/colormap.h"

namespace attnscope {

/// The style that all pictures share, so that they look like one tool's: the data has the colours,
/// the rest is grey.
constexpr Rgb kBackground{0x10, 0x12, 0x14};
constexpr Rgb kText{0xd7, 0xdd, 0xe3};
constexpr Rgb kQuietText{0x84, 0x8d, 0x97};
constexpr Rgb kRule{0x2a, 0x30, 0x36};
/// A cell whose weight is 0 on a log scale: darker than any colour map.
constexpr Rgb kMaskedCell{0x07, 0x08, 0x09};
/// Lines in a cell that has no value.
constexpr Rgb kEmptyHatch{0x3c, 0x44, 0x4d};
/// The query, and what belongs to queries.
constexpr Rgb kQuery{0x4a, 0xa8, 0xff};
/// Keys.
constexpr Rgb kKey{0xff, 0x9f, 0x43};

constexpr int kMargin = 32;
/// A map of one row still has a bar that can be read.
constexpr int kLeastBar = 160;
/// Sizes of text: pixels of its capitals.
constexpr int kSmallHeight = 7;
constexpr int kTextHeight = 14;
constexpr int kTitleHeight = 21;
/// From one line of text to what stands below it.
constexpr int kTextGap = 12;

}  // namespace attnscope
