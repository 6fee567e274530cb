#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/problem/token_grid.h"
#include "core/reduce/head_totals.h"

namespace attnscope {

/// A mean over rows; no value where it is not defined (no grid, no text, no rows).
struct Estimate {
  std::optional<double> value;
  /// Of the value, where it comes from a sample of the rows.
  std::optional<double> standard_error;
};

/// A key that draws mass from all rows, and which token it is.
struct Sink {
  int64_t key = 0;
  std::optional<LatentCoord> place;   ///< of a video token
  std::optional<int64_t> text_index;  ///< of a text token, within the text
  std::optional<std::string> token;   ///< its string, where one was recorded
  double mass = 0;                    ///< mean over rows of P[:, key]
};
/// How many sinks a head has at most.
inline constexpr size_t kMostSinks = 5;

/// Mean mass between the segments of a call whose token map was stated.
struct SegmentMasses {
  std::vector<std::string> from, to;  ///< segments of the queries and of the keys, in their order
  /// [from, to], over the rows of a query segment that are not masked; none without such rows.
  std::vector<std::optional<double>> mass;

  friend bool operator==(const SegmentMasses&, const SegmentMasses&) = default;
};

/// The class of a head: the first that holds; undefined for scores that are not normalised.
enum class HeadClass : uint8_t { sink, text, temporal, spatial, local, global, undefined };
inline constexpr size_t kHeadClasses = 7;
std::string_view head_class_name(HeadClass which);
std::optional<HeadClass> parse_head_class(std::string_view name);

/// The scores that decide the class. A lift is how many times more mass a part has than it would
/// have if all keys had the same weight.
struct ClassScores {
  std::optional<double> sink, text, temporal, temporal_lift, spatial, spatial_lift, local;
};
struct ClassScoreField {
  std::string_view name;
  std::optional<double> ClassScores::*member;
};
/// All of them, in the order in which they are written.
std::span<const ClassScoreField> class_score_fields();

/// The numbers of a head. Definitions: docs/metrics.md.
struct HeadMetrics {
  Estimate entropy, effective_keys, max_weight;
  std::optional<double> max_weight_peak, max_logit;
  Estimate text_mass, padding_mass, video_mass, same_frame_mass, same_position_mass;
  Estimate spatial_score, temporal_score, local_mass;
  std::optional<double> sink_mass;  ///< of the heaviest key
  Estimate sink_share;              ///< of what has no key
  Estimate keys_for_50, keys_for_80, keys_for_90, keys_for_95, keys_for_99;
  std::optional<int64_t> band;  ///< the reach of temporal_score
  int64_t rows = 0, masked_rows = 0;
  /// The kMostSinks keys of largest column mass, descending; equal ones by the lower key.
  std::vector<Sink> sinks;
  SegmentMasses segment_mass;  ///< empty without a token map
  HeadClass head_class = HeadClass::undefined;
  ClassScores class_scores;
};

/// Where HeadMetrics holds a number. The type says what the number is: an Estimate has a standard
/// error where rows were sampled, int64_t is a count, an optional one may be undefined.
using HeadMember = std::variant<Estimate HeadMetrics::*, std::optional<double> HeadMetrics::*,
                                std::optional<int64_t> HeadMetrics::*, int64_t HeadMetrics::*>;

/// A number of HeadMetrics for whoever computes, writes, reads, sorts by or prints all of them.
struct HeadField {
  std::string_view name;       ///< in JSON, CSV, HDF5, --sort and --metric
  std::string_view long_name;  ///< what it is, with its unit where it has one
  HeadMember member;
  /// The mean over rows of this value; head_metrics() derives the other numbers from such means.
  std::optional<RowValue> mean_of = {};
  std::string_view heading = {};  ///< in the printed table; empty: not in it
  int decimals = 0;               ///< in the printed table

  /// True of a measured number, false of a count.
  bool is_metric() const;
  /// The name of the standard error in JSON, CSV and HDF5: NAME_stderr.
  std::string error_name() const;
};

/// The mean over rows of how many of the largest keys hold a share of the mass.
struct KeysForShare {
  double share = 0;
  const HeadField* field = nullptr;
};
/// Those of kKeyShares, in its order.
std::span<const KeysForShare> keys_curve();

/// Every number of HeadMetrics, in the order in which they are written.
std::span<const HeadField> head_fields();
/// Null where there is none of the name.
const HeadField* find_head_field(std::string_view name);
/// The names of the fields that are metrics, in order.
std::vector<std::string_view> metric_names();

/// The number, and its standard error; none where they are not defined.
std::optional<double> number_of(const HeadMetrics& head, const HeadField& field);
std::optional<double> standard_error_of(const HeadMetrics& head, const HeadField& field);

}  // namespace attnscope
