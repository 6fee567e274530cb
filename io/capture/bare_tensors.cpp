#include "core/base/error.h"
#include "io/capture/call_builder.h"
#include "io/capture/call_tensors.h"
#include "io/capture/capture.h"
#include "io/capture/fact_guess.h"
#include "io/capture/packed_sequences.h"

namespace attnscope {

Capture Capture::from_tensors(const BareTensors& tensors, const FactOverrides& overrides) {
  CallTensors opened;
  opened.q = open_tensor_reference(tensors.q, usual_names("q"));
  opened.k = open_tensor_reference(tensors.k, usual_names("k"));
  if (!tensors.v.empty()) {
    opened.v = open_tensor_reference(tensors.v, usual_names("v"));
  }
  Capture capture;
  for (const std::string& reference : {tensors.q, tensors.k, tensors.v}) {
    if (!reference.empty()) capture.files_.emplace_back(reference_file(reference));
  }
  add_option_files(overrides, capture.files_);
  apply_packed_options(opened, overrides, capture.notes_);
  CallFacts facts(tensors.q);
  guess_facts(facts, opened, overrides, capture.notes_);
  CallEntry call = build_call(std::move(facts), opened, overrides, capture.notes_);
  call.file = tensors.q;
  capture.path_ = tensors.q;
  capture.calls_.push_back(std::move(call));
  for (std::string& note : capture.notes_) note = one_line(note);
  return capture;
}

}  // namespace attnscope
