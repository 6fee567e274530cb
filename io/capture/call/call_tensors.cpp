#include "io/capture/call/call_tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

using TensorPlace = std::shared_ptr<const TensorSource> CallTensors::*;

struct Role {
  std::string_view name;
  TensorPlace place;
  std::vector<std::string> names;
};

const std::vector<Role>& roles() {
  static const std::vector<Role> list{
      {"q", &CallTensors::q, {"q", "query", "queries", "Q", "q_states", "query_states"}},
      {"k", &CallTensors::k, {"k", "key", "keys", "K", "k_states", "key_states"}},
      {"v", &CallTensors::v, {"v", "value", "values", "V", "v_states", "value_states"}},
      {"lse", &CallTensors::lse, {"lse", "logsumexp", "softmax_lse"}},
      {"mask", &CallTensors::mask, {"mask", "attn_mask", "attention_mask"}},
      {"sinks",
       &CallTensors::sinks,
       {"sinks", "sink", "s_aux", "attn_sink", "attn_sinks", "attention_sink", "attention_sinks",
        "attention_sink_bias", "sink_logits", "softmax_sink", "learnable_sink"}},
      {"alibi_slopes", &CallTensors::alibi_slopes, {"alibi_slopes"}},
      {"relative_bias", &CallTensors::relative_bias, {"relative_bias"}},
      {"out", &CallTensors::out, {"out", "output", "attn_output"}},
      {"out_rows", &CallTensors::out_rows, {"out_rows"}},
      {"position_ids", &CallTensors::position_ids, {"position_ids"}},
      {"cu_seqlens_q", &CallTensors::cu_seqlens_q, {"cu_seqlens_q", "cu_seqlens"}},
      {"cu_seqlens_k", &CallTensors::cu_seqlens_k, {"cu_seqlens_k", "cu_seqlens_kv"}}};
  return list;
}

/// Tensors that hold several, by the number of their parts.
const Role& fused_role(int64_t parts) {
  static const Role qkv{"qkv", nullptr, {"qkv", "qkv_packed", "packed_qkv", "qkvpacked"}};
  static const Role kv{"kv", nullptr, {"kv", "kv_packed", "packed_kv", "kvpacked"}};
  return parts == 3 ? qkv : kv;
}

/// "block.attn.q" and "block/attn/q" → "q".
std::string last_part(const std::string& key) {
  const size_t at = key.find_last_of("./");
  return at == std::string::npos ? key : key.substr(at + 1);
}

/// The key that `role` means; empty where there is none, or several with equal right.
std::string key_of(const Role& role, const std::vector<std::string>& keys) {
  for (const std::string& name : role.names) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return name;
  }
  for (const std::string& name : role.names) {
    std::vector<std::string> ending;
    for (const std::string& key : keys) {
      if (last_part(key) == name) ending.push_back(key);
    }
    if (!ending.empty()) return ending.size() == 1 ? ending.front() : "";
  }
  return "";
}

/// True of the role of a tensor that a call's maps do not depend on.
bool is_beside_maps(std::string_view role) {
  return role == "v" || role == "lse" || role == "out" || role == "out_rows" ||
         role == "position_ids";
}

/// The tensor, or null and why it cannot be read.
std::pair<std::shared_ptr<const TensorSource>, std::string> readable_tensor(
    const TensorFile& file, const std::string& key) {
  try {
    return {file.tensor(key), ""};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return {nullptr, error.what()};
  }
}

std::string key_list(const std::vector<std::string>& keys) {
  constexpr size_t kMostNamed = 20;
  std::string text;
  for (size_t i = 0; i < keys.size() && i < kMostNamed; ++i) text += (i ? ", " : "") + keys[i];
  if (keys.size() > kMostNamed) {
    text += " and " + std::to_string(keys.size() - kMostNamed) + " more";
  }
  return text;
}

const Role& role_of(std::string_view name) {
  if (name == "qkv" || name == "kv") return fused_role(name == "qkv" ? 3 : 2);
  return *std::find_if(roles().begin(), roles().end(),
                       [&](const Role& r) { return r.name == name; });
}

/// The key of the tensor that holds k and v, and q where that stands nowhere by itself; empty where
/// there is none or none is needed.
std::string fused_key(const std::vector<std::string>& keys) {
  if (!key_of(role_of("k"), keys).empty()) return "";
  return key_of(fused_role(key_of(role_of("q"), keys).empty() ? 3 : 2), keys);
}

/// Tensors that stand side by side in one.
struct SplitTensor {
  std::vector<std::shared_ptr<const TensorSource>> parts;
  /// The order of the axes of each part, where the place of the axis tells it: "bshd", "shd".
  std::string layout;
  std::string note;
};

/// One index of an axis of a tensor, without that axis.
class TensorPart : public TensorSource {
 public:
  TensorPart(std::shared_ptr<const TensorSource> whole, size_t axis, int64_t index)
      : whole_(std::move(whole)), axis_(axis), index_(index) {
    const auto shape = whole_->shape();
    shape_.assign(shape.begin(), shape.end());
    shape_.erase(shape_.begin() + static_cast<std::ptrdiff_t>(axis));
    name_ = whole_->name() + "[";
    for (size_t i = 0; i < axis; ++i) name_ += ":, ";
    name_ += std::to_string(index) + "]";
  }

  DType dtype() const override { return whole_->dtype(); }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }
  bool prefers_order() const override { return whole_->prefers_order(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    std::vector<int64_t> from(begin.begin(), begin.end()), extent(count.begin(), count.end());
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis_), index_);
    extent.insert(extent.begin() + static_cast<std::ptrdiff_t>(axis_), 1);
    whole_->read(from, extent, destination);
  }

 private:
  const std::shared_ptr<const TensorSource> whole_;
  const size_t axis_;
  const int64_t index_;
  std::vector<int64_t> shape_;
  std::string name_;
};

/// A fused tensor as its `count` parts (3: q, k, v; 2: k, v), the indices of the axis that has as
/// many: [B, N, 3, H, d] and packed [tokens, 3, H, d], as functions of fused attention take them,
/// or where there is none, an axis further in front. Parts are read where they stand and share
/// `tensor`. Throws Error(file) where it has no such axis.
SplitTensor split_fused(const std::shared_ptr<const TensorSource>& tensor, int64_t count) {
  const auto shape = tensor->shape();
  const size_t rank = shape.size();
  // [B, N, 3, H, d] and [tokens, 3, H, d]: behind the tokens.
  const size_t usual = rank >= 3 ? rank - 3 : rank;
  size_t axis = usual;
  if (rank > 3 && rank < 6 && shape[usual] != count) {
    for (axis = 0; axis < usual && shape[axis] != count;) ++axis;
  }
  if (rank < 4 || rank > 5 || shape[axis] != count) {
    const std::string parts = count == 3 ? "q, k and v" : "k and v";
    throw file_error(tensor->name(), "",
                     "is fused, but not as [batch, tokens, " + std::to_string(count) +
                         ", heads, channels] or [tokens, " + std::to_string(count) +
                         ", heads, channels] (got " + shape_text(shape) + "): split it into " +
                         parts);
  }
  SplitTensor split;
  for (int64_t i = 0; i < count; ++i) {
    split.parts.push_back(std::make_shared<TensorPart>(tensor, axis, i));
  }
  if (axis == usual) split.layout = rank == 5 ? "bshd" : "shd";
  split.note = tensor->name() + ": taken as " + (count == 3 ? "q, k and v" : "k and v") +
               " along axis " + std::to_string(axis) + " of " + shape_text(shape);
  return split;
}

/// Puts the parts of a fused tensor into their places.
void add_fused(const TensorFile& file, const std::string& key, FoundTensors& found) {
  CallTensors& tensors = found.tensors;
  SplitTensor split = split_fused(file.tensor(key), tensors.q ? 2 : 3);
  if (!tensors.q) {
    tensors.q = split.parts.front();
    found.q_key = key;
  }
  tensors.k = split.parts[split.parts.size() - 2];
  tensors.v = split.parts.back();
  found.k_key = key;
  found.layout = split.layout;
  found.notes.push_back(split.note);
}

}  // namespace

const std::vector<std::string>& usual_names(std::string_view role) { return role_of(role).names; }

std::span<const CodeRole> code_roles() {
  static constexpr std::array<CodeRole, 3> kRoles{
      {{"q",
        &CallTensors::q,
        &CallTensors::q_scale,
        {"q_scale", "q_descale", "query_scale", "descale_q"},
        &CallTensors::q_scale_2,
        {"q_scale_2", "q_per_tensor_scale", "q_global_scale"}},
       {"k",
        &CallTensors::k,
        &CallTensors::k_scale,
        {"k_scale", "k_descale", "key_scale", "descale_k"},
        &CallTensors::k_scale_2,
        {"k_scale_2", "k_per_tensor_scale", "k_global_scale"}},
       {"v",
        &CallTensors::v,
        &CallTensors::v_scale,
        {"v_scale", "v_descale", "value_scale", "descale_v"},
        &CallTensors::v_scale_2,
        {"v_scale_2", "v_per_tensor_scale", "v_global_scale"}}}};
  return kRoles;
}

std::vector<std::string> add_scales(const CodeRole& role, const TensorFile& file,
                                    CallTensors& tensors) {
  const auto& codes = tensors.*role.codes;
  if (!codes || dtype_bytes(codes->dtype()) != 1) return {};
  std::vector<std::string> taken;
  const auto take = [&](const Role& scales) {
    const std::string key = key_of(scales, file.keys());
    if (key.empty()) return;
    tensors.*scales.place = file.tensor(key);
    taken.push_back(key);
  };
  take({role.name, role.scales, {role.scale_names.begin(), role.scale_names.end()}});
  take({role.name, role.factor, {role.factor_names.begin(), role.factor_names.end()}});
  return taken;
}

std::span<const MaskTensor> mask_tensors() {
  static constexpr std::array<MaskTensor, 5> kList{{{"mask", &CallTensors::mask},
                                                    {"mask_valid", &CallTensors::mask_valid},
                                                    {"mask_segments", &CallTensors::mask_segments},
                                                    {"mask_blocks", &CallTensors::mask_blocks},
                                                    {"mask_spans", &CallTensors::mask_spans}}};
  return kList;
}

FoundTensors format_tensors(const TensorFile& file, bool second) {
  FoundTensors found;
  for (const std::string& key : file.keys()) {
    const auto mask = std::find_if(mask_tensors().begin(), mask_tensors().end(),
                                   [&](const MaskTensor& m) { return m.name == key; });
    if (second && mask != mask_tensors().end()) {
      found.tensors.*mask->place = file.tensor(key);
      continue;
    }
    const auto code =
        std::find_if(code_roles().begin(), code_roles().end(), [&](const CodeRole& role) {
          return role.scale_names[0] == key || role.factor_names[0] == key;
        });
    if (second && code != code_roles().end()) {
      found.tensors.*(code->scale_names[0] == key ? code->scales : code->factor) = file.tensor(key);
      continue;
    }
    if (second && key == "normaliser") {
      found.tensors.normaliser = file.tensor(key);
      continue;
    }
    const auto role = std::find_if(roles().begin(), roles().end(), [&](const Role& r) {
      return r.name == key || (key == "cu_seqlens" && r.name == "cu_seqlens_q");
    });
    if (role == roles().end()) {
      found.unknown.push_back(one_line("tensor " + key));
      auto other = readable_tensor(file, key);
      if (other.first) found.tensors.others.emplace(key, std::move(other.first));
    } else {
      found.tensors.*role->place = file.tensor(key);
    }
  }
  if (!found.tensors.q) throw missing_tensor(file, "q");
  if (!found.tensors.k) throw missing_tensor(file, "k");
  found.q_key = "q";
  found.k_key = "k";
  return found;
}

FoundTensors usual_tensors(const TensorFile& file) {
  const std::vector<std::string> keys = file.keys();
  FoundTensors found;
  std::set<std::string> taken;
  const std::string fused = fused_key(keys);
  for (const Role& role : roles()) {
    const std::string key = key_of(role, keys);
    const bool needed = role.name == "q" || role.name == "k";
    if (key.empty() && needed && fused.empty()) {
      const std::string path = file.path().string();
      throw file_error(path, "",
                       "which tensor is " + std::string(role.name) + "? It has " +
                           (keys.empty() ? "none" : key_list(keys)) + ": name them, as --q " +
                           path + ":KEY --k " + path +
                           ":KEY, or those of several calls, as --pattern "
                           "'blocks.{layer}.attn.{q|k|v}'");
    }
    if (key.empty()) continue;
    taken.insert(key);
    if (is_beside_maps(role.name)) {
      auto [tensor, fault] = readable_tensor(file, key);
      if (!tensor) found.notes.push_back(fault + ": left out");
      found.tensors.*role.place = std::move(tensor);
    } else {
      found.tensors.*role.place = file.tensor(key);
    }
    if (needed) (role.name == "q" ? found.q_key : found.k_key) = key;
  }
  if (!fused.empty()) {
    taken.insert(fused);
    add_fused(file, fused, found);
  }
  for (const CodeRole& role : code_roles()) {
    for (const std::string& key : add_scales(role, file, found.tensors)) taken.insert(key);
  }
  // The output of all rows is of no use here; it is the rows that are checked.
  if (found.tensors.out && !found.tensors.out_rows) {
    found.unknown.push_back("tensor out without out_rows");
    found.tensors.out.reset();
  }
  for (const std::string& key : keys) {
    if (taken.count(key) == 0) found.unknown.push_back(one_line("tensor " + key));
  }
  return found;
}

bool tell_call(const std::vector<std::string>& keys) {
  if (!fused_key(keys).empty()) return true;
  return !key_of(role_of("q"), keys).empty() && !key_of(role_of("k"), keys).empty();
}

}  // namespace attnscope
