#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/head_name.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The attributes of a group of an export that describe its call. A value, made of an open
/// capture's call or of what a part of an export recorded.
struct CallDescription {
  HeadName name;  ///< its batch item and head mean nothing
  /// Of its facts that nobody recorded: "step model"; empty: none.
  std::string not_recorded() const;
  double timestep = std::numeric_limits<double>::quiet_NaN();
  std::string layer_name, score, mask, grid, text, model, prompt, q_dtype, q_state;
  std::string sinks;             ///< "a logit a head", "a logit a query"; empty: none
  std::vector<double> scale{0};  ///< one, or one for each of the group's heads
  int64_t head_dim = 0, head_offset = 0;
  /// Token maps as JSON; nothing where none was stated.
  std::optional<std::string> queries, keys;
  std::string backend;
  int64_t num_queries = 0;  ///< of the sequence, whatever is exported of it

  bool is_linear() const { return score.rfind("linear", 0) == 0; }
};

/// The rows or the keys of a group, as indices of the sequence, and where they lie in it.
struct AxisDescription {
  std::vector<int32_t> indices, t, y, x;
  std::vector<uint8_t> segments;  ///< [tokens], or [batch, tokens]
  bool segments_by_item = false;
  std::vector<std::string> named_segments;  ///< those that are neither text, video nor padding
};

/// Everything that a group of an export holds before its values. Its lists take 17 bytes a row and
/// a key: to be made when it is written, and not kept.
struct GroupDescription {
  AxisDescription query, key;
  std::vector<std::string> text;  ///< [text_index], or [batch, text_index]; may be empty
  int64_t text_lists = 1;
  /// [batch, head] or [batch, head, query]; empty without.
  std::vector<float> sinks = {};
  bool sinks_by_query = false;
};

/// Writes the description in a part's group as JSON, and reads it. Throws nlohmann's exceptions
/// where it is no such description.
OrderedJson call_description_json(const CallDescription& call);
CallDescription parse_call_description(const OrderedJson& json);

}  // namespace attnscope
