#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Rules that planner and engine share: how a task is cut into panels and column chunks, which
/// chunks the mask leaves empty, and where a worker's buffers lie.

/// True where the stream needs the task's row norms: where they are the product, and where
/// weights are divided by them.
bool needs_norms(const HeadTask& task, const TileRequest& request);

/// True where the stream has to compute these norms, because they are not known yet.
bool computes_norms(const HeadTask& task, const TileRequest& request);

/// True where chunks that the mask leaves empty are left out (weights, which are 0 there).
bool skips_empty_chunks(const HeadTask& task, const TileRequest& request);

/// True where the mask leaves nothing of the rows at positions `rows` of the task and the
/// sequence's keys `keys`.
bool is_masked_out(const HeadTask& task, IndexRange rows, IndexRange keys);

/// Adds rows · keys to a number of entries. Sizes come from files, so they may be anything: throws
/// Error(resource) where it cannot be counted.
void add_area(int64_t& entries, int64_t rows, int64_t keys);

/// Entries of the rows at positions `rows` of the task with all keys of the sequence that the mask
/// leaves to compute, asked of it `step` keys at a time.
int64_t unmasked_entries(const HeadTask& task, IndexRange rows, int64_t step);

/// Of the products of the task's rows with all keys, masked or not: 2·d an entry.
double full_flops(const HeadTask& task);

/// A sample of the task that its time is judged by: the sequence's rows of `panels` panels of
/// `panel_rows` rows, evenly spread over it, ascending; all rows where it has no more panels. The
/// task must have no known norms.
std::vector<int64_t> sampled_panels(const HeadTask& task, int64_t panel_rows, int64_t panels);

/// Reads the query rows at positions `rows` of the task, a run of neighbours at a time. `index` and
/// `data` hold rows.size() indices and packed rows, and are borrowed by the result.
QueryBlock read_query_rows(const HeadTask& task, IndexRange rows, int64_t* index, std::byte* data);
/// Reads them for calls of `head`; where it fetches rows itself, sets `index` alone and no data.
QueryBlock read_query_rows(const HeadTask& task, const BoundHead& head, IndexRange rows,
                           int64_t* index, std::byte* data);
/// The query rows of these numbers, which ascend, packed: a run of neighbours at a time.
void read_listed_rows(const HeadTensor& q, int64_t batch, int64_t head,
                      std::span<const int64_t> index, std::byte* data);

/// The keys of the task's column chunks [first, last).
IndexRange chunk_keys(const HeadTask& task, const TileRequest& request, int64_t first,
                      int64_t last);

/// How a worker's single allocation is divided. Offsets and sizes in bytes.
struct WorkerLayout {
  int64_t tiles = 0;  ///< active_chunks chunks, at the beginning, page-aligned
  int64_t queries = 0;
  int64_t index = 0;
  int64_t norms = 0;
  int64_t pointers = 0;
  int64_t workspace = 0;
  int64_t workspace_bytes = 0;
  int64_t bytes = 0;       ///< of the whole allocation
  int64_t sink_bytes = 0;  ///< that the sink allocates meanwhile
  int64_t reserved() const { return bytes + sink_bytes; }
};

/// The largest size of a panel over all tasks of a stream.
struct PanelShape {
  int64_t rows = 0;
  int64_t segment_chunks = 0;  ///< 0 where no entries are wanted
  int64_t active_chunks = 0;
  bool one_product = true;
};

/// Throws Error(resource) where the sizes overflow.
WorkerLayout layout_worker(std::span<const HeadTask> tasks, const TileRequest& request,
                           const TileBackend& backend, const PanelShape& shape);

/// One worker's buffers, allocated once. Not thread-safe.
class WorkerBuffers {
 public:
  explicit WorkerBuffers(const WorkerLayout& layout);

  std::byte* tiles() const { return at(layout_.tiles); }
  std::byte* queries() const { return at(layout_.queries); }
  int64_t* index() const { return reinterpret_cast<int64_t*>(at(layout_.index)); }
  RowNorm* norms() const { return reinterpret_cast<RowNorm*>(at(layout_.norms)); }
  std::byte** pointers() const { return reinterpret_cast<std::byte**>(at(layout_.pointers)); }
  std::span<std::byte> workspace() const {
    return {at(layout_.workspace), static_cast<size_t>(layout_.workspace_bytes)};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::byte* at(int64_t offset) const { return memory_.get() + offset; }
  WorkerLayout layout_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace attnscope
