#include "core/heads/layer_heads.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

using LayerKey = std::tuple<bool, int64_t, std::string, std::string, std::string>;

LayerKey layer_key(const HeadName& name) {
  const bool none = name.place.unrecorded.layer || name.layer == kNoLayer;
  return {none, none ? 0 : name.layer, name.place.block, name.place.slot, name.kind};
}

/// keys_for_50 … of a head that has them.
std::vector<double> curve_of(const HeadMetrics& metrics) {
  std::vector<double> keys;
  for (const KeysForShare& share : keys_curve()) keys.push_back(*number_of(metrics, *share.field));
  return keys;
}

/// The mean of curves.
class CurveMean {
 public:
  void add(const std::vector<double>& values, double unit) {
    sums_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) sums_[i] += values[i] / unit;
    ++count_;
  }
  int64_t count() const { return count_; }
  /// Empty where nothing was added.
  std::vector<double> values() const {
    std::vector<double> means = sums_;
    for (double& mean : means) mean /= static_cast<double>(count_);
    return means;
  }

 private:
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<LayerHeads> heads_by_layer(std::span<const HeadRecord> records) {
  std::map<LayerKey, LayerHeads> layers;
  std::map<std::pair<bool, int64_t>, int64_t> alike;  // attentions of a layer
  for (size_t i = 0; i < records.size(); ++i) {
    LayerHeads& layer = layers[layer_key(records[i].name)];
    layer.heads.push_back(i);
  }
  for (const auto& [key, layer] : layers) ++alike[{std::get<0>(key), std::get<1>(key)}];
  std::vector<LayerHeads> all;
  for (auto& [key, layer] : layers) {
    const HeadName& name = records[layer.heads.front()].name;
    ModelPlace place = name.place;
    place.chunk = kNoChunk;
    place.forward = {};
    const bool has_layer = !std::get<0>(key);
    if (has_layer) layer.layer = std::get<1>(key);
    const bool single = alike[{std::get<0>(key), std::get<1>(key)}] == 1;
    if (single && has_layer) place.block = place.slot = "";
    layer.name = one_line(layer_text(name.layer, place));
    if (layer.name.empty()) layer.name = "all";
    if (!single && !name.kind.empty()) layer.name += " " + name.kind;
    all.push_back(std::move(layer));
  }
  return all;
}

bool has_keys_curve(const HeadMetrics& metrics) {
  const std::span<const KeysForShare> shares = keys_curve();
  return has_shares(metrics) && std::all_of(shares.begin(), shares.end(), [&](const auto& share) {
           return number_of(metrics, *share.field).has_value();
         });
}

std::vector<LayerCurve> layer_curves(std::span<const HeadRecord> records,
                                     const KeysSeen& keys_seen) {
  std::vector<LayerCurve> curves;
  for (LayerHeads& layer : heads_by_layer(records)) {
    CurveMean keys, density;
    for (const size_t place : layer.heads) {
      if (!has_keys_curve(records[place].metrics)) continue;
      const std::vector<double> curve = curve_of(records[place].metrics);
      keys.add(curve, 1);
      if (const auto seen = keys_seen(records[place])) density.add(curve, *seen);
    }
    if (keys.count() == 0) continue;
    curves.push_back({std::move(layer), keys.count(), keys.values(), density.values()});
  }
  return curves;
}

}  // namespace attnscope
