#pragma once

#include <array>
#include <string>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/export/write/export_coordinates.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// Datasets of exports that keep some weights of each row (topk, threshold), as a shard has them
/// and its master shows them. Everything throws Error(file).

/// A dataset of the product topk: (batch, head, query, k), or without `k`.
struct LargestDataset {
  const char* name;
  hid_t type;
  const char* long_name;
  bool by_rank;
};
/// Weights, keys, mass.
std::array<LargestDataset, 3> largest_datasets();
std::vector<int64_t> shape_of(const LargestDataset& dataset, const ExportGroup& group,
                              int64_t keys);
/// The scale `k` of `keys` ranks.
Hdf5Dataset write_ranks(const Hdf5Writer& writer, hid_t parent, int64_t keys);
/// Tells the meaning and the axes of what was made of a dataset.
void describe_largest(const Hdf5Writer& writer, const Hdf5Dataset& made,
                      const LargestDataset& dataset, const ExportScales& scales,
                      const Hdf5Dataset& ranks);

/// The groups of the heads' lists, "b00_h003", in the order of batch items and heads.
std::vector<std::string> list_names(const ExportGroup& group);

/// A dataset of a list: `indptr` has an element a row and one more, `kept_mass` one a row, the
/// others one a kept weight.
struct ListDataset {
  enum class Axis : uint8_t { row_edge, row, kept };
  const char* name;
  hid_t type;
  const char* long_name;
  Axis axis;
};
/// Keys, weights, starts, mass.
std::array<ListDataset, 4> list_datasets();

/// The axes of a list, without coordinates; `query` borrows that of the list's call.
class ListAxes {
 public:
  ListAxes(const Hdf5Writer& writer, hid_t list, const Hdf5Dataset& query, int64_t rows,
           int64_t kept);
  int64_t extent(const ListDataset& dataset) const;
  /// Tells the meaning and the axis of what was made of a dataset.
  void describe(const Hdf5Dataset& made, const ListDataset& dataset) const;

 private:
  const Hdf5Writer& writer_;
  const Hdf5Dataset& query_;
  const int64_t rows_, kept_;
  Hdf5Dataset row_edge_, kept_scale_;
};

/// `kept_mass` (batch, head, query) of a group, virtual: those of its lists in `file`.
void write_kept_mass(const Hdf5Writer& writer, hid_t parent, const ExportGroup& group,
                     const ExportScales& scales, const std::string& file);

}  // namespace attnscope
