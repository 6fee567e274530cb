#include "io/capture/call/head_tensors.h"

#include "core/problem/normalised_tensor.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/facts/fact_errors.h"

namespace attnscope {

HeadTensors head_tensors(const CallTensors& tensors, const CallFacts& facts,
                         const FactOverrides& overrides, std::vector<std::string>& notes) {
  const std::string name = facts.text("layout").value_or("bhsd");
  const auto layout = parse_layout(name);
  if (!layout) {
    throw bad_fact(facts, "layout", "expected bhsd, bshd, hsd, shd or sd (got " + name + ")");
  }
  HeadTensors heads;
  const auto laid_out = [&](const CodeRole& role) {
    CodeValues values = code_values(role, tensors, facts, overrides, *layout);
    if (!values.words.empty()) {
      notes.push_back(values.source->name() + ": " + values.words + values.warning);
      heads.codes.push_back(std::string(role.name) + ": " + values.words);
      if (tensors.*role.scales) heads.scale_names.push_back((tensors.*role.scales)->name());
    } else if (!values.warning.empty()) {
      notes.push_back(values.warning);
    }
    if (values.source->dtype() == DType::f64)
      notes.push_back(values.source->name() + ": f64 is rounded to f32");
    return with_name(facts.name(), ErrorCode::file,
                     [&] { return HeadTensor(values.source, *layout); });
  };
  heads.q = laid_out(code_roles()[0]);
  heads.k = laid_out(code_roles()[1]);
  // Beside codes, which are f32 now, the other is widened too.
  if (heads.q.dtype() != heads.k.dtype() &&
      (tensors.q->dtype() != heads.q.dtype() || tensors.k->dtype() != heads.k.dtype())) {
    for (HeadTensor* other : {&heads.q, &heads.k}) {
      if (other->dtype() != DType::f32)
        *other = HeadTensor(normalised_tensor(*other, nullptr), Layout::bhsd);
    }
  }
  if (!tensors.v) return heads;
  try {
    heads.v = laid_out(code_roles()[2]);
  } catch (const Error& error) {
    // No map is made of v: codes that cannot be read do not lock them.
    if (dtype_bytes(tensors.v->dtype()) > 1) throw;
    notes.push_back(std::string(error.what()) + ": left out");
  }
  return heads;
}

}  // namespace attnscope
