#include "core/reduce/head_fields.h"

#include <algorithm>
#include <array>

namespace attnscope {
namespace {

using M = HeadMetrics;

/// A new number of a head is a member of HeadMetrics and a line here.
constexpr HeadField kFields[] = {
    {"entropy", &M::entropy, RowValue::entropy, "entropy", 3},
    {"effective_keys", &M::effective_keys, {}, "eff.keys", 1},
    {"max_weight", &M::max_weight, RowValue::max_weight, "max", 4},
    {"max_weight_peak", &M::max_weight_peak},
    {"text_mass", &M::text_mass, RowValue::text_mass, "text", 3},
    {"padding_mass", &M::padding_mass, RowValue::padding_mass},
    {"video_mass", &M::video_mass, RowValue::video_mass},
    {"same_frame_mass", &M::same_frame_mass, RowValue::same_frame_mass, "frame", 3},
    {"same_position_mass", &M::same_position_mass, RowValue::same_position_mass, "position", 3},
    {"spatial_score", &M::spatial_score, RowValue::spatial_score, "spatial", 3},
    {"temporal_score", &M::temporal_score, RowValue::temporal_score, "temporal", 3},
    {"local_mass", &M::local_mass, RowValue::local_mass, "local", 3},
    {"sink_mass", &M::sink_mass, {}, "sink", 4},
    {"keys_for_50", &M::keys_for_50, RowValue::keys_for_50, "keys 50%", 0},
    {"keys_for_90", &M::keys_for_90, RowValue::keys_for_90, "keys 90%", 0},
    {"keys_for_95", &M::keys_for_95, RowValue::keys_for_95},
    {"band", &M::band},
    {"rows", &M::rows},
    {"masked_rows", &M::masked_rows},
};

constexpr ClassScoreField kClassScores[] = {
    {"sink", &ClassScores::sink},         {"text", &ClassScores::text},
    {"temporal", &ClassScores::temporal}, {"temporal_lift", &ClassScores::temporal_lift},
    {"spatial", &ClassScores::spatial},   {"spatial_lift", &ClassScores::spatial_lift},
    {"local", &ClassScores::local},
};

/// In the order of HeadClass.
constexpr std::array<std::string_view, 7> kClassNames{"sink",  "text",   "temporal", "spatial",
                                                      "local", "global", "undefined"};

std::optional<double> as_number(const Estimate& estimate) { return estimate.value; }
std::optional<double> as_number(const std::optional<double>& value) { return value; }
std::optional<double> as_number(int64_t count) { return static_cast<double>(count); }
std::optional<double> as_number(const std::optional<int64_t>& count) {
  return count ? as_number(*count) : std::nullopt;
}

}  // namespace

std::string_view head_class_name(HeadClass which) {
  return kClassNames[static_cast<size_t>(which)];
}

std::optional<HeadClass> parse_head_class(std::string_view name) {
  const auto* const found = std::find(kClassNames.begin(), kClassNames.end(), name);
  if (found == kClassNames.end()) return std::nullopt;
  return static_cast<HeadClass>(found - kClassNames.begin());
}

std::span<const ClassScoreField> class_score_fields() { return kClassScores; }

bool HeadField::is_metric() const {
  return std::holds_alternative<Estimate M::*>(member) ||
         std::holds_alternative<std::optional<double> M::*>(member);
}

std::string HeadField::error_name() const { return std::string(name) + "_stderr"; }

std::span<const HeadField> head_fields() { return kFields; }

const HeadField* find_head_field(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFields), std::end(kFields),
                   [&](const HeadField& field) { return field.name == name; });
  return found == std::end(kFields) ? nullptr : found;
}

std::vector<std::string_view> metric_names() {
  std::vector<std::string_view> names;
  for (const HeadField& field : kFields) {
    if (field.is_metric()) names.push_back(field.name);
  }
  return names;
}

std::optional<double> number_of(const HeadMetrics& head, const HeadField& field) {
  return std::visit([&](auto member) { return as_number(head.*member); }, field.member);
}

std::optional<double> standard_error_of(const HeadMetrics& head, const HeadField& field) {
  const auto* const estimate = std::get_if<Estimate M::*>(&field.member);
  return estimate == nullptr ? std::nullopt : (head.**estimate).standard_error;
}

}  // namespace attnscope
