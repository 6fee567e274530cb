#include "io/capture/named_calls.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {
namespace {

/// Single heads, each [S, d] or with leading axes of extent 1, as [H, S, d].
class JoinedHeads : public TensorSource {
 public:
  explicit JoinedHeads(std::vector<std::shared_ptr<const TensorSource>> heads)
      : heads_(std::move(heads)) {
    for (const auto& head : heads_) {
      const auto shape = head->shape();
      const bool single = shape.size() >= 2 && std::all_of(shape.begin(), shape.end() - 2,
                                                           [](int64_t n) { return n == 1; });
      if (!single) {
        throw file_error(head->name(), "",
                         "expected one head, [tokens, channels] (got " + shape_text(shape) + ")");
      }
      const std::vector<int64_t> own{shape[shape.size() - 2], shape.back()};
      if (shape_.empty()) shape_ = {static_cast<int64_t>(heads_.size()), own[0], own[1]};
      if (own[0] != shape_[1] || own[1] != shape_[2] || head->dtype() != heads_[0]->dtype()) {
        throw file_error(head->name(), "",
                         "has another shape or type than " + heads_[0]->name() + " (got " +
                             std::string(dtype_name(head->dtype())) + " " + shape_text(shape) +
                             ")");
      }
    }
  }

  DType dtype() const override { return heads_[0]->dtype(); }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return heads_[0]->name(); }
  bool prefers_order() const override { return heads_[0]->prefers_order(); }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const int64_t bytes = count[1] * count[2] * dtype_bytes(dtype());
    for (int64_t i = 0; i < count[0]; ++i) {
      const TensorSource& head = *heads_[static_cast<size_t>(begin[0] + i)];
      const size_t leading = head.shape().size() - 2;
      std::vector<int64_t> from(leading, 0), extent(leading, 1);
      from.insert(from.end(), {begin[1], begin[2]});
      extent.insert(extent.end(), {count[1], count[2]});
      head.read(from, extent, destination + i * bytes);
    }
  }

 private:
  std::vector<std::shared_ptr<const TensorSource>> heads_;
  std::vector<int64_t> shape_;
};

using Parts = std::vector<NamedPart>;

/// "file" or "tensor", what parts are.
std::string kind_of(const NamedPart& part) { return part.key.empty() ? "file" : "tensor"; }

Error bad_part(const NamedPart& part, const std::string& what) {
  return file_error(part.path.string(), part.key.empty() ? "" : "tensor " + part.key, what);
}

std::shared_ptr<const TensorSource> open_part(const NamedCall& named, const NamedPart& part,
                                              const std::string& role, const ReadControl& control) {
  if (named.file) return named.file->tensor(part.key);
  return open_tensor_reference(part.path.string(), usual_names(role), control);
}

std::shared_ptr<const TensorSource> open_parts(const NamedCall& named, const std::string& role,
                                               const ReadControl& control) {
  const Parts& parts = named.parts.at(role);
  if (!parts[0].head) return open_part(named, parts[0], role, control);
  std::vector<std::shared_ptr<const TensorSource>> heads;
  for (const NamedPart& part : parts) {
    const int64_t expected = *parts[0].head + static_cast<int64_t>(heads.size());
    if (*part.head != expected) {
      throw bad_part(part, "there is no " + kind_of(part) + " of head " + std::to_string(expected) +
                               " before it");
    }
    heads.push_back(open_part(named, part, role, control));
  }
  return std::make_shared<JoinedHeads>(std::move(heads));
}

CallTensors open_roles(const NamedCall& named, const ReadControl& control) {
  CallTensors tensors;
  for (const char* needed : {"q", "k"}) {
    if (named.parts.count(needed) != 0) continue;
    const NamedPart& part = named.parts.begin()->second[0];
    throw bad_part(part, "there is no " + kind_of(part) + " of " + needed + " beside it");
  }
  const NamedPart& q = named.parts.at("q")[0];
  for (const auto& [role, parts] : named.parts) {
    // Grouped queries have fewer key heads, but they begin with the same one.
    if (parts[0].head != q.head) {
      throw bad_part(parts[0], "begins with another head than " +
                                   (q.key.empty() ? q.path.filename().string() : q.key));
    }
    auto& place = role == "q" ? tensors.q : role == "k" ? tensors.k : tensors.v;
    place = open_parts(named, role, control);
    if (named.file || q.head || dtype_bytes(place->dtype()) != 1) continue;
    const auto codes =
        std::find_if(code_roles().begin(), code_roles().end(),
                     [name = std::string_view(role)](const CodeRole& r) { return r.name == name; });
    if (codes != code_roles().end())
      add_scales(*codes, *open_tensor_file(parts[0].path, control), tensors);
  }
  return tensors;
}

/// The fields of a name as an entry of capture.json would state them.
Json entry_of(const NameFields& fields) {
  Json entry = Json::object();
  if (fields.step) entry["step"] = static_cast<uint64_t>(*fields.step);
  if (fields.layer) entry["layer"] = static_cast<uint64_t>(*fields.layer);
  if (!fields.branch.empty()) entry["branches"] = {fields.branch};
  if (!fields.kind.empty()) entry["kind"] = fields.kind;
  return entry;
}

}  // namespace

OpenedCall open_named_call(const NamedCall& named, const FactOverrides& overrides,
                           const ReadControl& control) {
  const NamedPart& first =
      named.parts.count("q") != 0 ? named.parts.at("q")[0] : named.parts.begin()->second[0];
  const std::filesystem::path& path = first.path;
  const std::string origin = "from the " + kind_of(first) + "'s name";
  OpenedCall call{path, CallFacts(path.string(), left_out_names(overrides.told)), {}, {}, true};
  CallTensors tensors;
  if (named.within || named.parts.count("") != 0) {
    const auto file = named.within ? named.within : open_tensor_file(path, control);
    if (file->keys() == std::vector<std::string>{""}) {
      throw file_error(path.string(), "",
                       "is one bare tensor, and the pattern has no {q|k} that says which");
    }
    FoundTensors found = usual_tensors(*file);
    add_dump_values(call.facts, *file, found);
    set_layout(call.facts, found.layout);
    tensors = std::move(found.tensors);
    call.unknown = std::move(found.unknown);
    call.notes = std::move(found.notes);
  } else {
    tensors = open_roles(named, control);
  }
  call.facts.add_entry(entry_of(named.fields), path.string() + ": its name", origin);
  if (first.head) {
    call.facts.set("layout", "hsd", "one " + kind_of(first) + " a head");
    if (*first.head != 0) {
      call.facts.set("head_offset", static_cast<uint64_t>(*first.head), origin);
    }
  }
  call.tensors =
      with_option_tensors(std::move(tensors), call.facts, overrides, control, call.notes);
  return call;
}

}  // namespace attnscope
