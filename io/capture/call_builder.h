#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/capture/call_facts.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The tensors of one call, wherever they stand; null where there is none.
struct CallTensors {
  std::shared_ptr<const TensorSource> q, k, v, lse, mask, out, out_rows;
  /// Where packed sequences begin and end (packed_sequences.h); k's are q's where there are none.
  std::shared_ptr<const TensorSource> cu_seqlens_q, cu_seqlens_k;
};

/// Makes a validated call of facts and tensors: applies overrides (each adds a note), fills in what
/// is missing as the format's defaults say, and checks that everything fits. Throws Error(file)
/// naming the call where recorded facts are wrong, Error(usage) where an override is.
CallEntry build_call(CallFacts facts, const CallTensors& tensors, const FactOverrides& overrides,
                     std::vector<std::string>& notes);

/// "FILE" or "FILE:KEY" → FILE.
std::string reference_file(const std::string& reference);
/// Adds the files that options name (masks, boundaries) to those that are read.
void add_option_files(const FactOverrides& overrides, std::vector<std::filesystem::path>& files);
/// "FILE" or "FILE:KEY" → the tensor; without a key the file's only tensor, or the one named like
/// one of `usual_names`.
std::shared_ptr<const TensorSource> open_tensor_reference(
    const std::string& reference, const std::vector<std::string>& usual_names);

}  // namespace attnscope
