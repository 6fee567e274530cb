#include "io/plan_parts/merge_stats.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/heads/head_record.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/plan_parts/merged_export.h"
#include "io/plan_parts/part_set.h"
#include "io/results/head_json.h"
#include "io/results/output_provenance.h"
#include "io/results/stats_files.h"
#include "io/results/stats_hdf5.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// All heads, and what is said of all of them.
struct WholeStats {
  OrderedJson about;
  std::vector<HeadRecord> records;
  std::optional<MergedExport> groups;  ///< of .h5 parts
};

void add_record(WholeStats& whole, const OrderedJson& json, const fs::path& path) {
  std::optional<HeadRecord> record = parse_head_json(json);
  if (!record) throw file_error(path.string(), "heads", "has one that is no record of a head");
  whole.records.push_back(std::move(*record));
}

std::string text_of(const OrderedJson& json, const char* name, const fs::path& path) {
  const auto found = json.find(name);
  if (found != json.end() && found->is_string()) return found->get<std::string>();
  throw file_error(path.string(), name,
                   "is missing (expected a part of stats, which --shard wrote)");
}

PartFacts json_facts(const OrderedJson& json, const fs::path& path) {
  const std::string file = path.string();
  PartFacts facts{path,
                  parse_export_part(text_of(json, "shard", path), text_of(json, "plan_hash", path),
                                    json.contains("part") ? json["part"].dump() : "", file),
                  ""};
  if (!json["options"].is_object()) throw file_error(file, "options", "is no JSON object");
  if (!facts.part.plan.units.empty()) facts.backend = text_of(json["options"], "backend", path);
  return facts;
}

WholeStats whole_of_json(const std::vector<fs::path>& paths, bool mixed) {
  std::vector<OrderedJson> parts;
  std::vector<PartFacts> facts;
  for (const fs::path& path : paths) {
    parts.push_back(read_table_json(path, "stats"));
    facts.push_back(json_facts(parts.back(), path));
  }
  WholeStats whole;
  for (const size_t i : order_of_parts(facts, mixed)) {
    const OrderedJson heads = parts[i].value("heads", OrderedJson());
    if (!heads.is_array()) throw file_error(paths[i].string(), "heads", "is no list");
    for (const OrderedJson& head : heads) add_record(whole, head, paths[i]);
  }
  OrderedJson options = parts.front()["options"];
  const std::string backend = joined_backends(facts);
  if (!backend.empty()) options["backend"] = backend;
  whole.about = {{"capture", text_of(parts.front(), "capture", paths.front())},
                 {"capture_hash", hash_of_whole(facts)},
                 {"options", options}};
  return whole;
}

WholeStats whole_of_hdf5(const std::vector<fs::path>& paths, bool mixed) {
  WholeStats whole;
  whole.groups = open_merged_export(paths, mixed);
  const ExportSpec& spec = whole.groups->spec;
  if (spec.product != ExportProduct::stats) {
    throw file_error(paths.front().string(), "product", "is not stats");
  }
  for (const auto& part : whole.groups->parts) {
    for (const std::string& record : part->records()) {
      add_record(whole, OrderedJson::parse(record, nullptr, false), part->path());
    }
  }
  whole.about = {{"capture", spec.capture_name},
                 {"capture_hash", spec.capture_hash},
                 {"options", OrderedJson::parse(spec.options_json)}};
  return whole;
}

void write_whole(const WholeStats& whole, const std::string& extension, const fs::path& path) {
  if (extension == ".json") return write_stats_json(whole.about, whole.records, path);
  if (extension == ".csv") return write_stats_csv(whole.records, path);
  write_stats_hdf5(whole.groups->spec, whole.groups->layout, whole.records, path);
}

/// ".json", ".csv" or ".h5", which needs parts of its own kind.
std::string checked_extension(const fs::path& out, bool hdf5) {
  require_ending(out, {".json", ".csv", ".h5"});
  std::string extension = out.extension().string();
  if (extension == ".h5" && !hdf5) {
    throw usage_error("-o " + out.string() +
                      ": parts that are .json do not say all that an .h5 has (write them as .h5, "
                      "or the whole as .json or .csv)");
  }
  return extension;
}

}  // namespace

bool is_stats_json(const fs::path& path) {
  if (path.extension() != ".json") return false;
  try {
    read_table_json(path, "stats");
    return true;
  } catch (const Error&) {
    return false;
  }
}

MergeResult merge_stats(const std::vector<fs::path>& parts, const fs::path& out,
                        const TableMerge& how, OutputFileOptions options) {
  const bool hdf5 = parts.front().extension() != ".json";
  const std::string extension = checked_extension(out, hdf5);
  const HeadField* const by = find_head_field(how.sort);
  if (!how.sort.empty() && by == nullptr) {
    throw usage_error("--sort " + one_line(how.sort) + ": there is no such number of heads");
  }
  options.inputs = parts;
  OutputFile::check_target(out, options);
  WholeStats whole = hdf5 ? whole_of_hdf5(parts, how.mixed) : whole_of_json(parts, how.mixed);
  if (how.dry_run) return {};
  sort_records(whole.records, by);
  OutputFile file(out, options);
  write_whole(whole, extension, file.new_part_path());
  MergeResult result;
  result.bytes_written = static_cast<int64_t>(fs::file_size(file.new_part_path()));
  file.open_new_part(result.bytes_written);
  file.commit_new_part();
  result.warnings = file.warnings();
  return result;
}

}  // namespace attnscope
