#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/heads/head_record.h"

namespace attnscope {

// Heads layer by layer. A head is named by its place among the records.

/// Heads of one attention of the model, of all steps, branches and batch items.
struct LayerHeads {
  std::optional<int64_t> layer;  ///< nothing outside the main stack, and where it is not recorded
  std::string name;              ///< "layer 3", "layer 3 cross" where the layer has several
  std::vector<size_t> heads;     ///< places among the records, ascending
};
/// By layer, block, slot and kind.
std::vector<LayerHeads> heads_by_layer(std::span<const HeadRecord> records);

/// How many keys a row of the head may see, mean over rows; nothing where it is not known.
using KeysSeen = std::function<std::optional<double>(const HeadRecord& record)>;

/// How many of a row's largest weights hold shares of it, mean over a layer's heads, a number a
/// share of keys_curve().
struct LayerCurve {
  LayerHeads layer;
  int64_t heads = 0;         ///< that count keys
  std::vector<double> keys;  ///< as numbers of keys
  std::vector<double>
      density;  ///< of heads whose keys seen are known, as shares of these; or empty
};
/// True of a head that counts keys: all of keys_curve() are defined.
bool has_keys_curve(const HeadMetrics& metrics);
/// Layers none of whose heads count keys are left out.
std::vector<LayerCurve> layer_curves(std::span<const HeadRecord> records,
                                     const KeysSeen& keys_seen);

/// True where weights are shares of a row, which rows of sigmoid scores have none of.
inline bool has_shares(const HeadMetrics& metrics) { return metrics.entropy.value.has_value(); }

}  // namespace attnscope
