#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/files/json_types.h"

namespace attnscope {

/// A forward of a watched model, as the list `forwards` of capture.json tells it.
struct ForwardRecord {
  int64_t forward = 0;
  std::optional<int64_t> step, of_step;
  std::vector<std::string> branches;  ///< empty: not told
  std::optional<double> timestep;
  std::string transformer, context;      ///< the context may be empty
  std::optional<int64_t> latents, text;  ///< equal numbers are of equal contents
  std::optional<int64_t> calls;          ///< that were recorded
  bool chosen = false, partial = false;
};

/// A call, or with no module a forward, that the recorder refused.
struct RefusedCall {
  std::optional<int64_t> forward, step;
  std::vector<std::string> branches;
  std::string block, slot, layer_name;  ///< empty: not told
  std::string why;

  bool is_forward() const { return block.empty() && slot.empty() && layer_name.empty(); }
};

/// A recorder's lists of the forwards that it saw and of the calls that it refused. A value.
struct ForwardLog {
  std::vector<ForwardRecord> forwards;
  std::vector<RefusedCall> refused;
  std::string forwards_json, refused_json;  ///< the lists as they stand; empty: there is none
  std::vector<std::string> unknown_keys;    ///< of their entries, one printable line each

  bool empty() const { return forwards_json.empty() && refused_json.empty(); }
  /// How many forwards made fewer or other calls than the model has.
  int64_t partial_count() const;
};

/// The lists `forwards` and `refused` of the capture.json `file`. Throws Error(file) naming the
/// entry where one is malformed.
ForwardLog read_forward_log(const Json& root, const std::string& file);
/// Writes both lists into the root of a capture.json.
void add_forward_log(OrderedJson& root, const ForwardLog& log);

/// Entries that were refused for one reason, in the order in which reasons came.
struct Refusal {
  std::string why;
  int64_t calls = 0, forwards = 0;
  const RefusedCall* first = nullptr;

  /// "24 calls", "1 forward".
  std::string count_text() const;
};
/// `log` outlives them.
std::vector<Refusal> refusals(const ForwardLog& log);

/// "forward 3, step 1, transformer_blocks.0.attn1"; what is not told is left out.
std::string refused_place(const RefusedCall& call);

}  // namespace attnscope
