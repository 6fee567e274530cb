#pragma once

#include <algorithm>
#include <span>

#include "core/stream/tile_sink.h"

namespace attnscope {

/// Takes the norms of one task's rows, in their order. The span is borrowed.
class NormSink : public TileSink {
 public:
  NormSink(const TileRequest& request, std::span<RowNorm> norms)
      : request_(request), norms_(norms) {}
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    std::copy(tile.norms.begin(), tile.norms.end(), norms_.begin() + tile.rows.begin);
  }
  void end() override {}

 private:
  const TileRequest request_;
  const std::span<RowNorm> norms_;
};

}  // namespace attnscope
