#include "io/capture/call/call_alibi.h"

#include <utility>

#include "core/base/error.h"
#include "core/mask/alibi.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

AlibiSlopes read_slopes(const TensorSource& tensor, const HeadTensor& q) {
  const auto shape = tensor.shape();
  const std::vector<int64_t> of_heads{q.heads()}, of_items{q.batch(), q.heads()};
  const size_t axes = shape.size();
  const bool fits = (axes == 1 || (axes == 2 && (shape[0] == 1 || shape[0] == q.batch()))) &&
                    shape[axes - 1] == q.heads();
  if (!fits) {
    throw file_error(tensor.name(), "",
                     "expected a slope a head, " + shape_text(of_heads) + " or " +
                         shape_text(of_items) + " (got " + shape_text(shape) + ")");
  }
  return {{axes == 1 ? 1 : shape[0], q.heads()}, all_floats(tensor)};
}

}  // namespace

CallAlibi call_alibi(const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides, const ReadControl& control,
                     std::vector<std::string>& notes) {
  CallAlibi alibi{{}, tensors.alibi_slopes};
  if (overrides.alibi) {
    const std::string& option = *overrides.alibi;
    if (alibi.slopes) {
      notes.push_back("--alibi " + option + " overrides the recorded " + alibi.slopes->name());
    }
    alibi.slopes = option == "none"
                       ? nullptr
                       : open_tensor_reference(option, usual_names("alibi_slopes"), control);
  }
  if (!alibi.slopes) return alibi;
  alibi.mask = with_name(alibi.slopes->name(), ErrorCode::file, [&] {
    return alibi_mask(read_slopes(*alibi.slopes, heads.q), heads.k.tokens() - heads.q.tokens());
  });
  return alibi;
}

}  // namespace attnscope
