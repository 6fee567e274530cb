#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/common/query_options.h"
#include "io/capture/selection_share.h"
#include "io/export/read/stored_call.h"

namespace attnscope {

/// A sequence whose video's pixels are asked for, and what tells how much of it a token covers.
struct PixelSequence {
  TokenGrid grid;
  std::string name;         ///< how messages name it
  std::string preset = {};  ///< by which its grid was told or guessed; empty: none
  std::string model = {};   ///< as recorded; empty: not
  bool is_stored = false;   ///< of an export, of which no option tells facts
};

/// The queries, or the keys, of a call.
PixelSequence pixel_sequence(const CallEntry& call, bool keys, const CaptureOptions& capture);
/// The queries of a head of an export, which messages call `name`.
PixelSequence pixel_sequence(const StoredFacts& facts, const std::string& name);

/// The queries, or the keys, of each selected call.
std::vector<PixelSequence> pixel_sequences(std::span<const SelectedCall> calls, bool keys,
                                           const CaptureOptions& capture);

/// How many frames of the decoded video a latent frame is; nothing where nothing tells.
std::optional<VideoGeometry> known_frames(const PixelSequence& sequence);

/// Puts the token of each pixel of --at behind those of --query, unless it is among them, and says
/// which it is. Nothing to do where no pixel is asked for. Throws Error(usage) naming the valid
/// range, where the sequences have no grid or have other tokens there, or nothing tells how much a
/// token covers.
void settle_pixels(std::span<const PixelSequence> sequences, QueryOptions& queries,
                   const Console& console);

}  // namespace attnscope
