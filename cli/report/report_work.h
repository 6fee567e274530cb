#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/run/stream_run.h"
#include "core/heads/head_record.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Bytes that a section of the page carries beside its facts.
struct NamedBytes {
  std::string name;  ///< letters, digits and '-'
  std::vector<std::byte> bytes;
};

/// A section of a report: what the page is told of it, and the arrays that it names.
struct ReportSection {
  OrderedJson facts;
  std::vector<NamedBytes> data;
};

/// What sections of a report are made from, once the heads' numbers are known. Borrows all.
struct ReportWork {
  StreamRun& run;
  const Capture& capture;
  /// The selection in the capture's order; heads that --budget-time left out have no record.
  const std::vector<SelectedCall>& calls;
  /// The page's heads, in its order: facts name a head by its place here. They have the array
  /// frame_frame.
  std::span<const HeadRecord> records;
  int64_t sample = 0;  ///< rows that a head's numbers are from; 0: all
  /// False once --budget-time is over: begin no further unit of work. Never null.
  std::function<bool()> time_left;
  /// Places in facts' pictures of the recorded frames of the video, [latent frame]; −1: not there.
  std::vector<int64_t> pictures;
  /// The input's name without folders as a word of a shell, for commands that the page tells.
  std::string input_word;
  /// Heeded by what run() and reduce() of `run` do not do.
  std::stop_token stop = {};
};

}  // namespace attnscope
