#include "io/pictures/film/gif_palette.h"

#include <algorithm>

namespace attnscope {
namespace {

constexpr int kBits = 5;
constexpr uint32_t kMask = (1U << kBits) - 1;

uint32_t packed(Rgb c) { return uint32_t{c.r} << 16 | uint32_t{c.g} << 8 | c.b; }

size_t bin_of(Rgb c) {
  constexpr int kShift = 8 - kBits;
  return static_cast<size_t>(c.r >> kShift) << (2 * kBits) |
         static_cast<size_t>(c.g >> kShift) << kBits | static_cast<size_t>(c.b >> kShift);
}

/// A bin's place along red (0), green (1) or blue (2).
uint32_t place(size_t bin, int axis) {
  return static_cast<uint32_t>(bin >> ((2 - axis) * kBits)) & kMask;
}

/// Bins [begin, end) of a list, and along which axis they spread most.
struct Box {
  size_t begin = 0, end = 0;
  int axis = 0;
  uint32_t spread = 0;
  int64_t count = 0;
};

}  // namespace

PaletteMaker::PaletteMaker() : bins_(size_t{1} << (3 * kBits)) {}

void PaletteMaker::add(const Canvas& canvas) {
  for (int y = 0; y < canvas.height(); ++y) {
    for (const Rgb colour : canvas.row(y)) {
      Bin& bin = bins_[bin_of(colour)];
      ++bin.count;
      bin.sum[0] += colour.r;
      bin.sum[1] += colour.g;
      bin.sum[2] += colour.b;
      if (!exact_) continue;
      entries_.try_emplace(packed(colour), uint8_t{0});
      exact_ = entries_.size() <= kColours;
    }
  }
}

void PaletteMaker::finish() {
  if (!exact_) return cut_boxes();
  std::vector<uint32_t> all;
  for (const auto& [colour, entry] : entries_) all.push_back(colour);
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    entries_[all[i]] = static_cast<uint8_t>(i);
    colours_.push_back({static_cast<uint8_t>(all[i] >> 16), static_cast<uint8_t>(all[i] >> 8),
                        static_cast<uint8_t>(all[i])});
  }
}

void PaletteMaker::cut_boxes() {
  std::vector<size_t> used;
  for (size_t b = 0; b < bins_.size(); ++b) {
    if (bins_[b].count > 0) used.push_back(b);
  }
  const auto measured = [&](size_t begin, size_t end) {
    Box box{begin, end, 0, 0, 0};
    for (int axis = 0; axis < 3; ++axis) {
      uint32_t low = kMask;
      uint32_t high = 0;
      for (size_t i = begin; i < end; ++i) {
        low = std::min(low, place(used[i], axis));
        high = std::max(high, place(used[i], axis));
      }
      if (high - low > box.spread) box.axis = axis;
      box.spread = std::max(box.spread, high - low);
    }
    for (size_t i = begin; i < end; ++i) box.count += bins_[used[i]].count;
    return box;
  };
  std::vector<Box> boxes{measured(0, used.size())};
  while (boxes.size() < kColours) {
    // Widest first: rare colours, such as thin lines and letters, are not given up for flat areas.
    const auto widest =
        std::max_element(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
          return std::pair(a.spread, a.count) < std::pair(b.spread, b.count);
        });
    if (widest->spread == 0) break;
    const Box box = *widest;
    std::stable_sort(used.begin() + static_cast<ptrdiff_t>(box.begin),
                     used.begin() + static_cast<ptrdiff_t>(box.end), [&](size_t a, size_t b) {
                       return std::pair(place(a, box.axis), a) < std::pair(place(b, box.axis), b);
                     });
    size_t middle = box.begin;
    for (int64_t below = 0; middle < box.end && below < box.count / 2; ++middle) {
      below += bins_[used[middle]].count;
    }
    middle = std::clamp(middle, box.begin + 1, box.end - 1);
    *widest = measured(box.begin, middle);
    boxes.push_back(measured(middle, box.end));
  }
  for (const Box& box : boxes) {
    std::array<int64_t, 3> sum{};
    for (size_t i = box.begin; i < box.end; ++i) {
      Bin& bin = bins_[used[i]];
      bin.entry = static_cast<uint8_t>(colours_.size());
      for (size_t axis = 0; axis < 3; ++axis) sum[axis] += bin.sum[axis];
    }
    const auto mean = [&](size_t axis) {
      return static_cast<uint8_t>((sum[axis] + box.count / 2) / box.count);
    };
    colours_.push_back({mean(0), mean(1), mean(2)});
  }
}

uint8_t PaletteMaker::index_of(Rgb colour) const {
  return exact_ ? entries_.at(packed(colour)) : bins_[bin_of(colour)].entry;
}

}  // namespace attnscope
