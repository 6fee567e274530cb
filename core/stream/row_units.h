#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/stream/tile_sink.h"

namespace attnscope {

/// A stream cut so that several processes can share it: tasks of runs of rows, each of one head, in
/// the stream's order. They borrow what the stream's tasks borrow.
struct RowUnits {
  /// Where a unit stands in the stream.
  struct Place {
    int64_t task = 0;
    int64_t first_row = 0;  ///< position among the task's rows
  };
  std::vector<HeadTask> tasks;
  std::vector<Place> places;  ///< of each
};

/// Cuts the tasks, of which there is one at least, into at least `least` units where they have the
/// rows, on multiples of `chunk_rows`. Depends on nothing else, so that all processes of a run cut
/// alike.
RowUnits cut_into_units(std::span<const HeadTask> tasks, int64_t chunk_rows, int64_t least);

/// Gives tiles of units to a sink as tiles of the tasks that they were cut from. The sink's end()
/// is not called: one process does not know when all have done their share. Borrows everything.
class UnitSink final : public TileSink {
 public:
  UnitSink(TileSink& sink, std::span<const HeadTask> tasks, const RowUnits& units)
      : sink_(sink), tasks_(tasks), units_(units) {}

  TileRequest request() const override { return sink_.request(); }
  void begin(std::span<const HeadTask> units, int workers) override;
  void consume(const Tile& tile) override;
  void end() override {}
  void abort() noexcept override { sink_.abort(); }

 private:
  TileSink& sink_;
  const std::span<const HeadTask> tasks_;
  const RowUnits& units_;
};

}  // namespace attnscope
