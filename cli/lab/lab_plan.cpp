#include "cli/lab/lab_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/text_table.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/token_grid.h"
#include "io/files/posix_file.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

std::optional<double> optional_number(const OrderedJson& row, const char* name) {
  const OrderedJson& value = row.at(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

/// NAME and VALUE of NAME=VALUE.
std::pair<std::string, std::string> named_value(const std::string& text, const std::string& option,
                                                const std::string& form) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw usage_error(option + " " + text + ": expected " + form);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t whole_value(const std::string& value, const std::string& where) {
  int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < 1) {
    throw usage_error(where + ": expected a whole number, at least 1");
  }
  return number;
}

void set_config_fact(ConfigFacts& facts, const std::string& text) {
  const auto [name, value] = named_value(text, "--config-fact", "NAME=VALUE");
  const std::string where = "--config-fact " + text;
  if (name == "steps") {
    facts.steps = whole_value(value, where);
  } else if (name == "layers") {
    facts.layers = whole_value(value, where);
  } else if (name == "heads") {
    facts.heads = whole_value(value, where);
  } else if (name == "slot") {
    facts.slot = value;
  } else if (name == "tile") {
    facts.tile = parse_grid(value);
  } else if (name == "modules") {
    facts.modules = value;
  } else {
    throw unknown_name("--config-fact", name,
                       {"steps", "layers", "heads", "slot", "tile", "modules"});
  }
}

bool name_one_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto whole = [](const std::filesystem::path& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  return whole(a) == whole(b);
}

KernelConfig config_for(const EditPlan& plan, ConfigFormat format, const ConfigFacts& facts,
                        const std::filesystem::path& path) {
  try {
    return write_config(plan, format, facts);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("--config {}: {} (--config-fact says what a plan does not)",
                            path.string(), error.what()));
  }
}

}  // namespace

std::vector<EditNumbers> choice_numbers(const OrderedJson& lines, std::span<const HeadTask> heads) {
  std::vector<EditNumbers> numbers;
  const size_t edits = heads.empty() ? 1 : lines.size() / heads.size();
  for (size_t i = 0; i < lines.size(); ++i) {
    const OrderedJson& line = lines[i];
    const AttentionProblem& problem = *heads[i / edits].problem;
    numbers.push_back({.head = parse_name_json(line),
                       .edit = line.at("edit").get<std::string>(),
                       .tiles = line.at("tiles").get<double>(),
                       .output_error = optional_number(line, "output_error"),
                       .recall = optional_number(line, "recall"),
                       .recall_p05 = optional_number(line, "recall_p05"),
                       .queries = problem.num_queries(),
                       .keys = problem.num_keys()});
  }
  return numbers;
}

ConfigFiles::ConfigFiles(const std::vector<std::string>& configs,
                         const std::vector<std::string>& facts, const std::filesystem::path& out) {
  for (const std::string& text : configs) {
    const auto [format, file] = named_value(text, "--config", "FORMAT=FILE");
    const std::filesystem::path path = file;
    const auto is_there = [&](const auto& other) { return name_one_file(other.second, path); };
    if (std::any_of(files_.begin(), files_.end(), is_there)) {
      throw usage_error("--config " + text + ": names " + file + " twice");
    }
    if (!out.empty() && name_one_file(out, path)) {
      throw usage_error("--config " + text + ": names the file of -o");
    }
    files_.emplace_back(parse_config_format(format, "--config"), file);
  }
  for (const std::string& text : facts) set_config_fact(facts_, text);
  if (files_.empty() && !facts.empty()) throw usage_error("--config-fact: is of --config");
}

void ConfigFiles::check_targets(const OutputFileOptions& options) const {
  for (const auto& [format, file] : files_) OutputFile::check_target(file, options);
}

ConfigFacts ConfigFiles::facts_of(std::span<const HeadTask> heads) const {
  ConfigFacts facts = facts_;
  for (const HeadTask& head : heads) {
    const TokenGrid& grid = head.problem->key_tokens();
    if (!grid.has_grid()) continue;
    facts.tiles = {ceil_div(grid.frames(), facts.tile[0]), ceil_div(grid.height(), facts.tile[1]),
                   ceil_div(grid.width(), facts.tile[2])};
    break;
  }
  return facts;
}

void ConfigFiles::check(const EditPlan& plan, std::span<const HeadTask> heads) const {
  if (empty()) return;
  const ConfigFacts facts = facts_of(heads);
  for (const auto& [format, path] : files_) config_for(plan, format, facts, path);
}

void ConfigFiles::write(const EditPlan& plan, std::span<const HeadTask> heads,
                        const OutputFileOptions& options, const Console& console) const {
  const ConfigFacts facts = facts_of(heads);
  for (const auto& [format, path] : files_) {
    const KernelConfig config = config_for(plan, format, facts, path);
    OutputFile file(path, options);
    PosixFile part(file.new_part_path(), PosixFile::Mode::create);
    part.write_at(std::as_bytes(std::span(config.text)), 0);
    part.close();
    file.open_new_part(static_cast<int64_t>(config.text.size()));
    file.commit_new_part();
    console.say("wrote " + path.string());
    for (const std::string& loss : config.losses) {
      console.say("note: " + path.filename().string() + ": " + one_line(loss));
    }
  }
}

void print_plan(const EditPlan& plan) {
  TextTable table;
  table.add_column("heads", TextTable::Side::left);
  table.add_column("edit", TextTable::Side::left);
  for (const char* const name : {"tiles", "mean", "worst"}) table.add_column(name);
  const bool held = plan.hold_out > 0;
  if (held) {
    table.add_column("found mean");
    table.add_column("found worst");
  }
  for (const PlanScope& scope : plan.scopes) {
    std::vector<std::string> cells{one_line(scope.describe()), one_line(scope.edit),
                                   number_cell(scope.tiles), number_cell(scope.promised.mean),
                                   number_cell(scope.promised.worst)};
    if (held) {
      cells.push_back(number_cell(scope.found ? std::optional(scope.found->mean) : std::nullopt));
      cells.push_back(number_cell(scope.found ? std::optional(scope.found->worst) : std::nullopt));
    }
    table.add_line(std::move(cells));
  }
  fmt::print("{}", table.text());
}

}  // namespace attnscope
