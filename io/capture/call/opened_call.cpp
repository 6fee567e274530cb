#include "io/capture/call/opened_call.h"

#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/mask_fact.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {
namespace {

/// Throws where the call says what only the second version of the format can.
void require_first_format(const CallFacts& facts, const std::string& format) {
  const auto refuse = [&](const std::string& fact, const std::string& what) {
    throw file_error(facts.name(), fact,
                     what + " of the format \"" + std::string(kCaptureFormat2) + "\" (got " +
                         (format.empty() ? "none" : "\"" + format + "\"") + ")");
  };
  const std::string mask = facts.text("mask").value_or("none");
  const auto fact = parse_mask_fact(mask);
  if (fact && fact->is_second_format()) refuse("mask", mask + " is a fact");
  for (const auto& [name, value] : facts.all()) {
    if (is_format_2_fact(name)) refuse(name, "is a fact");
  }
}

}  // namespace

void set_layout(CallFacts& facts, const std::string& layout) {
  if (layout.empty() || facts.has("layout")) return;
  facts.set("layout", layout, "guessed: the order of a fused tensor's axes");
}

OpenedCall open_call_file(const CaptureFile& call_file, const FactOverrides& overrides,
                          const ReadControl& control) {
  const std::string path = call_file.path.string();
  const auto file = call_file.opened ? call_file.opened : open_tensor_file(call_file.path, control);
  const auto& metadata = file->metadata();
  const std::string format = capture_format(metadata);
  if (!format.empty()) check_capture_format(format, path);
  std::string version = format;
  OpenedCall call{call_file.path, CallFacts(path), {}};
  call.facts.add_metadata(metadata, path);
  if (call_file.listing) {
    const auto& [catalogue, root, index] = *call_file.listing;
    const nlohmann::json& entry = (*root)["calls"][index];
    call.facts.add_entry(entry, catalogue);
    call.facts.add_shared(*root, catalogue);
    if (version.empty()) version = (*root)["format"].get<std::string>();
  }
  const bool second = version == kCaptureFormat2;
  if (!second) require_first_format(call.facts, version);
  call.guess = format.empty() && !call_file.listing;
  FoundTensors found = call.guess ? usual_tensors(*file) : format_tensors(*file, second);
  set_layout(call.facts, found.layout);
  call.unknown = std::move(found.unknown);
  call.notes = std::move(found.notes);
  call.tensors = with_packed_options(std::move(found.tensors), overrides, control, call.notes);
  if (call.guess) {
    const auto other = metadata.find("format");
    call.notes.push_back(path + ": has no format \"" + std::string(kCaptureFormat) + "\"" +
                         (other == metadata.end() ? "" : " (got \"" + other->second + "\")") +
                         ": taken as one call for its " +
                         (found.q_key == found.k_key
                              ? "tensor " + found.q_key
                              : "tensors " + found.q_key + " and " + found.k_key));
  }
  return call;
}

OpenedCall open_bare_tensors(const BareTensors& bare, const FactOverrides& overrides,
                             const ReadControl& control) {
  OpenedCall call{bare.q, CallFacts(bare.q), {}, {}, true};
  CallTensors tensors;
  tensors.q = open_tensor_reference(bare.q, usual_names("q"), control);
  tensors.k = open_tensor_reference(bare.k, usual_names("k"), control);
  if (!bare.v.empty()) tensors.v = open_tensor_reference(bare.v, usual_names("v"), control);
  call.tensors = with_packed_options(std::move(tensors), overrides, control, call.notes);
  return call;
}

}  // namespace attnscope
