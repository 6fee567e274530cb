#include "cli/info/info_export.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/stored_input.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/selection.h"
#include "io/export/format/export_marks.h"
#include "io/export/read/export_files.h"
#include "io/export/read/export_verify.h"
#include "io/export/read/stored_facts.h"
#include "io/files/json_types.h"
#include "io/files/rank_files.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// The facts that an export has of its groups' calls, by the groups' names.
using GroupCalls = std::map<std::string, StoredFacts>;

/// Adds what a file of the export says of these groups; nothing where it is missing or damaged,
/// which other words tell.
void add_group_calls(const std::filesystem::path& path, const std::vector<std::string>& groups,
                     GroupCalls& calls) {
  try {
    auto facts = read_call_facts(path, groups);
    for (size_t i = 0; i < facts.size(); ++i) {
      if (facts[i]) calls.emplace(groups[i], std::move(*facts[i]));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
  }
}

GroupCalls group_calls(const ExportManifest& stored, const std::filesystem::path& path) {
  GroupCalls calls;
  std::vector<std::string> groups = stored.plain_groups;
  for (const StoredGroup& group : stored.groups) groups.push_back(group.name);
  for (const Shard& shard : stored.shards) groups.push_back(shard.name);
  if (!groups.empty()) add_group_calls(path, groups, calls);
  for (const Shard& shard : stored.shards) {
    // Masters of older versions link their groups.
    if (calls.contains(shard.name)) continue;
    add_group_calls(path.parent_path() / stored.shard_folder / shard.file, {shard.name}, calls);
  }
  return calls;
}

OrderedJson named_json(const std::string& name, const GroupCalls& calls) {
  OrderedJson json{{"name", name}};
  const auto found = calls.find(name);
  if (found == calls.end()) return json;
  const StoredFacts& call = found->second;
  json.update(call_name_json(stored_name(call, 0, 0)));
  json["score"] = call.score;
  json["mask"] = call.mask;
  if (!call.sinks.empty()) json["sinks"] = call.sinks;
  // A chunk is one of the file's here; the name tells the piece of a stream.
  json.erase("chunk");
  return json;
}

OrderedJson group_json(const StoredGroup& group, const GroupCalls& calls) {
  OrderedJson json = named_json(group.name, calls);
  json["batch"] = group.batch;
  json["heads"] = group.heads;
  json["rows"] = group.grid.rows;
  if (!group.entries_name.empty()) {
    json["keys"] = group.grid.cols;
    json["entries"] = group.entries_name;
    json["element_bytes"] = group.grid.element_bytes;
    json["chunk"] = {group.grid.chunk_rows, group.grid.chunk_cols};
  }
  json["lse"] = group.has_lse;
  return json;
}

/// ", score softcap:50, mask causal, sinks: a logit a head"; empty of plain softmax over all keys.
std::string call_text(const std::string& group, const GroupCalls& calls) {
  const auto found = calls.find(group);
  if (found == calls.end()) return "";
  const StoredFacts& call = found->second;
  std::string text = call.score == "softmax" ? "" : ", score " + one_line(call.score);
  if (call.mask != "none") text += ", mask " + one_line(call.mask);
  if (!call.sinks.empty()) text += ", sinks: " + one_line(call.sinks);
  return text;
}

std::string group_text(const StoredGroup& group, const GroupCalls& calls) {
  std::string text = fmt::format("  {}: batch {}, heads {}: ", one_line(group.name),
                                 format_index_list(group.batch), format_index_list(group.heads));
  if (!group.entries_name.empty()) {
    text +=
        fmt::format("{} [{}, {}, {}, {}], {} bytes each", group.entries_name, group.batch.size(),
                    group.heads.size(), group.grid.rows, group.grid.cols, group.grid.element_bytes);
  }
  if (group.has_lse) {
    text += fmt::format("{}lse [{}, {}, {}]", group.entries_name.empty() ? "" : ", ",
                        group.batch.size(), group.heads.size(), group.grid.rows);
  }
  return text + call_text(group.name, calls);
}

/// The most bytes to read for check_words(); for an export of blocks the check would read the whole
/// file.
constexpr int64_t kMostChecked = int64_t{64} << 20;

/// Holds all that the file says against its checksum; false where that would take long, or an
/// export that is written at once is under way. Throws Error(file).
bool check_words(const ExportManifest& stored, const ExportState& state, const std::string& path) {
  int64_t bytes = stored.file_bytes;
  for (const StoredGroup& group : stored.groups) {
    if (!group.entries_name.empty()) bytes -= group.grid.bytes();
    if (group.has_lse) bytes -= group.grid.heads * group.grid.rows * 4;
  }
  if (bytes > kMostChecked || (stored.groups.empty() && !state.complete)) return false;
  require_sound_structure(stored, PosixFile(path, PosixFile::Mode::read_only));
  return true;
}

/// The runs of a table of metrics; none of any other export.
std::vector<MetricRun> runs_of(const ExportManifest& stored, const std::string& path) {
  if (stored.product != "stats" || !is_metric_file(path)) return {};
  return read_metric_file(path, MetricPart::runs).runs;
}

std::string run_text(const MetricRun& run) {
  std::string text = "  run " + one_line(run.name);
  if (!run.complete) text += " (was cut off)";
  if (run.ranks > 1) text += fmt::format(", rank {} of {}", run.rank, run.ranks);
  if (run.refused.empty()) return text;
  return text + fmt::format(", {} calls or forwards refused: {}", run.refused.size(),
                            one_line(run.refused.front().at("why").get<std::string>()));
}

OrderedJson export_json(const ExportManifest& stored, const ExportState& state, bool checked,
                        const std::vector<LackingFile>& lacking, const GroupCalls& calls) {
  OrderedJson groups = OrderedJson::array();
  for (const StoredGroup& group : stored.groups) groups.push_back(group_json(group, calls));
  for (const Shard& shard : stored.shards) {
    OrderedJson& group = groups.emplace_back(named_json(shard.name, calls));
    group["file"] = stored.shard_folder + "/" + shard.file;
    group["bytes"] = shard.bytes;
  }
  for (const std::string& group : stored.plain_groups) groups.push_back(named_json(group, calls));
  const OrderedJson options = OrderedJson::parse(stored.options, nullptr, false);
  OrderedJson json{{"product", stored.product},
                   {"capture", stored.capture},
                   {"capture_hash", stored.capture_hash},
                   {"attnscope_version", stored.version},
                   {"options", options.is_discarded() ? OrderedJson(stored.options) : options},
                   {"file_bytes", stored.file_bytes},
                   {"complete", state.complete && lacking.empty()},
                   {"tiles_done", state.tiles_done},
                   {"tiles_total", state.tiles_total},
                   {"calls", groups}};
  if (!checked) json["checked"] = false;
  if (const std::string text = renamed_text(stored); !text.empty()) json["renamed"] = text;
  if (stored.part) {
    json["shard"] = stored.part->plan.share.text();
    json["plan_hash"] = stored.part->plan.plan_hash;
  }
  for (const LinkedPart& part : stored.parts) {
    json["parts"].push_back({{"file", part.file}, {"bytes", part.bytes}});
  }
  for (const LackingFile& file : lacking) {
    const OrderedJson bytes = file.bytes < 0 ? OrderedJson(nullptr) : OrderedJson(file.bytes);
    json["missing"].push_back({{"file", file.name}, {"bytes", bytes}, {"expected", file.expected}});
  }
  return json;
}

std::string state_text(const ExportManifest& stored, const ExportState& state) {
  const std::string word = state.complete ? "complete" : "incomplete";
  if (!stored.parts.empty()) return fmt::format("{}: {} parts", word, stored.parts.size());
  if (!stored.plain_groups.empty()) return word;
  if (!stored.shards.empty()) return fmt::format("{}: {} shards", word, stored.shards.size());
  if (state.complete) return fmt::format("complete: {} tiles", state.tiles_total);
  if (!state.has_journal) {
    return fmt::format("incomplete: 0 of {} tiles (its journal is missing)", state.tiles_total);
  }
  return fmt::format("incomplete: {} of {} tiles", state.tiles_done, state.tiles_total);
}

/// "incomplete: 1 of 3 parts is missing: b.h5" of an export whose files are not all there in their
/// sizes.
std::string lacking_text(const ExportManifest& stored, const std::vector<LackingFile>& lacking) {
  const bool in_parts = !stored.parts.empty();
  std::string text = fmt::format("incomplete: {} of {} {} {} missing: ", lacking.size(),
                                 in_parts ? stored.parts.size() : stored.shards.size(),
                                 in_parts ? "parts" : "shards", lacking.size() == 1 ? "is" : "are");
  for (const LackingFile& file : lacking) {
    if (&file != &lacking.front()) text += ", ";
    text += one_line(file.name);
    if (file.bytes < 0) continue;
    text += fmt::format(" (another one has its name: {} bytes, expected {})", file.bytes,
                        file.expected);
  }
  return text;
}

/// ", as the journals of 3 processes tell" of an OUT.part that several wrote; else nothing.
std::string writers_text(const std::string& path) {
  constexpr std::string_view kPart = ".part";
  if (!path.ends_with(kPart)) return "";
  const size_t others = ranks_beside(path.substr(0, path.size() - kPart.size())).size();
  return others == 0 ? "" : fmt::format(", as the journals of {} processes tell", others + 1);
}

}  // namespace

int print_journal_info(const std::string& path, bool json) {
  const RunTable table = read_metric_journal(path);
  if (json) {
    OrderedJson about{{"product", "stats"}, {"options", table.options}, {"complete", false}};
    for (const MetricRun& run : table.runs) about["runs"].push_back(run.json());
    for (const MetricGroup& group : table.groups) {
      about["calls"].push_back(call_name_json(group.call.name));
    }
    print_json({{"format", "attnscope-info/1"}, {"path", path}, {"export", about}}, true);
    return kExitOk;
  }
  fmt::print("{}\n", one_line(path));
  fmt::print(
      "metrics of runs that have not ended, or were cut off: {} calls (attnscope merge makes "
      "a table of them)\n",
      table.groups.size());
  for (const MetricRun& run : table.runs) fmt::print("{}\n", run_text(run));
  return kExitOk;
}

int print_export_info(const std::string& path, bool json) {
  const ExportManifest stored = read_manifest(path);
  const ExportState state = export_state(stored, path);
  const bool checked = check_words(stored, state, path);
  const std::vector<LackingFile> lacking = lacking_files(path, stored);
  const std::string renamed = renamed_text(stored);
  const int code = lacking.empty() && renamed.empty() ? kExitOk : kExitDifference;
  const std::vector<MetricRun> runs = runs_of(stored, path);
  const GroupCalls calls = group_calls(stored, path);
  if (json) {
    OrderedJson about = export_json(stored, state, checked, lacking, calls);
    for (const MetricRun& run : runs) about["runs"].push_back(run.json());
    const OrderedJson hash = about.value("capture_hash", OrderedJson());
    print_json(
        {{"format", "attnscope-info/1"}, {"path", path}, {"capture_hash", hash}, {"export", about}},
        true);
    return code;
  }
  fmt::print("{}\n", one_line(path));
  fmt::print("export: {} of {}, {}, written by attnscope {}\n", one_line(stored.product),
             one_line(stored.capture), format_bytes(stored.file_bytes), one_line(stored.version));
  if (stored.part) {
    const PlanPart& plan = stored.part->plan;
    fmt::print("part {} of plan {}: {} of its {} units (attnscope merge joins the parts)\n",
               plan.share.text(), one_line(plan.plan_hash), plan.units.size(), plan.all_units);
  }
  for (const StoredGroup& group : stored.groups) fmt::print("{}\n", group_text(group, calls));
  for (const Shard& shard : stored.shards) {
    fmt::print("  {}: {} in {}/{}{}\n", one_line(shard.name), format_bytes(shard.bytes),
               one_line(stored.shard_folder), one_line(shard.file), call_text(shard.name, calls));
  }
  for (const std::string& group : stored.plain_groups)
    fmt::print("  {}{}\n", one_line(group), call_text(group, calls));
  for (const LinkedPart& part : stored.parts) {
    fmt::print("  {} in {}\n", format_bytes(part.bytes), one_line(part.file));
  }
  for (const MetricRun& run : runs) fmt::print("{}\n", run_text(run));
  if (lacking.empty()) {
    fmt::print("{}{}\n", state_text(stored, state), state.complete ? "" : writers_text(path));
  } else {
    fmt::print("{}\n", lacking_text(stored, lacking));
  }
  if (!renamed.empty()) fmt::print("it {}\n", renamed);
  if (!checked) fmt::print("not held against its checksum here: attnscope verify does\n");
  return code;
}

}  // namespace attnscope
