#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "core/stream/tile_backend.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/wishes.h"
#include "viewer/tiles/tile_service.h"

namespace attnscope::test {

/// A service over one call, and a way to wait for what it finds.
class ServiceHarness {
 public:
  /// Without a backend: the CPU's.
  explicit ServiceHarness(const AttentionProblem& problem,
                          TileService::Settings settings = small_settings(),
                          std::unique_ptr<TileBackend> backend = nullptr);
  /// 64 MiB, two threads, nothing on disk.
  static TileService::Settings small_settings();

  TileService& service() { return *service_; }
  const TileBackend& backend() const { return *backend_; }
  /// Waits until `ready` holds, looking again whenever the service wakes; false after a minute.
  bool wait(const std::function<bool()>& ready);
  bool wait_idle() {
    return wait([&] { return !service_->status().busy; });
  }
  void want(const WishesByKind& wishes) { service_->want(wishes); }
  /// Wants an entry, beside these wishes, and waits for it; nothing when it does not come.
  std::optional<ProbedEntry> probe(const ProbeRequest& request, WishesByKind wishes = {});

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::unique_ptr<TileBackend> backend_;
  std::unique_ptr<TileService> service_;
};

/// The entries of a head's map in double, [queries, keys], and how far float32 may be off.
struct MapReference {
  MapReference(const Oracle& oracle, const HeadId& head, Quantity quantity);
  double at(int64_t query, int64_t key) const {
    return entries[static_cast<size_t>(query * cols + key)];
  }
  bool is_masked(int64_t query, int64_t key) const {
    return masked[static_cast<size_t>(query * cols + key)] != 0;
  }
  /// Largest and mean of the texel, as MapTile defines them.
  struct Texel {
    double max = 0, mean = 0;
  };
  Texel texel(int level, int64_t row, int64_t col) const;
  bool close(double value, double expected) const;
  /// Empty, or the worst texel of the tile, in words.
  std::string differs(const MapTile& tile) const;

  int64_t rows = 0, cols = 0;
  Quantity quantity;
  double relative = 0, absolute = 0;
  bool has_mask = false;
  std::vector<double> entries;
  std::vector<uint8_t> masked;  ///< [queries, keys]
};

}  // namespace attnscope::test
