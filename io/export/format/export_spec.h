#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/index_range.h"
#include "core/stream/weight_code.h"
#include "io/capture/capture.h"
#include "io/capture/selection_share.h"

namespace attnscope {

/// The kind of numbers that an export holds.
enum class ExportProduct : uint8_t {
  weights,
  logits,
  lse,
  rows,
  topk,
  threshold,
  pooled,
  output,
  stats
};
std::string_view export_product_name(ExportProduct product);
/// The products that `attnscope export` makes: all but stats.
std::span<const ExportProduct> exported_maps();

/// One call's share of an export.
struct ExportCall {
  SelectedCall selected;
  IndexRange rows;  ///< unless row_list says which
  std::vector<int64_t>
      row_list;  ///< ascending; for the product `rows` alone, and never empty there
  IndexRange keys;

  int64_t num_rows() const {
    return row_list.empty() ? rows.size() : static_cast<int64_t>(row_list.size());
  }
};

/// The setting of the product `topk`.
struct KeepLargest {
  int64_t keys = 0;  ///< of each row; above 0
};
/// The setting of the product `threshold`.
struct KeepAbove {
  double weight = 0;  ///< weights from here on; above 0
};
/// The settings of the product `pooled`.
struct PoolBlocks {
  int64_t side = 0;      ///< of the blocks, in entries
  bool pyramid = false;  ///< all levels above it as well
};

/// The largest ExportSpec::align.
constexpr int64_t kMostAlign = int64_t{64} << 20;

/// Everything that decides the content of an export file.
struct ExportSpec {
  ExportProduct product = ExportProduct::weights;
  Encoding encoding = Encoding::f16_scaled;
  std::vector<ExportCall> calls;
  /// That of the product; the other products have none.
  std::variant<std::monostate, KeepLargest, KeepAbove, PoolBlocks> detail;
  bool gzip = false;  ///< entries compressed, one shard file a group (weights, logits, rows)
  /// Bytes, a power of two: chunks stand at multiples of it, and where maps are large enough are
  /// multiples of it themselves. 0: pages.
  int64_t align = 0;

  std::string capture_name;
  std::string capture_hash;  ///< found last, since it reads the tensors
  /// Digests of its inputs, one a call; empty where a part has nothing of the call.
  std::vector<std::string> call_hashes = {};
  std::string options_json;  ///< the content-deciding options
  std::string backend;
  /// Where the file holds one share of the calls: its groups are those of a file of all of them,
  /// with the share's heads alone.
  std::optional<SelectionShare> share = {};

  /// Of the product they belong to.
  const KeepLargest& kept_largest() const { return std::get<KeepLargest>(detail); }
  const KeepAbove& kept_above() const { return std::get<KeepAbove>(detail); }
  const PoolBlocks& blocks() const { return std::get<PoolBlocks>(detail); }

  /// The calls and heads as they were selected; those of a part as its share of them is.
  std::vector<SelectedCall> selection() const;
  /// Those calls with the heads that the file has.
  std::vector<SelectedCall> own_selection() const;
  /// True where whole rows are reduced to what is kept of them (topk, threshold).
  bool keeps_part_of_rows() const {
    return product == ExportProduct::topk || product == ExportProduct::threshold;
  }
  /// True where the export is a folder of shard files, one a group, with a master that links them.
  bool is_sharded() const { return gzip || keeps_part_of_rows(); }
};

}  // namespace attnscope
