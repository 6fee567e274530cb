#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/capture/call_builder.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The names by which people call the tensors of an attention call, the capture format's own name
/// first. `role` is that name: q, k, v, mask, lse, out, out_rows, cu_seqlens_q, cu_seqlens_k.
const std::vector<std::string>& usual_names(std::string_view role);

/// The tensors of a call in the capture format; others are told in `unknown`. Throws Error(file)
/// where q or k is missing.
CallTensors format_tensors(const TensorFile& file, std::vector<std::string>& unknown);

/// The tensors of a call in a file of no particular format, by their usual names: as a whole key,
/// or as the last part of exactly one (block.attn.q, /attn/q). `used` gets the keys of q and k.
/// Throws Error(file) that lists what there is where q or k cannot be told.
CallTensors usual_tensors(const TensorFile& file, std::vector<std::string>& unknown,
                          std::vector<std::string>& used);

}  // namespace attnscope
