#include "io/capture/call/opened_call.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/mask_fact.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/open_tensor_file.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/value_names.h"

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
    // Names in common use are anybody's.
    const bool of_dump = format.empty() && !fact_of_key(name).empty();
    if (is_format_2_fact(name) && !of_dump) refuse(name, "is a fact");
  }
}

/// The tensor; null where it cannot be read.
std::shared_ptr<const TensorSource> readable(const TensorFile& file, const std::string& key) {
  try {
    return file.tensor(key);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return nullptr;
  }
}

/// "f32 [24]".
std::string tensor_text(const TensorSource* tensor) {
  if (tensor == nullptr) return "what cannot be read";
  return std::string(dtype_name(tensor->dtype())) + " " + shape_text(tensor->shape());
}

/// The beginning of each unknown tensor's entry in FoundTensors::unknown.
constexpr std::string_view kTensor = "tensor ";

}  // namespace

void add_dump_values(CallFacts& facts, const TensorFile& file, FoundTensors& found) {
  const std::string path = file.path().string();
  auto values = values_beside(file.metadata(), found.q_key);
  std::erase_if(found.unknown, [&](const std::string& what) {
    if (!what.starts_with(kTensor) || !names_value(what.substr(kTensor.size()))) return false;
    const std::string key = what.substr(kTensor.size());
    const std::string name = name_beside(key, found.q_key);
    const auto tensor = readable(file, key);
    const auto text = tensor ? text_of_tensor(*tensor) : std::nullopt;
    if (text) return values.emplace(name, *text).second;
    if (!is_number_fact(name) || facts.ignores(name)) return false;
    facts.add_tensor(name, path, tensor_text(tensor.get()));
    return true;
  });
  facts.add_metadata(values, path, MetadataOf::dump);
}

void set_layout(CallFacts& facts, const std::string& layout) {
  if (layout.empty() || facts.has("layout")) return;
  facts.set("layout", layout, "guessed: the order of a fused tensor's axes");
}

CallTensors with_option_tensors(CallTensors tensors, const CallFacts& facts,
                                const FactOverrides& overrides, const ReadControl& control,
                                std::vector<std::string>& notes) {
  tensors = with_packed_options(std::move(tensors), overrides, control, notes);
  return with_code_options(std::move(tensors), facts, overrides, control, notes);
}

OpenedCall open_call_file(const CaptureFile& call_file, const FactOverrides& overrides,
                          const ReadControl& control) {
  const std::string path = call_file.path.string();
  const auto file = call_file.opened ? call_file.opened : open_tensor_file(call_file.path, control);
  const auto& metadata = file->metadata();
  const std::string format = capture_format(metadata);
  if (!format.empty()) check_capture_format(format, path);
  std::string version = format;
  OpenedCall call{call_file.path, CallFacts(path, left_out_names(overrides.told)), {}};
  call.guess = format.empty() && !call_file.listing;
  const bool listed_as_second =
      call_file.listing && (*call_file.listing->root)["format"] == kCaptureFormat2;
  const bool second = version.empty() ? listed_as_second : version == kCaptureFormat2;
  FoundTensors found = call.guess ? usual_tensors(*file) : format_tensors(*file, second);
  if (call.guess) {
    add_dump_values(call.facts, *file, found);
  } else {
    call.facts.add_metadata(metadata, path);
  }
  if (call_file.listing) {
    const auto& [catalogue, root, index] = *call_file.listing;
    const Json& entry = (*root)["calls"][index];
    call.facts.add_entry(entry, catalogue);
    call.facts.add_shared(*root, catalogue);
    if (version.empty()) version = (*root)["format"].get<std::string>();
  }
  if (!second) require_first_format(call.facts, version);
  set_layout(call.facts, found.layout);
  call.unknown = std::move(found.unknown);
  call.notes = std::move(found.notes);
  call.tensors =
      with_option_tensors(std::move(found.tensors), call.facts, overrides, control, call.notes);
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
  OpenedCall call{bare.q, CallFacts(bare.q, left_out_names(overrides.told)), {}, {}, true};
  CallTensors tensors;
  tensors.q = open_tensor_reference(bare.q, usual_names("q"), control);
  tensors.k = open_tensor_reference(bare.k, usual_names("k"), control);
  if (!bare.v.empty()) tensors.v = open_tensor_reference(bare.v, usual_names("v"), control);
  call.tensors =
      with_option_tensors(std::move(tensors), call.facts, overrides, control, call.notes);
  return call;
}

}  // namespace attnscope
