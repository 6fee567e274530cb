#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/export/format/group_description.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A run of a model whose heads were measured while it ran: a prompt with a seed.
struct MetricRun {
  std::string id;      ///< that no other run has; processes that have heads of one run share it
  std::string name;    ///< the column `run`; unlike those of a table's other runs
  std::string prompt;  ///< empty: not known
  std::optional<int64_t> seed;
  std::string launch;           ///< what the processes of one start share; empty: one process
  int64_t rank = 0, ranks = 1;  ///< of the process that measured
  bool complete = false;        ///< whether the model's run came to its end
  double seconds = 0;           ///< that measuring took
  std::map<int64_t, double> steps = {};  ///< of each step; −1: of forwards without one
  /// Calls and forwards that could not be measured, as capture.json lists them (io/capture/facts/
  /// forward_log.h): objects with "why".
  OrderedJson refused = OrderedJson::array();

  /// The run as files have it, and back. Throws nlohmann's exceptions where it is none.
  OrderedJson json() const;
  static MetricRun parse(const OrderedJson& json);
};

/// In the order of the alternatives of MetricValues.
enum class MetricType : uint8_t { f64, f32, i32, text };
using MetricValues = std::variant<std::vector<double>, std::vector<float>, std::vector<int32_t>,
                                  std::vector<std::string>>;

/// A value a run, or a head of each run: of a shape of its own.
struct MetricVariable {
  std::string name;  ///< "entropy"; "level_64/weights_max" stands in a group below the call's
  std::string long_name;
  bool of_heads = true;           ///< values [run, batch, head, …axes]; else [run]
  std::vector<std::string> axes;  ///< behind those
  std::vector<int64_t> shape;     ///< an extent an axis
  /// Names of the places of an axis, by the axis.
  std::map<std::string, std::vector<std::string>> labels = {};
  MetricValues values;

  MetricType type() const { return static_cast<MetricType>(values.index()); }
  /// Values of one head of one run (or of one run).
  int64_t cell() const;
};

/// The variable that tells which heads were measured: 1, else 0.
inline constexpr std::string_view kMeasured = "measured";

/// The heads of one call and branch, of every run; a capture's own numbers (`attnscope stats`) are
/// like those of one run, and none of its heads are missing.
struct MetricGroup {
  CallDescription call;  ///< of the first run that has it; heads count from 0 of the model
  std::vector<int64_t> batch, heads;  ///< ascending
  std::vector<MetricVariable> variables;

  const MetricVariable* find(std::string_view name) const;
  /// A variable of heads without axes of its own. The reference holds until the next one is added.
  MetricVariable& add(std::string name, std::string long_name, MetricValues values);
};

/// Numbers of heads by one choice of options: of several runs of one model, or, without runs, of a
/// capture.
struct RunTable {
  OrderedJson options;  ///< a flat object: what all runs share, "model" and "backend" too
  std::vector<MetricRun> runs;
  std::vector<MetricGroup> groups;
  std::string capture = {};  ///< its name, where it was read from a file
};

/// Key of a group: its name without batch item and head.
HeadName group_key(const MetricGroup& group);

/// Throws Error(file) that names `where`, the call and what differs, where heads of `group` cannot
/// stand in one table with those of `there`: other grids, scores or shapes.
void expect_group_fits(const MetricGroup& there, const MetricGroup& group,
                       const std::string& where);

/// The text of an option; empty where there is none.
std::string text_option(const OrderedJson& options, const char* name);
/// Throws Error(file) naming the first option that differs; `mixed`: the backend may.
void expect_options(const OrderedJson& expected, const OrderedJson& found, const std::string& where,
                    bool mixed);

/// Heads of some runs, to be joined with others.
struct MetricSource {
  std::string where;         ///< for messages
  std::vector<size_t> runs;  ///< [run of the group] → run of the whole
  const MetricGroup* group = nullptr;
};
/// The groups of a table of `runs` runs: in the order of their keys, batch items and heads those
/// that any source has, what no source has undefined (NaN, −1, empty). Throws Error(file) as
/// expect_group_fits(), and where two sources have the same head of a run.
std::vector<MetricGroup> join_groups(std::span<const MetricSource> sources, size_t runs);

/// `name`, or with " (2)", " (3)" … behind it where a run is called so already.
std::string unlike_name(const std::string& name, std::span<const MetricRun> runs);

}  // namespace attnscope
