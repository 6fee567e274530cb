#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "core/maps/computed_map.h"
#include "core/problem/head_name.h"
#include "core/products/differences/pair_stream.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

/// A head as one side of a comparison describes it. Borrows the side.
struct SideHead {
  HeadName name;
  std::string label;  ///< for messages
  const TokenGrid *query_tokens = nullptr, *key_tokens = nullptr;
  std::string score;
  bool sinks = false;   ///< stand in its rows' denominators
  bool logits = false;  ///< it has no weights
  /// Of a capture; null: it stands in an export.
  const CallEntry* call = nullptr;
  /// Of an export, with its rows; the keys that it has; and how its entries are stored: "f16".
  const StoredFacts* facts = nullptr;
  IndexRange keys;
  std::string dtype;
  std::span<const std::string> words = {};  ///< of its prompt, where they are known

  /// Null: it stands in an export.
  const AttentionProblem* problem() const {
    return call != nullptr ? call->problem.get() : nullptr;
  }
};

using QueryList = std::shared_ptr<const std::vector<int64_t>>;

/// The rows and keys of a head that are compared.
struct SideCut {
  /// Ascending; null: all. Pairs that are cut alike share one list.
  QueryList list;
  std::vector<IndexRange> keys;
  bool logits = false;

  std::span<const int64_t> queries() const {
    return list ? std::span<const int64_t>(*list) : std::span<const int64_t>();
  }
};
/// A list of its own, or `before` where that is the same.
QueryList shared_list(std::vector<int64_t> queries, const QueryList& before);

/// A capture or an export whose heads are compared. Thread-safe.
class DiffSide {
 public:
  virtual ~DiffSide() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual std::vector<HeadName> heads() const = 0;
  /// Warns of what an export lacks of it. Throws Error(usage) where nothing is selected.
  virtual std::vector<HeadName> selected(const SelectionOptions& selection,
                                         const Console& console) const = 0;
  virtual SideHead head(const HeadName& name) const = 0;
  virtual std::vector<std::filesystem::path> files() const = 0;
  /// The capture; null: an export.
  virtual const Capture* capture() const { return nullptr; }
  /// Borrows the cut, the backend (null for exports) and `other`, the other side of the pair.
  virtual std::unique_ptr<HeadMap> open(const SideHead& head, const SideCut& cut,
                                        const TileBackend* backend, const HeadMap* other) const = 0;
};

std::unique_ptr<DiffSide> make_diff_side(Capture capture);
std::unique_ptr<DiffSide> make_diff_side(const std::filesystem::path& path);

}  // namespace attnscope
