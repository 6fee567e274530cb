#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A token map as JSON states it.
struct StatedSegments {
  std::vector<TokenSegment> segments;
  /// Words of the segments, [segment][1 or batch item][token]; a segment without has no list.
  std::vector<std::vector<std::vector<std::string>>> words;
};

/// Reads the tensors that a token map names. Each throws Error where there is none of the name, or
/// its type or shape is not that.
struct SegmentTensors {
  /// int64 [count].
  std::function<std::vector<int64_t>(const std::string& name, int64_t count)> list;
  /// bool [count] or [batch, count], as [1 or batch][count].
  std::function<std::vector<std::vector<uint8_t>>(const std::string& name, int64_t count)> flags;
};

/// A list of segments as docs/capture-format.md describes it. Without `tensors` orders that list
/// their cells are not known, and "listed" is such an order: what segments_json() writes. Throws
/// Error(usage) "[2].grid: expected …".
StatedSegments parse_segments(const Json& list, const SegmentTensors* tensors);

/// The segments of a token map without words, padding and listed orders: what names the places of a
/// sequence.
OrderedJson segments_json(const TokenGrid& tokens);

}  // namespace attnscope
