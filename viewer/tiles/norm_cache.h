#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "io/capture/lse_cache.h"
#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/tiles/request_thread.h"

namespace attnscope {

/// Looks for the row norms of heads on disk and keeps new ones there, on a thread of its own, so
/// that neither files nor their hashes delay a worker. Thread-safe.
class NormCache {
 public:
  /// Where a head's norms come from.
  struct Source {
    HeadId id;
    const AttentionProblem* problem = nullptr;
    const TensorSource* mask = nullptr;
  };
  /// Takes the norms that were found of a head, [num_queries]. This and `Failed`, which takes the
  /// text of a problem, are called from the keeper's thread, without locks.
  using Found = std::function<void(const HeadId& id, std::vector<RowNorm> norms)>;
  using Failed = std::function<void(const std::string& problem)>;

  /// Of a cache without folders nothing is ever found or kept. Norms are of `backend`, which is
  /// borrowed, and checks in `check_memory` bytes some of those that were found; where that does
  /// not suffice, none are found.
  NormCache(LseCache cache, const TileBackend& backend, int64_t check_memory, Reserve reserve,
            Found found, Failed failed);

  bool enabled() const { return cache_.enabled(); }
  void look_up(const Source& source);
  /// `memory` is what the norms were reserved with.
  void keep(const Source& source, std::vector<RowNorm> norms, MemoryReservation memory);

 private:
  struct Request {
    Source source;
    MemoryReservation memory;
    std::vector<RowNorm> norms;  ///< to be kept; empty: to be looked up
  };
  void serve(Request& request, std::stop_token stop);

  LseCache cache_;
  const TileBackend& backend_;
  MemoryBudget check_budget_;
  const Reserve reserve_;
  const Found found_;
  const Failed failed_;
  std::map<HeadId, std::string> keys_;
  std::optional<RequestThread<Request>> thread_;  ///< last: it uses all of them
};

}  // namespace attnscope
