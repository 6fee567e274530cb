#include "cli/run/run_plan.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/common/console.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

void print_plan_json(const RunPlan& p) {
  OrderedJson json{{"format", "attnscope-plan/1"}, {"command", p.command}};
  const auto add = [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  add("layers", p.layers);
  json["heads"] = p.heads;
  add("masks", p.masks);
  add("rows", p.rows);
  add("payload_bytes", p.payload_bytes);
  add("file_bytes", p.file_bytes);
  if (p.payload_bytes) json["at_most"] = p.at_most;
  if (p.free_bytes >= 0) json["free_bytes"] = p.free_bytes;
  if (p.picture) {
    json["picture"] = {{"width", p.picture->width},
                       {"height", p.picture->height},
                       {"memory_bytes", p.picture->bytes}};
  }
  json["expected_seconds"] = p.seconds;
  json["entries"] = p.entries;
  json["flops"] = p.flops;
  json["memory_bytes"] = p.memory_bytes;
  json["budget_bytes"] = p.budget_bytes;
  json["workers"] = p.workers;
  add("processes", p.processes);
  add("units", p.units);
  if (p.tiles) {
    json["panel_rows"] = p.tiles->panel_rows;
    json["one_product"] = p.tiles->one_product;
    json["bound_heads"] = p.tiles->bound_heads;
    json["tiles"] = p.tiles->tiles;
  }
  if (p.where) {
    json["where"] = {
        {"heads", p.where->heads}, {"flops", p.where->flops}, {"seconds", p.where->seconds}};
  }
  print_json(json, false);
}

void print_line(std::string_view word, const std::string& text) {
  fmt::print("{:<14} {}\n", word, text);
}

}  // namespace

RunPlan plan_of(std::string command, int64_t heads, const TilePlan& tiles,
                const MemoryBudget& budget) {
  RunPlan plan;
  plan.command = std::move(command);
  plan.heads = heads;
  plan.entries = tiles.entries;
  plan.flops = tiles.flops;
  plan.memory_bytes = tiles.bytes_total + budget.used();
  plan.budget_bytes = budget.limit();
  plan.workers = tiles.workers;
  plan.tiles = tiles;
  plan.how = tiles.describe();
  return plan;
}

RunPlan plan_of(std::string command, int64_t heads, const ReductionPlan& reductions,
                const MemoryBudget& budget) {
  RunPlan plan;
  plan.command = std::move(command);
  plan.heads = heads;
  plan.rows = reductions.rows;
  plan.entries = static_cast<int64_t>(reductions.entries);
  plan.flops = reductions.flops;
  plan.memory_bytes = reductions.bytes_total + budget.used();
  plan.budget_bytes = budget.limit();
  plan.workers = reductions.workers;
  plan.how = reductions.describe();
  return plan;
}

void print_plan(const RunPlan& p, bool json) {
  if (json) return print_plan_json(p);
  if (p.layers) {
    print_line("layers", fmt::format("{} ({} heads)", *p.layers, p.heads));
  } else {
    print_line("heads",
               p.masks ? fmt::format("{}, masks {}", p.heads, *p.masks) : std::to_string(p.heads));
  }
  const char* most = p.at_most ? "at most " : "";
  if (p.payload_bytes) print_line(p.payload_word, most + format_bytes(*p.payload_bytes));
  if (p.file_bytes) print_line("file", most + format_bytes(*p.file_bytes) + free_text(p));
  if (p.picture) {
    print_line("picture",
               fmt::format("{}, {} of memory", p.picture->size, format_bytes(p.picture->bytes)));
  }
  print_line("entries", format_count(static_cast<double>(p.entries)));
  print_line("arithmetic", format_count(p.flops) + "FLOP");
  print_line("expected time",
             p.seconds < 0 ? "not estimated" : format_seconds(p.seconds) + p.seconds_note);
  print_line("memory", format_bytes(p.memory_bytes) + " of " + format_bytes(p.budget_bytes));
  if (!p.how.empty()) print_line("plan", p.how);
  if (p.where) {
    print_line("--where",
               fmt::format("first the numbers of {} heads, {}FLOP, about {}; the rest is "
                           "of all heads that may be left",
                           p.where->heads, format_count(p.where->flops),
                           format_seconds(p.where->seconds)));
  }
  if (p.processes && p.units) {
    const double each = 1.0 / static_cast<double>(*p.processes);
    const std::string bytes =
        p.payload_bytes
            ? " and " +
                  format_bytes(static_cast<int64_t>(static_cast<double>(*p.payload_bytes) * each))
            : "";
    print_line("processes", fmt::format("{}, of {} units; each about {:.1f} units{}", *p.processes,
                                        *p.units, static_cast<double>(*p.units) * each, bytes));
  }
}

std::string free_text(const RunPlan& p) {
  return p.free_bytes < 0 ? "" : fmt::format(" ({} free)", format_bytes(p.free_bytes));
}

}  // namespace attnscope
