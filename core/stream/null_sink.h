#pragma once

#include "core/stream/tile_sink.h"

namespace attnscope {

/// Takes tiles and keeps nothing: for streams that are run for their time, or for their errors.
class NullSink : public TileSink {
 public:
  explicit NullSink(const TileRequest& request) : request_(request) {}
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile&) override {}
  void end() override {}

 private:
  const TileRequest request_;
};

}  // namespace attnscope
