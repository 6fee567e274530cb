#include "cli/run/shard_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cluster/launch.h"
#include "core/base/error.h"
#include "core/base/version.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr std::string_view kMark = "{shard}";

/// "maps-{shard}.h5" of "maps.h5".
std::string with_mark(const std::string& out) {
  const std::filesystem::path path(out);
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();
  const std::string mark = "-" + std::string(kMark);
  return (named.parent_path() / (named.stem().string() + mark + named.extension().string()))
      .string();
}

/// The number that a variable holds; nothing where it is not set, or set to nothing.
std::optional<int64_t> number(const Environment& variable, const char* name) {
  const char* const value = variable(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  int64_t result = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error == std::errc() && end == text.data() + text.size() && result >= 0) return result;
  throw usage_error(fmt::format("--shard auto: {} is \"{}\" (expected a number from 0 on)", name,
                                one_line(text)));
}

/// Two variables that hold a rank and how many there are. One alone tells nothing.
void add_rank(std::vector<ShareSource>& sources, const Environment& variable, const char* rank,
              const char* count) {
  const char* const set[] = {variable(rank), variable(count)};
  if (set[0] == nullptr || set[1] == nullptr) return;
  const auto index = number(variable, rank), all = number(variable, count);
  if (!index || !all) return;
  const std::string name = fmt::format("{} of {}", rank, count);
  if (*index >= *all || *all > kMostShares) {
    throw usage_error(
        fmt::format("--shard auto: {} is {} of {} (expected a rank below a count of "
                    "at most {})",
                    name, *index, *all, kMostShares));
  }
  sources.push_back({name, {*index, *all}});
}

/// A task of a Slurm array: (ID − MIN) / STEP of COUNT.
void add_array_task(std::vector<ShareSource>& sources, const Environment& variable) {
  const auto id = number(variable, "SLURM_ARRAY_TASK_ID");
  const auto count = number(variable, "SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return;
  const int64_t first = number(variable, "SLURM_ARRAY_TASK_MIN").value_or(0);
  const int64_t step = number(variable, "SLURM_ARRAY_TASK_STEP").value_or(1);
  const bool even = step > 0 && *id >= first && (*id - first) % step == 0 &&
                    (*id - first) / step < *count && *count <= kMostShares;
  if (!even) {
    throw usage_error(
        fmt::format("--shard auto: task {} of a Slurm array of {} from {} on in steps of {} is no "
                    "place in an evenly spaced one (expected an array like 0-15 or 0-30:2)",
                    *id, *count, first, step));
  }
  sources.push_back({"SLURM_ARRAY_TASK_ID", {(*id - first) / step, *count}});
}

/// srun sets what PMI libraries look for as well: the same numbers are no second source.
bool is_srun_again(const std::vector<ShareSource>& sources, const ShareSource& source) {
  for (const ShareSource& other : sources) {
    if (source.name.rfind("PMI_", 0) == 0 && other.name.rfind("SLURM_PROCID", 0) == 0 &&
        source.share == other.share) {
      return true;
    }
  }
  return false;
}

}  // namespace

void add_shard_option(CommandParser& command, std::string& shard) {
  command
      .add_option(
          "--shard", shard,
          "do the I-th of N parts of the plan, I from 0, cut by work; attnscope merge makes\n"
          "the whole of them. auto: I and N from a Slurm array, srun, torchrun or mpirun.\n"
          "{shard} in the output's name becomes I-of-N, and is needed where N is above 1\n"
          "(docs/cluster.md)")
      .type_name("I/N|auto")
      .group("Several machines");
}

void add_alone_option(CommandParser& command, bool& alone) {
  command
      .add_flag("--alone", alone,
                "the output is this process's alone, though mpirun, srun or torchrun started\n"
                "several: each has another one")
      .group("Several machines");
}

void refuse_tasks(const std::string& shard, bool alone, const std::string& out,
                  std::string_view advice, std::string_view option) {
  if (!shard.empty() || alone || out.empty()) return;
  const auto launch = find_launch(environment_variable);
  if (!launch) return;
  throw usage_error(
      fmt::format("{} {}: all tasks would write it: this is {}; {}; --alone is for outputs of "
                  "their own",
                  option, one_line(out), launch->text(), advice));
}

std::vector<ShareSource> share_sources(const Environment& variable) {
  std::vector<ShareSource> sources;
  add_array_task(sources, variable);
  add_rank(sources, variable, "SLURM_PROCID", "SLURM_NTASKS");
  add_rank(sources, variable, "RANK", "WORLD_SIZE");
  add_rank(sources, variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  add_rank(sources, variable, "PMI_RANK", "PMI_SIZE");
  return sources;
}

ShareSource choose_share_source(const std::vector<ShareSource>& sources) {
  if (sources.empty()) {
    throw usage_error(
        "--shard auto: nothing tells which part this process is (looked for "
        "SLURM_ARRAY_TASK_ID, SLURM_PROCID, RANK, OMPI_COMM_WORLD_RANK and PMI_RANK with their "
        "counts); give --shard I/N");
  }
  std::vector<ShareSource> several;
  for (const ShareSource& source : sources) {
    if (source.share.count > 1 && !is_srun_again(several, source)) several.push_back(source);
  }
  if (several.empty()) return sources.front();
  if (several.size() == 1) return several.front();
  std::string names;
  for (const ShareSource& source : several) {
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : " and ", source.name, source.share.text());
  }
  throw usage_error("--shard auto: " + names + " both tell which part this is; give --shard I/N");
}

std::optional<PlanShare> chosen_share(const std::string& shard, const Console& console) {
  if (shard.empty()) return std::nullopt;
  if (shard != "auto") return PlanShare::parse(shard, "--shard");
  const ShareSource source = choose_share_source(
      share_sources([](const char* name) -> const char* { return std::getenv(name); }));
  console.say(fmt::format("--shard auto: part {}, from {}", source.share.text(), source.name));
  return source.share;
}

std::string name_of_share(const std::string& out, const std::optional<PlanShare>& share) {
  size_t at = out.find(kMark);
  if (!share) {
    if (at == std::string::npos) return out;
    throw usage_error("-o " + one_line(out) + ": {shard} in a name is for --shard");
  }
  const std::string place = fmt::format("{:0{}}-of-{}", share->index,
                                        std::to_string(share->count - 1).size(), share->count);
  if (at == std::string::npos && share->count > 1 && !out.empty()) {
    throw usage_error(
        fmt::format("-o {}: all {} parts would have this name; {{shard}} in it becomes {} (-o {})",
                    one_line(out), share->count, place, one_line(with_mark(out))));
  }
  std::string name = out;
  for (; at != std::string::npos; at = name.find(kMark)) name.replace(at, kMark.size(), place);
  return name;
}

std::string plan_text(const std::string& command, OrderedJson options, const std::string& capture) {
  options.erase("backend");
  const OrderedJson plan{{"attnscope_version", version()},
                         {"command", command},
                         {"options", std::move(options)},
                         {"capture", capture}};
  return plan.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void refuse_shard(const std::string& shard, const std::string& reason) {
  if (!shard.empty()) throw usage_error("--shard " + one_line(shard) + ": " + reason);
}

}  // namespace attnscope
