#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/stream/tile_backend.h"
#include "io/files/input_set.h"
#include "viewer/tiles/frame_keeper.h"
#include "viewer/tiles/map_call.h"
#include "viewer/tiles/mask_keeper.h"
#include "viewer/tiles/norm_cache.h"
#include "viewer/tiles/sketch_keeper.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/tiles/tile_scheduler.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// Brings tiles, lines and entries on threads of its own, in pieces of a fraction of a second:
/// computed from Q and K, or read from an export. What is most wanted comes first: the entry and
/// the line under the mouse, which have a thread for themselves before which the others give way,
/// then tiles, then passes that make whole pyramids exact.
///
/// Tiles that are computed come of the base level and above at once from sampled rows, in up to
/// three refinements; finer ones exactly. Exact numbers are those of an export: entries bit for
/// bit, texels the largest of them and their mean. Row norms found in a pass are kept on disk for
/// the next time. Of an export nothing is sampled: its tiles of the base level and above come with
/// the pass (see export_maps()).
///
/// Logits: a pass of their own makes their pyramid exact while tiles of it are wanted for a head
/// with a tile that is wished for exactly, before that of its weights. A reverse line needs all row
/// norms of its head and brings about the pass that finds them. exact() speaks of all quantities
/// whose tiles are wanted.
///
/// Sketches come from a sample of a head's rows after the tiles that are wanted, in turn with
/// passes; those of all rows come last.
///
/// Work that failed is told by status().problem and not tried again before it was not wanted for
/// once; where it found no memory it is, as soon as less is taken. A sample gives way to the pass.
class TileService : public TileSource {
 public:
  struct Settings {
    /// For all that is held: tiles, lines, pyramids, norms, bound heads, buffers.
    int64_t memory = int64_t{2} << 30;
    int threads = 0;  ///< 0: the backend's own number; two that read
    /// Where row norms are kept: all are looked through, the first that can be written takes new
    /// ones. None: they are not kept.
    std::vector<std::filesystem::path> cache_folders = {};
    /// The files that the maps are computed from: norms are kept while they are as when opened.
    std::shared_ptr<const InputSet> sources = nullptr;
    /// Calls, the first ones, whose norms and sketches are kept: those of `sources`, where there
    /// are others. −1: all.
    int64_t kept_calls = -1;
    /// As cache_folders, for the calls behind those, of a second capture: their norms alone. None:
    /// they are not kept.
    std::vector<std::filesystem::path> other_cache_folders = {};
    std::shared_ptr<const InputSet> other_sources = nullptr;
    /// Capture::call_stamps() of all calls that there are by now, under which sketches are kept
    /// beside row norms; asked on another thread. None: they are not.
    std::function<std::vector<std::string>()> call_stamps = {};
    /// Reads a picture of the video by its number, on a thread of the service's; none: there are no
    /// pictures.
    std::function<GreyImage(int64_t number)> read_frame = {};
  };

  /// Borrows the backend. `wake` is called from any thread, without locks, when something new can
  /// be found; it must not throw.
  TileService(const std::vector<MapCall>& calls, const TileBackend& backend,
              const Settings& settings, std::function<void()> wake);
  /// Reads; the settings' cache is not used.
  TileService(std::shared_ptr<const TexelReader> reader, const Settings& settings,
              std::function<void()> wake);
  /// Ends the workers as soon as their pieces are done.
  ~TileService() override;

  /// Adds calls behind those that there are, whose work goes on: of a capture that grows. They
  /// hold `bytes` while it lives. Not of an export. Only on the window's thread. Throws
  /// Error(resource) where there is no room, and adds nothing then.
  void add(const std::vector<MapCall>& calls, int64_t bytes);

  MapGeometry geometry(const HeadId& head) const override;
  int64_t order_number(const MapPlaces& places) override;
  /// Throws Error(usage) where the capture or export has no such head, numbers, tile, token or
  /// entry.
  void want(Wishes wishes) override;
  /// Entries of scores without logits have NaN for theirs.
  Answer find(const Ask& ask) const override;
  std::string problem(const Ask& ask) const override;
  bool offers(const Ask& kind) const override;
  bool exact(const HeadId& head) const override;
  TileSourceStatus status() const override;

 private:
  /// `backend` is null where nothing is computed.
  TileService(std::unique_ptr<MapWork> maps, const TileBackend* backend, const Settings& settings,
              std::function<void()> wake);
  void end_threads();
  Reserve reserve_unlocked();
  void want_mask(const std::optional<MaskRequest>& mask);
  /// A worker's thread: what is most wanted, piece by piece.
  void work();
  /// The thread of the line and the entry that follow the mouse, which wait for nobody's piece.
  void follow_lines();
  std::optional<WorkerScratch> make_scratch();
  void rest(std::optional<WorkerScratch>& scratch, std::unique_lock<std::mutex>& lock);
  void run(Assignment& assignment, std::optional<WorkerScratch>& scratch);
  /// Returns with the lock held, as it was called.
  void bind(const Assignment& assignment, std::unique_lock<std::mutex>& lock);
  std::shared_ptr<const BoundMap> make_bound(const HeadId& id, const AttentionProblem& problem,
                                             bool checked);
  void look_up_norms(const Assignment& assignment);
  void keep_norms(HeadCache& head);
  void take_norms(const HeadId& id, const std::vector<RowNorm>& norms);
  void look_up_sketches(const Wishes& wishes);
  void take_sketches(const SketchKeeper::Source& of, const SketchKeeper::Sketches& found);
  void keep_sketches(const Assignment& done);
  void take_warning(const std::string& problem);
  /// True of a head in its tokens' own order, of a call whose norms and sketches are kept on disk.
  bool can_keep(const HeadId& id) const {
    return id.order == 0 && (kept_calls_ < 0 || id.call < kept_calls_);
  }
  /// Where norms of the head are kept; null: nowhere.
  NormCache* keeper_of(const HeadId& id);
  NormCache::Source source_of(const HeadCache& head) const {
    return {head.id, head.problem, scheduler_.work().call(head.id)->mask.get()};
  }

  const TileBackend* const backend_;
  const int workers_;
  const int64_t buffer_bytes_;
  const int64_t kept_calls_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  mutable TileScheduler scheduler_;  ///< finding counts as use
  std::vector<MemoryReservation> added_memory_;
  std::vector<MapPlaces> orders_;  ///< that were reserved for
  /// Of a batch item of a call: how many exact sketches the kept ones have.
  struct KeptSketches {
    bool any = false;
    int64_t exact = 0;
  };
  std::map<std::pair<int64_t, int64_t>, KeptSketches> kept_sketches_;  ///< asked for
  std::optional<NormCache> keeper_, other_keeper_;  ///< other: of a second capture
  std::optional<SketchKeeper> sketches_;
  std::optional<FrameKeeper> frames_;
  std::optional<MaskKeeper> masks_;
  std::vector<std::jthread> threads_;
};

}  // namespace attnscope
