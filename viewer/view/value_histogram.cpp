#include "viewer/view/value_histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace attnscope {
namespace {

/// The quantiles of logits that decide their bins: the shares beyond them do not count. A mask that
/// adds −10 000 must not leave everything else in one bin.
constexpr double kCoreLow = 0.001, kCoreHigh = 0.9999;
constexpr int kMaxPasses = 5;

/// The entries of a texel of `size` entries, the first one `begin`, that lie in [low, high).
double overlap(double begin, double size, double low, double high) {
  return std::max(0.0, std::min(begin + size, high) - std::max(begin, low));
}

constexpr int kMantissaBits = 10;

/// The part of its octave, in bins, that a float is in, by the first bits of its mantissa.
std::array<uint8_t, 1 << kMantissaBits> octave_parts() {
  std::array<uint8_t, 1 << kMantissaBits> parts{};
  for (size_t i = 0; i < parts.size(); ++i) {
    const double mantissa = 1 + (static_cast<double>(i) + 0.5) / static_cast<double>(parts.size());
    parts[i] = static_cast<uint8_t>(ValueHistogram::kBinsPerOctave * std::log2(mantissa));
  }
  return parts;
}

/// The bin of a weight above 0. A view shows more than a million texels, each of which would take a
/// logarithm; read from the bits, a bin's edge is a thousandth of an octave off.
size_t octave_bin(float value) {
  static const auto kParts = octave_parts();
  constexpr int kBias = 127, kFraction = 23;
  constexpr int kBins = (ValueHistogram::kHighestOctave - ValueHistogram::kLowestOctave) *
                        ValueHistogram::kBinsPerOctave;
  const auto bits = std::bit_cast<uint32_t>(value);
  const int octave = static_cast<int>(bits >> kFraction) - kBias;
  const int part = kParts[bits >> (kFraction - kMantissaBits) & (kParts.size() - 1)];
  const int bin = (octave - ValueHistogram::kLowestOctave) * ValueHistogram::kBinsPerOctave + part;
  return static_cast<size_t>(std::clamp(bin, 0, kBins - 1));
}

/// Calls `count(value, entries)` for every texel of which the view shows some.
template <typename Count>
void each_texel(const MapTile& tile, const MapRect& view, Pool pool, const Count& count) {
  const std::vector<float>& values = pool == Pool::max ? tile.max : tile.mean;
  const double size = std::exp2(tile.id.level);
  const auto first_row = static_cast<double>(tile.id.row * kTileSide);
  const auto first_col = static_cast<double>(tile.id.col * kTileSide);
  std::vector<double> widths;
  for (int64_t c = 0; c < tile.cols; ++c) {
    widths.push_back(overlap((first_col + static_cast<double>(c)) * size, size, view.k0, view.k1));
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    const double height =
        overlap((first_row + static_cast<double>(r)) * size, size, view.q0, view.q1);
    if (height == 0) continue;
    const float* row = values.data() + r * tile.cols;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] > 0) count(row[c], height * widths[c]);
    }
  }
}

}  // namespace

ValueHistogram ValueHistogram::of(std::span<const std::shared_ptr<const MapTile>> tiles,
                                  const MapRect& view, Pool pool) {
  ValueHistogram histogram;
  std::vector<const MapTile*> used;
  const auto is_exact = [](const auto& tile) { return tile && tile->exact; };
  histogram.exact_ = std::any_of(tiles.begin(), tiles.end(), is_exact);
  for (const auto& tile : tiles) {
    if (tile && (tile->exact || !histogram.exact_)) used.push_back(tile.get());
  }
  if (used.empty()) return histogram;
  histogram.quantity_ = used.front()->id.quantity;
  histogram.against_ = used.front()->id.against;
  if (histogram.counts_octaves()) {
    histogram.low_ = kLowestOctave;
    histogram.high_ = kHighestOctave;
    histogram.fill(used, view, pool);
  } else {
    histogram.fill_logits(used, view, pool);
  }
  return histogram;
}

void ValueHistogram::fill_logits(const std::vector<const MapTile*>& tiles, const MapRect& view,
                                 Pool pool) {
  low_ = std::numeric_limits<double>::infinity();
  high_ = -low_;
  for (const MapTile* tile : tiles) {
    each_texel(*tile, view, pool, [&](float value, double) {
      if (!std::isfinite(value)) return;
      low_ = std::min(low_, double{value});
      high_ = std::max(high_, double{value});
    });
  }
  if (low_ > high_) low_ = high_ = 0;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    fill(tiles, view, pool);
    const auto core = quantiles(kCoreLow, kCoreHigh);
    if (!core) return;
    const double bin = (high_ - low_) / kLinearBins;
    if (core->high - core->low > (high_ - low_) / 8 || !(bin > 0)) return;
    low_ = std::max(low_, core->low - bin);
    high_ = std::min(high_, core->high + bin);
  }
}

void ValueHistogram::fill(const std::vector<const MapTile*>& tiles, const MapRect& view,
                          Pool pool) {
  const bool weights = counts_octaves();
  const int bins = weights ? (kHighestOctave - kLowestOctave) * kBinsPerOctave : kLinearBins;
  counts_.assign(static_cast<size_t>(bins), 0);
  total_ = zeros_ = masked_ = missing_ = 0;
  least_ = std::numeric_limits<double>::infinity();
  greatest_ = -least_;
  const auto note = [this](float value) {
    least_ = std::min(least_, double{value});
    greatest_ = std::max(greatest_, double{value});
  };
  const auto count_other = [this](float value, double entries) {
    if (std::isnan(value)) {
      missing_ += entries;
    } else if (std::isinf(value) && value < 0) {
      masked_ += entries;
    }
  };
  if (weights) {
    for (const MapTile* tile : tiles) {
      each_texel(*tile, view, pool, [&](float value, double entries) {
        if (value > 0 && std::isfinite(value)) {
          counts_[octave_bin(value)] += entries;
          total_ += entries;
          note(value);
        } else if (value == 0) {
          zeros_ += entries;
        } else {
          count_other(value, entries);
        }
      });
    }
    return;
  }
  const double per_unit = high_ > low_ ? bins / (high_ - low_) : 0;
  for (const MapTile* tile : tiles) {
    each_texel(*tile, view, pool, [&](float value, double entries) {
      if (!std::isfinite(value)) return count_other(value, entries);
      const double at = (double{value} - low_) * per_unit;
      counts_[static_cast<size_t>(std::clamp(at, 0.0, bins - 1.0))] += entries;
      total_ += entries;
      note(value);
    });
  }
}

double ValueHistogram::place(double bins) const {
  const double at = low_ + bins * (high_ - low_) / static_cast<double>(counts_.size());
  return counts_octaves() ? std::exp2(at) : at;
}

double ValueHistogram::edge(size_t i) const { return place(static_cast<double>(i)); }

double ValueHistogram::value_at(double share) const {
  const double wanted = share * total_;
  double below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] > 0 && below + counts_[i] >= wanted) {
      return place(static_cast<double>(i) + (wanted - below) / counts_[i]);
    }
    below += counts_[i];
  }
  // Only rounding of the sums leads here.
  size_t last = counts_.size();
  while (last > 0 && counts_[last - 1] == 0) --last;
  return edge(last);
}

ValueMass ValueHistogram::mass_of(size_t bin) const {
  const double value = edge(bin + 1);
  return {value, std::max(0.0, value) * counts_[bin]};
}

std::optional<ValueRange> ValueHistogram::automatic_range(ScaleKind kind) const {
  const RangeChoice choice;
  std::optional<ValueRange> range = quantiles(choice.low, choice.high);
  if (!range) return range;
  double total = 0;
  std::vector<ValueMass> beyond;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const ValueMass bin = mass_of(i);
    total += bin.mass;
    if (bin.value > range->high) beyond.push_back(bin);
  }
  range->high = mass_keeping_end(range->high, beyond, total);
  if (kind == ScaleKind::log2 && counts_octaves()) {
    // No value of a bin lies below its lower edge.
    const auto at = [&](size_t i) { return ValueMass{edge(i), mass_of(i).mass}; };
    range->low = mass_covering_end(counts_.size(), at, total);
  }
  return range;
}

std::optional<ValueRange> ValueHistogram::extent() const {
  if (empty()) return std::nullopt;
  return ValueRange{least_, greatest_};
}

ValueHistogram::Beyond ValueHistogram::beyond(const ValueRange& range) const {
  Beyond found;
  if (empty()) return found;
  for (size_t i = 0; i < counts_.size(); ++i) {
    // A bin lies where its middle does; outliers of logits, in the first and last one, beyond it.
    const double middle = place(static_cast<double>(i) + 0.5);
    if (middle < range.low) found.below += counts_[i];
    if (middle > range.high) found.above += counts_[i];
  }
  found.below /= total_;
  found.above /= total_;
  // A range that reaches from end to end leaves nothing out, whatever the bins' edges say.
  if (range.low <= least_) found.below = 0;
  if (range.high >= greatest_) found.above = 0;
  return found;
}

std::optional<ValueRange> ValueHistogram::quantiles(double low, double high) const {
  if (empty()) return std::nullopt;
  return ValueRange{value_at(low), value_at(high)};
}

}  // namespace attnscope
