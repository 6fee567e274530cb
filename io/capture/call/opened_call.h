#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// One call as it stands in its files: tensors that are open, and what was recorded of them.
struct OpenedCall {
  std::filesystem::path file;  ///< that names the call
  CallFacts facts;
  CallTensors tensors;
  std::vector<std::string> unknown = {};  ///< tensors that are not understood
  bool guess = false;                     ///< what is not told may be guessed
  std::vector<std::string> notes = {};
};

/// Opens the call's tensors, with those that --cu-seqlens names in place of the recorded ones. A
/// file that neither says that it is in the capture format nor is listed is taken as one call for
/// the names of its tensors. Throws Error(file), Error(usage) for what options name.
OpenedCall open_call_file(const CaptureFile& call_file, const FactOverrides& overrides,
                          const ReadControl& control);
/// Adds what a file that is in no format of captures says beside the tensors that were found in it;
/// of these, what has the name of a fact that is a number, is no tensor that is not understood.
void add_dump_values(CallFacts& facts, const TensorFile& file, FoundTensors& found);
/// States the order of axes that a fused tensor told (FoundTensors::layout) where none is recorded.
void set_layout(CallFacts& facts, const std::string& layout);
/// The call's tensors with those that options name, and with what facts and options say of how they
/// are stored.
CallTensors with_option_tensors(CallTensors tensors, const CallFacts& facts,
                                const FactOverrides& overrides, const ReadControl& control,
                                std::vector<std::string>& notes);
/// Opens a call of bare tensors, which have no metadata.
OpenedCall open_bare_tensors(const BareTensors& tensors, const FactOverrides& overrides,
                             const ReadControl& control);

}  // namespace attnscope
