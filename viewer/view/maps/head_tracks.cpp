#include "viewer/view/maps/head_tracks.h"

#include <algorithm>
#include <cmath>

namespace attnscope {
namespace {

/// Below the greatest mass; what is less lies at the axis' end.
constexpr double kLeastShare = 1e-6;

}  // namespace

const std::vector<double>& HeadTracks::of(RowTrack track) const {
  static const std::vector<double> kNone;
  switch (track) {
    case RowTrack::entropy:
      return entropy;
    case RowTrack::lse:
      return lse;
    case RowTrack::text:
      return text_mass;
    case RowTrack::off:
      break;
  }
  return kNone;
}

const std::vector<double>& HeadTracks::of(KeyTrack track) const {
  static const std::vector<double> kNone;
  return track == KeyTrack::mass ? column_mass : kNone;
}

std::optional<double> HeadTracks::mean_at_dt(const TokenGrid& queries, int64_t query,
                                             const TokenGrid& keys, int64_t key) const {
  const auto from = queries.coord(query), to = keys.coord(key);
  if (!from || !to || by_dt.empty()) return std::nullopt;
  const double mean = by_dt[static_cast<size_t>(to->t - from->t + keys.frames() - 1)];
  return std::isnan(mean) ? std::nullopt : std::optional(mean);
}

int64_t HeadTracks::bytes(int64_t queries, int64_t keys, int64_t query_groups, int64_t key_groups) {
  return static_cast<int64_t>(sizeof(HeadTracks)) +
         (3 * queries + keys + query_groups * key_groups) * static_cast<int64_t>(sizeof(double));
}

std::vector<TrackBin> track_bins(std::span<const double> values, double first, double last,
                                 int64_t pixels) {
  std::vector<TrackBin> bins(static_cast<size_t>(std::max<int64_t>(0, pixels)));
  const auto size = static_cast<double>(values.size());
  const auto edge = [&](size_t pixel) {
    return first + (last - first) * static_cast<double>(pixel) / static_cast<double>(pixels);
  };
  for (size_t i = 0; i < bins.size(); ++i) {
    const double from = std::floor(edge(i));
    // A token that the view ends in is the last pixel's.
    const bool is_last = i + 1 == bins.size();
    const double to = std::max(from + 1, is_last ? std::ceil(last) : std::floor(edge(i + 1)));
    TrackBin& bin = bins[i];
    const auto end = static_cast<size_t>(std::clamp(to, 0.0, size));
    for (auto at = static_cast<size_t>(std::clamp(from, 0.0, size)); at < end; ++at) {
      const double value = values[at];
      if (std::isnan(value)) continue;
      bin.low = bin.count == 0 ? value : std::min(bin.low, value);
      bin.high = bin.count == 0 ? value : std::max(bin.high, value);
      bin.mean += value;
      ++bin.count;
    }
    if (bin.count > 0) bin.mean /= static_cast<double>(bin.count);
  }
  return bins;
}

double TrackRange::share(double value) const {
  if (!(high > low)) return 0.5;
  const double part = logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low)
                                  : (value - low) / (high - low);
  return std::clamp(part, 0.0, 1.0);
}

TrackRange track_range(std::span<const double> values, bool logarithmic) {
  TrackRange range;
  range.logarithmic = logarithmic;
  for (const double value : values) {
    if (std::isnan(value) || (logarithmic && !(value > 0))) continue;
    range.low = range.empty ? value : std::min(range.low, value);
    range.high = range.empty ? value : std::max(range.high, value);
    range.empty = false;
  }
  if (logarithmic) range.low = std::max(range.low, range.high * kLeastShare);
  return range;
}

std::string_view row_track_unit(RowTrack track) { return track == RowTrack::entropy ? "nats" : ""; }

}  // namespace attnscope
