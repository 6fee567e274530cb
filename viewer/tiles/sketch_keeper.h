#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/stream/tile_backend.h"
#include "io/capture/sketch_cache.h"
#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/tiles/request_thread.h"

namespace attnscope {

/// Looks for the sketches of a call on disk and keeps new ones there, on a thread of its own.
/// Thread-safe.
class SketchKeeper {
 public:
  using Sketches = SketchCache::Sketches;
  /// A batch item of a call.
  struct Source {
    int64_t call = 0, batch = 0;
    const AttentionProblem* problem = nullptr;
  };
  /// Gives a stamp for each call, see Capture::call_stamps(); asked on the keeper's thread, again
  /// where calls were added.
  using Stamps = std::function<std::vector<std::string>()>;
  /// Takes the sketches that were found, one a head, or none. From the keeper's thread, unlocked.
  using Answer = std::function<void(const Source& source, Sketches sketches)>;
  using Failed = std::function<void(const std::string& problem)>;

  /// Some rows of what was found are computed again, with buffers of about `check_bytes`; where
  /// they differ nothing of the file is believed, and `failed` told.
  SketchKeeper(SketchCache cache, Stamps stamps, const TileBackend& backend, int64_t check_bytes,
               const Reserve& reserve, Answer answer, Failed failed);

  void look_up(const Source& source) { thread_.add({source, {}}); }
  /// One a head.
  void keep(const Source& source, Sketches sketches) { thread_.add({source, std::move(sketches)}); }

 private:
  struct Request {
    Source source;
    Sketches sketches;  ///< to be kept; empty: to be looked up
  };
  void serve(const Request& request);
  Sketches found(const Source& source, const std::string& key);
  bool agrees(const Source& source, const Sketches& sketches);
  const std::string& stamp(int64_t call);

  SketchCache cache_;
  const Stamps make_stamps_;
  std::vector<std::string> stamps_;
  const TileBackend& backend_;
  WorkerScratch scratch_;
  const Answer answer_;
  const Failed failed_;
  RequestThread<Request> thread_;  ///< last: it uses all of them
};

}  // namespace attnscope
