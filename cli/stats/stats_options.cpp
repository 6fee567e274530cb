#include "cli/stats/stats_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/file_ending.h"

namespace attnscope {
namespace {

std::vector<std::string> array_names() {
  std::vector<std::string> names;
  for (const HeadArrayInfo& array : head_arrays()) names.emplace_back(array.name);
  return names;
}

void check_extras(const StatsOptions& o) {
  for (const std::string& extra : o.extras) {
    if (!parse_head_array(extra)) throw unknown_name("--with", extra, array_names());
  }
  if (!o.extras.empty() && o.out.empty() && !o.json) {
    throw usage_error("--with: arrays are written to a .json or .h5; give -o FILE or --json");
  }
}

/// The classes that --class-threshold moves.
struct ThresholdName {
  std::string_view name;
  double ClassThresholds::*value;
};
constexpr ThresholdName kThresholds[] = {{"sink", &ClassThresholds::sink},
                                         {"text", &ClassThresholds::text},
                                         {"temporal", &ClassThresholds::temporal},
                                         {"spatial", &ClassThresholds::spatial},
                                         {"local", &ClassThresholds::local}};

/// "sink=0.1": each with its value where nothing is told.
std::vector<std::string> threshold_words() {
  std::vector<std::string> words;
  for (const ThresholdName& each : kThresholds) {
    words.push_back(fmt::format("{}={}", each.name, ClassThresholds{}.*each.value));
  }
  return words;
}

/// The arrays that --with names, each once, in its order.
std::vector<HeadArray> arrays_of(const std::vector<std::string>& extras) {
  std::vector<HeadArray> arrays;
  for (const std::string& extra : extras) {
    const HeadArray array = parse_head_array(extra).value();
    if (std::find(arrays.begin(), arrays.end(), array) == arrays.end()) arrays.push_back(array);
  }
  return arrays;
}

}  // namespace

StatsChoice StatsOptions::choice() const {
  return {arrays_of(extras), sample, band, exact, parse_thresholds(*this)};
}

void check_stats_options(const StatsOptions& o) {
  check_extras(o);
  HeadOrder::parse(o.sort);
  if (o.top && o.sort.empty()) throw usage_error("--top: of which number? (--sort NAME)");
  if (extension_of(o) == ".csv" && !o.extras.empty()) {
    throw usage_error("--with: a .csv holds no arrays; write a .json or .h5");
  }
  if (!o.sort.empty() && extension_of(o) == ".h5" && !o.json) {
    throw usage_error("--sort: an .h5 has its heads in the capture's order (-o X.json or X.csv)");
  }
  if (o.nearest && extension_of(o) == ".h5") {
    throw usage_error("--nearest: an .h5 has numbers of heads alone (-o X.json or X.csv)");
  }
  if (o.top && extension_of(o) == ".h5") {
    throw usage_error("--top: an .h5 has all heads of its calls (-o X.json or X.csv)");
  }
  if (o.exact && o.sample > 0) {
    throw usage_error(fmt::format(
        "--exact: counts keys on all rows, and --sample {} takes that many (give one of "
        "the two)",
        o.sample));
  }
  if (o.shard.empty()) return;
  if (o.nearest) refuse_shard(o.shard, "--nearest is of all heads");
  if (o.top) refuse_shard(o.shard, "--top is of all heads");
  if (extension_of(o) == ".csv") {
    refuse_shard(o.shard,
                 "a .csv does not say which part it is: write a .json or .h5, of which "
                 "attnscope merge makes a .csv");
  }
  if (!o.sort.empty() && (!o.out.empty() || o.json)) {
    refuse_shard(o.shard, "--sort is of all heads: give it to attnscope merge");
  }
}

ClassThresholds parse_thresholds(const StatsOptions& o) {
  ClassThresholds thresholds;
  for (const std::string& text : o.thresholds) {
    const size_t equals = text.find('=');
    const auto* const found = std::find_if(
        std::begin(kThresholds), std::end(kThresholds),
        [&](const ThresholdName& each) { return each.name == text.substr(0, equals); });
    const char* begin = text.c_str() + std::min(equals, text.size() - 1) + 1;
    double value = 0;
    const auto [end, error] = std::from_chars(begin, text.c_str() + text.size(), value);
    if (equals == std::string::npos || found == std::end(kThresholds) || error != std::errc() ||
        end != text.c_str() + text.size() || !(value >= 0 && value <= 1)) {
      throw usage_error(fmt::format(
          "--class-threshold {}: expected NAME=X with sink, text, temporal, spatial or local and a "
          "number from 0 to 1",
          text));
    }
    thresholds.*found->value = value;
  }
  return thresholds;
}

std::string extension_of(const StatsOptions& o) {
  if (!o.out.empty()) require_ending(o.out, {".json", ".csv", ".h5"});
  return std::filesystem::path(o.out).extension().string();
}

void add_stats_options(CommandParser& command, StatsOptions& o) {
  add_capture_options(command, o.capture);
  command
      .add_option("-o", o.out, "write .json, .csv or .h5; without it a table is printed; -: as CSV")
      .type_name("FILE");
  take_standard_output(command, o);
  command
      .add_option("--sample", o.sample,
                  "estimate from N evenly spread rows of each head, with standard errors")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command.add_flag("--exact", o.exact,
                   "count keys (keys_for_50, ...) on all rows, not on 256 spread ones");
  command.add_flag("--curve", o.curve,
                   "how many keys hold 50, 80, 90, 95 and 99 % of a row's mass, as a table");
  command
      .add_option("--nearest", o.nearest,
                  "for each head the N heads of its step and branch whose maps look most alike")
      .in_range(1, 1000)
      .type_name("N");
  command
      .add_option("--band", o.band,
                  "reach in y and x of temporal_score (default: so that all frames within it\n"
                  "hold as many keys as one frame)")
      .in_range(0, int64_t{1} << 31)
      .type_name("N");
  command
      .add_option("--class-threshold", o.thresholds,
                  "from where a head belongs to a class: {} (repeatable)")
      .words(threshold_words())
      .type_name("NAME=X")
      .one_value_each();
  command.add_option("--with", o.extras, "arrays as well: {}")
      .one_of(array_names())
      .type_name("LIST")
      .delimiter(',')
      .one_value_each();
  command
      .add_option("--sort", o.sort,
                  "heads by this number, the largest first; NAME:asc: the smallest")
      .words(metric_names())
      .type_name("NAME");
  command.add_option("--top", o.top, "of the sorted heads the first N alone")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  add_head_run_options(command, o);
  command.add_flag("--resume", o.resume, "go on with what an interrupted run left of FILE");
  add_output_options(
      command, o,
      {.dry_run = "print what it would take; write nothing", .quiet = "no narration, no progress"});
}

}  // namespace attnscope
