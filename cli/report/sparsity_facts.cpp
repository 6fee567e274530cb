#include "cli/report/sparsity_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/products/tokens/part_names.h"
#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

/// Columns of a sink's list that are lighter are left out of it.
constexpr double kListedMass = 0.01;

/// The mean of what was added; nothing where that was nothing.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  int64_t count() const { return count_; }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

/// The token that a column is of: `text 3 “red”`, "(0, 4, 7)", "key 19".
std::string sink_name(const Sink& sink) {
  if (sink.place) return fmt::format("({}, {}, {})", sink.place->t, sink.place->y, sink.place->x);
  if (!sink.text_index) return fmt::format("key {}", sink.key);
  if (!sink.token) return fmt::format("text {}", *sink.text_index);
  const std::string_view piece = token_piece(*sink.token).text;
  return fmt::format("text {} \u201c{}\u201d", *sink.text_index,
                     one_line(piece.empty() ? std::string_view(*sink.token) : piece));
}

const HeadArrayValues* frame_array(const HeadRecord& record) {
  for (const HeadArrayValues& array : record.arrays) {
    if (array.which == HeadArray::frame_frame) return &array;
  }
  return nullptr;
}

/// The mean masses between parts, over heads that have these parts.
class PartMeans {
 public:
  void add(const std::vector<double>& masses) {
    if (cells_.empty()) cells_.resize(masses.size());
    for (size_t i = 0; i < masses.size(); ++i) {
      if (!std::isnan(masses[i])) cells_[i].add(masses[i]);
    }
    ++heads_;
  }
  int64_t heads() const { return heads_; }

  OrderedJson json(const std::vector<std::string>& parts) const {
    OrderedJson names = OrderedJson::array(), rows = OrderedJson::array();
    for (size_t q = 0; q < parts.size(); ++q) {
      if (parts[q].empty()) continue;
      names.push_back(parts[q]);
      OrderedJson row = OrderedJson::array();
      for (size_t k = 0; k < parts.size(); ++k) {
        if (parts[k].empty()) continue;
        const Mean& cell = cells_[q * parts.size() + k];
        row.push_back(cell.count() > 0 ? OrderedJson(cell.value()) : OrderedJson());
      }
      rows.push_back(std::move(row));
    }
    return {{"names", std::move(names)},
            {"mean", std::move(rows)},
            {"data", nullptr},
            {"heads", heads_}};
  }

 private:
  std::vector<Mean> cells_;
  int64_t heads_ = 0;
};

}  // namespace

OrderedJson sparsity_curves(std::span<const HeadRecord> records, const KeysSeen& keys_seen) {
  OrderedJson recall = OrderedJson::array();
  for (const KeysForShare& share : keys_curve()) recall.push_back(share.share);
  OrderedJson curves = OrderedJson::array();
  for (const LayerCurve& curve : layer_curves(records, keys_seen)) {
    OrderedJson line{{"layer", curve.layer.layer ? OrderedJson(*curve.layer.layer) : OrderedJson()},
                     {"name", curve.layer.name},
                     {"heads", curve.heads}};
    if (!curve.density.empty()) line["density"] = curve.density;
    line["keys"] = curve.keys;
    line["recall"] = recall;
    curves.push_back(std::move(line));
  }
  return curves.empty() ? OrderedJson() : curves;
}

OrderedJson density_ticks(const OrderedJson& curves) {
  constexpr int kMostTicks = 12;
  double low = 0.5;
  for (const OrderedJson& curve : curves) {
    for (const OrderedJson& share : curve.value("density", OrderedJson::array())) {
      if (share.is_number() && share > 0) low = std::min(low, share.get<double>());
    }
  }
  return log_ticks(low, 1, kMostTicks);
}

OrderedJson sparsity_sinks(std::span<const HeadRecord> records) {
  std::vector<size_t> heads;
  bool known = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& mass = records[i].metrics.sink_mass;
    if (!mass || !has_shares(records[i].metrics)) continue;
    known = true;
    if (*mass >= kSinkMass) heads.push_back(i);
  }
  if (!known) return {};
  std::sort(heads.begin(), heads.end(), [&](size_t a, size_t b) {
    const double mass_a = *records[a].metrics.sink_mass, mass_b = *records[b].metrics.sink_mass;
    return mass_a != mass_b ? mass_a > mass_b : records[a].name < records[b].name;
  });
  heads.resize(std::min(heads.size(), kMostSinkHeads));
  OrderedJson sinks = OrderedJson::array();
  for (const size_t place : heads) {
    OrderedJson keys = OrderedJson::array();
    for (const Sink& sink : records[place].metrics.sinks) {
      if (sink.mass < kListedMass) continue;
      keys.push_back({{"key", sink.key}, {"name", sink_name(sink)}, {"mass", sink.mass}});
    }
    sinks.push_back({{"head", place}, {"keys", std::move(keys)}});
  }
  return sinks;
}

OrderedJson sparsity_padding(std::span<const HeadRecord> records) {
  Mean mean;
  std::optional<size_t> most;
  std::vector<size_t> heads;
  const auto mass_of = [&](size_t i) { return *records[i].metrics.padding_mass.value; };
  for (size_t i = 0; i < records.size(); ++i) {
    const HeadMetrics& metrics = records[i].metrics;
    if (!metrics.padding_mass.value || !has_shares(metrics)) continue;
    mean.add(mass_of(i));
    if (!most || mass_of(i) > mass_of(*most)) most = i;
    if (mass_of(i) >= kPaddingMass) heads.push_back(i);
  }
  if (!most) return {};
  std::sort(heads.begin(), heads.end(), [&](size_t a, size_t b) {
    return mass_of(a) != mass_of(b) ? mass_of(a) > mass_of(b) : records[a].name < records[b].name;
  });
  std::string text = fmt::format(
      "Tokens of the video give {} of a row to padding, mean over {} heads; {} of "
      "these give {} or more, the most is {}.",
      share_words(mean.value(), 2), mean.count(),
      heads.empty() ? "none" : std::to_string(heads.size()), share_words(kPaddingMass),
      share_words(mass_of(*most), 2));
  return {{"text", std::move(text)}, {"heads", heads}};
}

OrderedJson sparsity_frames(std::span<const HeadRecord> records,
                            std::span<const HeadTokens> tokens) {
  // In the order of their first heads.
  std::vector<std::pair<std::vector<std::string>, PartMeans>> groups;
  for (size_t i = 0; i < records.size(); ++i) {
    const HeadArrayValues* array = frame_array(records[i]);
    if (array == nullptr || !has_shares(records[i].metrics) || tokens[i].queries == nullptr ||
        tokens[i].keys == nullptr)
      continue;
    const std::vector<std::string> names = part_names(*tokens[i].queries);
    if (names != part_names(*tokens[i].keys) ||
        array->values.size() != names.size() * names.size()) {
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& other) { return other.first == names; });
    if (group == groups.end()) group = groups.insert(groups.end(), {names, {}});
    group->second.add(array->values);
  }
  const auto parts = [](const std::vector<std::string>& names) {
    return std::count_if(names.begin(), names.end(), [](const auto& n) { return !n.empty(); });
  };
  std::erase_if(groups, [&](const auto& group) { return parts(group.first) < 2; });
  const auto most = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.heads() < b.second.heads(); });
  if (most == groups.end()) return {};
  return most->second.json(most->first);
}

}  // namespace attnscope
