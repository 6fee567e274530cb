#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "io/capture/capture.h"

namespace attnscope {

/// Calls of which those that were pieces of a stream are joined.
struct JoinedChunks {
  std::vector<SelectedCall> calls;  ///< the joined ones and those that are no pieces
  /// Owns the calls that `calls` points to beside the capture's own.
  std::vector<std::shared_ptr<const CallEntry>> made;
  std::vector<std::string> notes;     ///< one line each: chunks that are missing, facts left out
  std::vector<std::string> refusals;  ///< one line each: calls that cannot be joined, left out
};

/// Joins the chunks of each step, layer, kind, block, slot and branch into one call without a
/// chunk: its queries are those of all chunks by position, its keys every key that ever was there
/// (JoinedKeys), its mask what each chunk saw. Each row has the entries of its chunk's call, from
/// the same bits. Its tensors read those of the capture, which must live as long.
///
/// Throws Error(interrupted) soon after a stop is requested, and what reading throws.
JoinedChunks join_chunks(const std::vector<SelectedCall>& calls, const std::stop_token& stop);

}  // namespace attnscope
