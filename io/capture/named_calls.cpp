#include "io/capture/named_calls.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "io/capture/call_builder.h"
#include "io/capture/call_tensors.h"
#include "io/capture/fact_guess.h"
#include "io/capture/packed_sequences.h"
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

using Parts = std::vector<std::pair<std::optional<int64_t>, std::filesystem::path>>;

std::shared_ptr<const TensorSource> open_parts(const Parts& parts, const char* role) {
  if (!parts[0].first) return open_tensor_reference(parts[0].second.string(), usual_names(role));
  std::vector<std::shared_ptr<const TensorSource>> heads;
  for (const auto& [head, path] : parts) {
    const int64_t expected = *parts[0].first + static_cast<int64_t>(heads.size());
    if (*head != expected) {
      throw file_error(path.string(), "",
                       "there is no file of head " + std::to_string(expected) + " before it");
    }
    heads.push_back(open_tensor_reference(path.string(), usual_names(role)));
  }
  return std::make_shared<JoinedHeads>(std::move(heads));
}

CallTensors open_roles(const NamedCall& named) {
  CallTensors tensors;
  for (const char* needed : {"q", "k"}) {
    if (named.files.count(needed) != 0) continue;
    throw file_error(named.files.begin()->second[0].second.string(), "",
                     std::string("there is no file of ") + needed + " beside it");
  }
  const Parts& q = named.files.at("q");
  for (const auto& [role, parts] : named.files) {
    // Grouped queries have fewer key heads, but they begin with the same one.
    if (parts[0].first != q[0].first) {
      throw file_error(parts[0].second.string(), "",
                       "begins with another head than " + q[0].second.filename().string());
    }
    auto& place = role == "q" ? tensors.q : role == "k" ? tensors.k : tensors.v;
    place = open_parts(parts, role.c_str());
  }
  return tensors;
}

}  // namespace

CallEntry build_named_call(const NamedCall& named, const FactOverrides& overrides,
                           std::vector<std::string>& notes) {
  const Parts& first = named.files.begin()->second;
  const std::filesystem::path& path =
      named.files.count("q") != 0 ? named.files.at("q")[0].second : first[0].second;
  CallFacts facts(path.string());
  CallTensors tensors;
  std::vector<std::string> unknown, used;
  if (named.files.count("") != 0) {
    const auto file = open_tensor_file(path);
    if (file->keys() == std::vector<std::string>{""}) {
      throw file_error(path.string(), "",
                       "is one bare tensor, and the pattern has no {q|k} that says which");
    }
    facts.add_metadata(file->metadata(), path.string());
    tensors = usual_tensors(*file, unknown, used);
  } else {
    tensors = open_roles(named);
  }
  nlohmann::json entry = nlohmann::json::object();
  const NameFields& fields = named.fields;
  if (fields.step) entry["step"] = static_cast<uint64_t>(*fields.step);
  if (fields.layer) entry["layer"] = static_cast<uint64_t>(*fields.layer);
  if (!fields.branch.empty()) entry["branches"] = {fields.branch};
  if (!fields.kind.empty()) entry["kind"] = fields.kind;
  facts.add_entry(entry, path.string() + ": its name", "from the file's name");
  if (first[0].first) {
    facts.set("layout", "hsd", "one file a head");
    if (*first[0].first != 0) {
      facts.set("head_offset", static_cast<uint64_t>(*first[0].first), "from the file's name");
    }
  }
  apply_packed_options(tensors, overrides, notes);
  guess_facts(facts, tensors, overrides, notes);
  CallEntry call = build_call(std::move(facts), tensors, overrides, notes);
  call.file = path;
  call.unknown_keys.insert(call.unknown_keys.end(), unknown.begin(), unknown.end());
  return call;
}

NamedFolder summary_of(const NamedFiles& files, bool pattern_given) {
  NamedFolder folder;
  folder.pattern = files.pattern;
  folder.pattern_given = pattern_given;
  folder.left_out = files.left_out;
  std::set<int64_t> steps, layers, heads;
  for (const NamedCall& call : files.calls) {
    if (call.fields.step) steps.insert(*call.fields.step);
    if (call.fields.layer) layers.insert(*call.fields.layer);
    for (const auto& [role, parts] : call.files) {
      folder.files += static_cast<int64_t>(parts.size());
      for (const auto& [head, path] : parts) {
        if (head) heads.insert(*head);
      }
    }
  }
  folder.steps.assign(steps.begin(), steps.end());
  folder.layers.assign(layers.begin(), layers.end());
  folder.heads.assign(heads.begin(), heads.end());
  return folder;
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 5;
  std::string text = std::to_string(names.size()) + (names.size() == 1 ? " file: " : " files: ");
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMostNamed) text += " …";
  return text;
}

}  // namespace attnscope
