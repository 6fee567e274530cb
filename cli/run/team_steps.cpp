#include "cli/run/team_steps.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/run/team_run.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/plan_share.h"
#include "core/base/version.h"
#include "io/capture/selection_share.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Of copies of a capture on several hosts, what costs nothing to compare.
int64_t bytes_of_files(const Capture& capture) {
  int64_t bytes = 0;
  for (const std::filesystem::path& file : capture.files()) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

/// Throws where a process has something else than the first one. `advice`: what is to be done.
void require_alike(Team& team, OrderedJson mine, const std::string& advice) {
  mine["host"] = this_host();
  const auto all = team.exchange(text_of(mine));
  const OrderedJson first = OrderedJson::parse(all.front());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const OrderedJson other = OrderedJson::parse(all[rank]);
    for (const auto& [key, value] : first.items()) {
      if (key == "host" || other[key] == value) continue;
      throw usage_error(fmt::format(
          "process {} on {} has another {} than process 0 on {} (expected {}, got {}){}", rank,
          one_line(other["host"].get<std::string>()), key,
          one_line(first["host"].get<std::string>()), one_line(text_of(value)),
          one_line(text_of(other[key])), advice));
    }
  }
}

/// Options by which another process computes with what the first one's backend is called.
RunOptions options_for(const std::string& name, RunOptions options) {
  options.tf32 = name == "cuda-tf32";
  options.backend = options.tf32          ? "cuda"
                    : name == "cpu"       ? "cpu-fma"  // cpu may be another on a better processor
                    : name == "cpu-nofma" ? "cpu"
                                          : name;
  return options;
}

/// Why this process cannot compute as the first one does; empty where it does.
std::string obstacle_of(const RunOptions& options, const std::string& name, const Console& console,
                        RunBackend& backend) {
  try {
    backend = make_run_backend(options_for(name, options), console);
    return backend->name() == name ? "" : "its processor has " + backend->name();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::usage) throw;
    return error.what();
  }
}

/// Each process reads its run of the calls, for all.
std::vector<std::string> hash_together(Team& team, const Capture& capture,
                                       const std::vector<SelectedCall>& calls, bool with_values,
                                       const std::stop_token& stop) {
  const std::span<const SelectedCall> own = own_items(team, calls);
  std::string text;
  for (const std::string& hash : capture.call_hashes({own.begin(), own.end()}, with_values, stop)) {
    text += hash + "\n";
  }
  std::vector<std::string> hashes;
  for (const std::string& words : team.exchange(text)) {
    for (size_t at = 0; at < words.size();) {
      const size_t end = words.find('\n', at);
      if (end == std::string::npos) throw usage_error("a process is about another run");
      hashes.push_back(words.substr(at, end - at));
      at = end + 1;
    }
  }
  return hashes;
}

}  // namespace

IndexRange own_run(const Team& team, int64_t items) {
  const std::vector<int64_t> alike(static_cast<size_t>(items), 1);
  return share_out(alike, team.size())[static_cast<size_t>(team.rank())];
}

int64_t results_held(const Team& team, int64_t results) {
  return team.is_first() ? results : ceil_div(results, int64_t{team.size()});
}

RunBackend make_team_backend(const RunOptions& options, Team& team, const Console& console) {
  if (team.is_alone()) return make_run_backend(options, console);
  require_alike(team, {{"backend", options.backend}, {"--tf32", options.tf32}},
                ": give all the same --backend");
  RunBackend backend;
  std::string chosen;
  if (team.is_first()) {
    backend = make_run_backend(options, console);
    chosen = text_of({{"name", backend->name()}, {"host", this_host()}});
  }
  const OrderedJson first = OrderedJson::parse(team.exchange(chosen).front());
  const auto name = first["name"].get<std::string>();
  if (team.is_first()) return backend;
  const std::string obstacle = obstacle_of(options, name, console, backend);
  if (obstacle.empty()) return backend;
  throw usage_error(fmt::format(
      "process {} on {} cannot compute with {}, which process 0 on {} takes ({}): give all a "
      "--backend that all have",
      team.rank(), this_host(), name, one_line(first["host"].get<std::string>()), obstacle));
}

void agree_on_run(Team& team, const Capture& capture, const std::vector<SelectedCall>& calls,
                  const OrderedJson& run) {
  if (team.is_alone()) return;
  OrderedJson mine{{"attnscope", std::string(version())},
                   {"capture", capture.path().filename().string()},
                   {"capture's bytes", bytes_of_files(capture)}};
  mine.update(run);
  mine["facts of the calls"] = plan_hash(calls, "");
  require_alike(team, std::move(mine), "");
}

void share_forecast(RunPlan& plan, const Team& team, int64_t units) {
  if (plan.seconds >= 0) plan.seconds /= team.size();
  plan.processes = team.size();
  plan.units = units;
}

std::string processes_text(const RunPlan& plan) {
  return plan.processes ? fmt::format(" by {} processes", *plan.processes) : "";
}

CallDigests digest_calls(Team& team, const Capture& capture, const std::vector<SelectedCall>& calls,
                         const std::optional<SelectionShare>& share, bool with_values,
                         const std::stop_token& stop) {
  CallDigests digests;
  if (!share) {
    digests.of_calls = hash_together(team, capture, calls, with_values, stop);
    digests.whole = join_call_hashes(digests.of_calls);
    return digests;
  }
  const std::vector<std::string> own =
      capture.call_hashes(share->touched(calls), with_values, stop);
  const std::vector<int64_t> places = share->places();
  digests.of_calls.assign(calls.size(), "");
  for (size_t i = 0; i < own.size(); ++i) digests.of_calls[static_cast<size_t>(places[i])] = own[i];
  digests.whole = join_call_hashes(own);
  return digests;
}

}  // namespace attnscope
