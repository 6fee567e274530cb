#include "io/capture/call/head_tensors.h"

#include "io/capture/facts/fact_errors.h"

namespace attnscope {

HeadTensors head_tensors(const CallTensors& tensors, const CallFacts& facts,
                         std::vector<std::string>& notes) {
  const std::string name = facts.text("layout").value_or("bhsd");
  const auto layout = parse_layout(name);
  if (!layout) {
    throw bad_fact(facts, "layout", "expected bhsd, bshd, hsd, shd or sd (got " + name + ")");
  }
  const auto laid_out = [&](const std::shared_ptr<const TensorSource>& source) {
    if (source->dtype() == DType::f64) notes.push_back(source->name() + ": f64 is rounded to f32");
    return with_name(facts.name(), ErrorCode::file, [&] { return HeadTensor(source, *layout); });
  };
  HeadTensors heads;
  heads.q = laid_out(tensors.q);
  heads.k = laid_out(tensors.k);
  if (tensors.v) heads.v = laid_out(tensors.v);
  return heads;
}

}  // namespace attnscope
