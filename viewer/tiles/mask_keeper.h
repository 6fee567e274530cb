#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/base/place_order.h"
#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"
#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/view/maps/head_mask.h"

namespace attnscope {

/// Builds and measures the mask that is wanted on a thread of its own, with the backend's workers:
/// its blocks first, then its numbers from sampled rows, then those of all rows, as `attnscope
/// mask` has them, then, where it is asked for, where its weight lies. A wish for another mask ends
/// the work on the one before. The last ones stay. Thread-safe.
class MaskKeeper {
 public:
  struct Wish {
    MaskRequest request;
    std::shared_ptr<const AttentionProblem> problem;  ///< that the head is of, as it is stored
    MapPlaces places = {};                            ///< that the blocks are told in
  };

  /// Borrows the backend. `memory`: bytes that measuring may take. `wake` is called from the thread
  /// whenever something has come.
  MaskKeeper(const TileBackend& backend, int64_t memory, Reserve reserve, Taken taken,
             std::function<void()> wake);
  ~MaskKeeper();
  MaskKeeper(const MaskKeeper&) = delete;
  MaskKeeper& operator=(const MaskKeeper&) = delete;

  void want(std::optional<Wish> wish);
  /// As far as it is known by now; null before its blocks are. One that cannot be had has a
  /// problem; where it found no memory it is measured again once less is taken.
  std::shared_ptr<const HeadMask> find(const MaskRequest& request) const;
  /// True while the wanted mask is still worked on.
  bool busy() const;
  int64_t bytes() const;

 private:
  struct Kept {
    std::shared_ptr<const HeadMask> mask;
    MemoryReservation memory;
    std::optional<int64_t> taken = {};  ///< when it found no memory
  };
  void run(const std::stop_token& stop);
  void work(const Wish& wish, const std::stop_token& stop);
  void measure(const Wish& wish, HeadMask& mask, MemoryReservation& memory,
               const std::stop_token& stop);
  void publish(const HeadMask& mask, MemoryReservation* memory, std::optional<int64_t> taken = {});
  const Kept* find_kept(const MaskRequest& request) const;
  /// The mask that is kept, measured over all rows, with HeadMask::mass or not; the head's mass.
  std::optional<HeadMask> measured_before(const MaskRequest& request) const;
  std::vector<float> mass_before(const MaskRequest& request) const;
  void measure_numbers(const Wish& wish, HeadMask& mask, MemoryReservation& memory,
                       MemoryBudget& budget, const std::stop_token& stop);
  static bool over(const HeadMask& mask);
  bool pending() const;

  const TileBackend& backend_;
  const int64_t memory_;
  const Reserve reserve_;
  const Taken taken_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Wish> wish_;
  std::stop_source current_;  ///< of the work on the wish
  std::vector<Kept> kept_;    ///< the latest last
  std::jthread thread_;       ///< last: it uses the others
};

}  // namespace attnscope
