#include "io/capture/call/call_tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

using Place = std::shared_ptr<const TensorSource> CallTensors::*;

struct Role {
  std::string_view name;
  Place place;
  std::vector<std::string> names;
};

const std::vector<Role>& roles() {
  static const std::vector<Role> list{
      {"q", &CallTensors::q, {"q", "query", "queries", "Q", "q_states", "query_states"}},
      {"k", &CallTensors::k, {"k", "key", "keys", "K", "k_states", "key_states"}},
      {"v", &CallTensors::v, {"v", "value", "values", "V", "v_states", "value_states"}},
      {"lse", &CallTensors::lse, {"lse", "logsumexp", "softmax_lse"}},
      {"mask", &CallTensors::mask, {"mask", "attn_mask", "attention_mask"}},
      {"out", &CallTensors::out, {"out", "output", "attn_output"}},
      {"out_rows", &CallTensors::out_rows, {"out_rows"}},
      {"cu_seqlens_q", &CallTensors::cu_seqlens_q, {"cu_seqlens_q", "cu_seqlens"}},
      {"cu_seqlens_k", &CallTensors::cu_seqlens_k, {"cu_seqlens_k", "cu_seqlens_kv"}}};
  return list;
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

std::string key_list(const std::vector<std::string>& keys) {
  constexpr size_t kMostNamed = 20;
  std::string text;
  for (size_t i = 0; i < keys.size() && i < kMostNamed; ++i) text += (i ? ", " : "") + keys[i];
  if (keys.size() > kMostNamed) {
    text += " and " + std::to_string(keys.size() - kMostNamed) + " more";
  }
  return text;
}

}  // namespace

const std::vector<std::string>& usual_names(std::string_view role) {
  const auto found =
      std::find_if(roles().begin(), roles().end(), [&](const Role& r) { return r.name == role; });
  return found->names;
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
    if (second && key == "normaliser") {
      found.tensors.normaliser = file.tensor(key);
      continue;
    }
    const auto role = std::find_if(roles().begin(), roles().end(), [&](const Role& r) {
      return r.name == key || (key == "cu_seqlens" && r.name == "cu_seqlens_q");
    });
    if (role == roles().end()) {
      found.unknown.push_back(one_line("tensor " + key));
      found.tensors.others.emplace(key, file.tensor(key));
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
  for (const Role& role : roles()) {
    const std::string key = key_of(role, keys);
    const bool needed = role.name == "q" || role.name == "k";
    if (key.empty() && needed) {
      const std::string path = file.path().string();
      throw file_error(path, "",
                       "which tensor is " + std::string(role.name) + "? It has " +
                           (keys.empty() ? "none" : key_list(keys)) + ": name them, as --q " +
                           path + ":KEY --k " + path + ":KEY");
    }
    if (key.empty()) continue;
    found.tensors.*role.place = file.tensor(key);
    taken.insert(key);
    if (needed) (role.name == "q" ? found.q_key : found.k_key) = key;
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

}  // namespace attnscope
