#include "cli/report/report_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/shell_words.h"
#include "cli/common/stored_input.h"
#include "cli/report/report_facts.h"
#include "cli/report/report_output.h"
#include "cli/report/report_parts.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/export/read/export_verify.h"
#include "io/export/read/stored_facts.h"
#include "io/export/read/stored_maps.h"
#include "io/files/output_file.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// Exports of up to this size are read back.
constexpr int64_t kVerifiedBytes = int64_t{256} << 20;
/// Bad places that a page lists.
constexpr size_t kListedPlaces = 10;

/// A head of an export, and its call's facts.
struct ExportedHead {
  HeadName name;
  const StoredFacts* facts = nullptr;
};

/// What an export has: of maps all heads, of other products those whose groups stand in the file.
struct ExportedHeads {
  std::optional<StoredMaps> maps;
  std::vector<std::optional<StoredFacts>> facts;
  std::vector<ExportedHead> heads;

  ExportedHeads(const std::filesystem::path& path, const ExportManifest& stored) {
    const bool has_maps = stored.product == "weights" || stored.product == "logits";
    if (has_maps) {
      maps.emplace(path);
      for (const StoredHead& head : maps->heads()) {
        heads.push_back({stored_name(*head.facts, head.batch, head.head), head.facts});
      }
      return;
    }
    std::vector<std::string> groups;
    for (const StoredGroup& group : stored.groups) groups.push_back(group.name);
    if (groups.empty()) return;
    facts = read_call_facts(path, groups);
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!facts[i]) continue;
      const StoredGroup& group = stored.groups[i];
      for (const int64_t batch : group.batch) {
        for (const int64_t head : group.heads) {
          heads.push_back({stored_name(*facts[i], batch, head), &*facts[i]});
        }
      }
    }
  }
};

OrderedJson about_export(const ExportManifest& stored, const std::vector<ExportedHead>& heads) {
  OrderedJson about = OrderedJson::array();
  const auto add = [&](const char* label, const std::string& text) {
    const OrderedJson line{{"label", label}, {"text", text}, {"how", "recorded"}};
    if (!text.empty() && std::find(about.begin(), about.end(), line) == about.end()) {
      about.push_back(line);
    }
  };
  add("product", stored.product);
  add("capture", file_name(stored.capture));
  add("written by", "attnscope " + stored.version);
  for (const ExportedHead& head : heads) add("model", head.facts->model);
  for (const ExportedHead& head : heads) add("score", head.facts->score);
  for (const ExportedHead& head : heads) add("mask", head.facts->mask);
  for (const ExportedHead& head : heads) {
    if (head.facts->query_tokens.has_grid()) add("grid", head.facts->query_tokens.grid_text());
  }
  for (const ExportedHead& head : heads) add("state of q and k", head.facts->q_state);
  add("heads", std::to_string(heads.size()));
  add("size", format_bytes(stored.file_bytes));
  return about;
}

/// Reads the export back where it is small.
OrderedJson checks_of(const std::filesystem::path& path, const ExportManifest& stored,
                      const Console& console, std::vector<std::string>& problems) {
  OrderedJson checks = OrderedJson::array();
  const auto add = [&](const OrderedJson& ok, const std::string& text) {
    checks.push_back({{"ok", ok}, {"text", text}});
  };
  const ExportState state = export_state(stored, path);
  add(state.complete, state.complete ? "it is complete"
                                     : fmt::format("it is not complete: {} of {} tiles",
                                                   state.tiles_done, state.tiles_total));
  if (!state.complete) problems.emplace_back("the export is not complete");
  if (stored.file_bytes > kVerifiedBytes) {
    add(nullptr, "its checksums were not read, since it is large: attnscope verify does");
    return checks;
  }
  const InterruptWatch interrupts(console);
  const VerifyReport report = verify_export(path, interrupts.token(), [](int64_t, int64_t) {});
  if (report.bad == 0) {
    add(true,
        fmt::format("all checksums of what was written hold: {} read", format_bytes(report.bytes)));
    return checks;
  }
  add(false, fmt::format("{} places are damaged", report.bad));
  for (size_t i = 0; i < std::min(report.bad_places.size(), kListedPlaces); ++i) {
    problems.push_back("damaged: " + without_folders(report.bad_places[i], path));
  }
  return checks;
}

void refuse_computing_of_export(const ReportRequest& o) {
  check_export_options(o.capture, o.run);
  if (o.sample > 0) throw usage_error("--sample: nothing of an export is computed");
}

}  // namespace

int report_export(const ReportRequest& o, const Console& console) {
  refuse_computing_of_export(o);
  const std::filesystem::path path = o.capture.capture;
  const std::vector<std::filesystem::path> inputs(1, path);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  const ExportManifest stored = read_manifest(path);
  const ExportedHeads found(path, stored);
  std::vector<HeadName> names;
  for (const ExportedHead& head : found.heads) names.push_back(head.name);
  std::vector<ExportedHead> selected;
  if (!names.empty()) {
    for (const size_t i : select_stored(names, o.selection, console)) {
      selected.push_back(found.heads[i]);
    }
  }
  std::vector<ReportHead> heads;
  OrderedJson rows = OrderedJson::array();
  for (const ExportedHead& head : selected) {
    heads.push_back({head.name, "", 0});
    rows.emplace_back(name_json(head.name))["class"] = nullptr;
  }
  ReportParts parts;
  parts.facts = first_facts(o, "export", file_name(path));
  parts.facts["about"] = about_export(stored, selected);
  parts.facts["checks"] = checks_of(path, stored, console, parts.problems);
  parts.facts["capture_hash"] = stored.capture_hash;
  parts.lacks = {
      "of an export what is in it is told: its heads have no numbers, maps, films and words here "
      "(attnscope report of the capture has them, attnscope render draws its maps)"};
  if (heads.empty()) parts.lacks.emplace_back("the heads of this product are not listed");
  add_heads(parts.facts, heads, {}, "");
  parts.facts["stands_out"] = OrderedJson::array();
  parts.facts["not_reached"] = OrderedJson::array();
  write_report(o, parts, {stored.capture_hash, rows, heads, {}, {}}, console);
  return kExitOk;
}

}  // namespace attnscope
