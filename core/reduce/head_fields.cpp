#include "core/reduce/head_fields.h"

#include <algorithm>
#include <array>

namespace attnscope {
namespace {

using M = HeadMetrics;

/// A new number of a head is a member of HeadMetrics and a line here.
constexpr HeadField kFields[] = {
    {"entropy", "mean over rows of the entropy in nats", &M::entropy, RowValue::entropy, "entropy",
     3},
    {"effective_keys", "e to the entropy", &M::effective_keys, {}, "eff.keys", 1},
    {"max_weight", "mean over rows of the largest weight", &M::max_weight, RowValue::max_weight,
     "max", 4},
    {"max_weight_peak", "largest weight of all rows", &M::max_weight_peak},
    {"max_logit", "largest logit of all rows, before the softmax", &M::max_logit, {}, "logit", 1},
    {"text_mass", "mean over video rows of the mass on text", &M::text_mass, RowValue::text_mass,
     "text", 3},
    {"padding_mass", "part of text_mass that lies on padding", &M::padding_mass,
     RowValue::padding_mass},
    {"video_mass", "mean over video rows of the mass on video", &M::video_mass,
     RowValue::video_mass},
    {"same_frame_mass", "mean over video rows of the mass on their own frame", &M::same_frame_mass,
     RowValue::same_frame_mass, "frame", 3},
    {"same_position_mass", "mean over video rows of the mass on their place in all other frames",
     &M::same_position_mass, RowValue::same_position_mass, "position", 3},
    {"spatial_score", "mean over video rows of the mass on their own frame and on text",
     &M::spatial_score, RowValue::spatial_score, "spatial", 3},
    {"temporal_score", "mean over video rows of the mass within band in all frames and on text",
     &M::temporal_score, RowValue::temporal_score, "temporal", 3},
    {"local_mass", "mean over video rows of the mass within one frame and two cells",
     &M::local_mass, RowValue::local_mass, "local", 3},
    {"sink_mass", "mean over rows of the weight of the heaviest key", &M::sink_mass, {}, "sink", 4},
    {"sink_share", "mean over rows of the share that the denominator's sink takes from all keys",
     &M::sink_share, RowValue::sink_share, "no key", 3},
    {"keys_for_50", "mean over rows of how many keys hold 50 % of the mass", &M::keys_for_50,
     RowValue::keys_for_50, "keys 50%", 0},
    {"keys_for_80", "mean over rows of how many keys hold 80 % of the mass", &M::keys_for_80,
     RowValue::keys_for_80},
    {"keys_for_90", "mean over rows of how many keys hold 90 % of the mass", &M::keys_for_90,
     RowValue::keys_for_90, "keys 90%", 0},
    {"keys_for_95", "mean over rows of how many keys hold 95 % of the mass", &M::keys_for_95,
     RowValue::keys_for_95},
    {"keys_for_99", "mean over rows of how many keys hold 99 % of the mass", &M::keys_for_99,
     RowValue::keys_for_99},
    {"band", "reach of temporal_score in latent cells", &M::band},
    {"rows", "rows that were computed", &M::rows},
    {"masked_rows", "rows of which the mask leaves nothing; they are in no mean", &M::masked_rows},
};

constexpr ClassScoreField kClassScores[] = {
    {"sink", &ClassScores::sink},         {"text", &ClassScores::text},
    {"temporal", &ClassScores::temporal}, {"temporal_lift", &ClassScores::temporal_lift},
    {"spatial", &ClassScores::spatial},   {"spatial_lift", &ClassScores::spatial_lift},
    {"local", &ClassScores::local},
};

/// In the order of HeadClass.
constexpr std::array<std::string_view, kHeadClasses> kClassNames{
    "sink", "text", "temporal", "spatial", "local", "global", "undefined"};

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

std::span<const KeysForShare> keys_curve() {
  static const auto curve = [] {
    std::array<KeysForShare, kKeyShares.size()> found;
    auto which = static_cast<uint8_t>(RowValue::keys_for_50);
    for (size_t i = 0; i < found.size(); ++i) {
      const RowValue value{which++};
      found[i] = {kKeyShares[i],
                  std::find_if(std::begin(kFields), std::end(kFields),
                               [&](const HeadField& f) { return f.mean_of == value; })};
    }
    return found;
  }();
  return curve;
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
