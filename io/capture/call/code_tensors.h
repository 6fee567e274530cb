#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The names of types that --q-dtype and the fact q_dtype tell.
std::vector<std::string> code_dtypes();

/// The call's tensors with the scales that --q-scale and --k-scale name in place of those beside
/// them, and with the elements of the types that --q-dtype, --k-dtype or facts tell; of v --as
/// tells both. A note for each that replaces something. Throws Error(usage) for a type that is none
/// or of another size, Error(file) where a file cannot be read.
CallTensors with_code_options(CallTensors tensors, const CallFacts& facts,
                              const FactOverrides& overrides, const ReadControl& control,
                              std::vector<std::string>& notes);

/// True of the facts that tell how codes are read, and nothing of a copy as numbers.
bool is_code_fact(std::string_view name);

/// A tensor as numbers.
struct CodeValues {
  std::shared_ptr<const TensorSource> source;
  std::string words;    ///< "e4m3 with a scale a head"; empty: it is no codes
  std::string warning;  ///< what may be wrong, or is not used; may be empty
};
/// The tensor itself where it is no codes, else codes times scales, in f32; without scales e4m3 and
/// its kin are taken as they are, and codes of 4 bits are not. Throws Error(usage), Error(file) for
/// integers without scales, for bytes of no told type, and where scales do not fit or are told in
/// two ways.
CodeValues code_values(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts,
                       const FactOverrides& overrides, Layout layout);

/// A tensor that has the extents of `source` and a type that HeadTensor takes; its values are codes
/// without scales where it is codes.
std::shared_ptr<const TensorSource> unscaled(std::shared_ptr<const TensorSource> source,
                                             Layout layout);

}  // namespace attnscope
