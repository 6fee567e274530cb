#include "io/plan_parts/merge_tables.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/heads/head_record.h"
#include "io/files/file_ending.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/metrics/stats_hdf5.h"
#include "io/plan_parts/merged_export.h"
#include "io/plan_parts/part_set.h"
#include "io/results/head_json.h"
#include "io/results/head_tables.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

OrderedJson read_json(const fs::path& path) {
  return OrderedJson::parse(read_file_text(path), nullptr, false);
}

bool is_of_product(const OrderedJson& json, std::string_view product) {
  return json.is_object() &&
         json.value("format", OrderedJson()) == fmt::format("attnscope-{}/1", product);
}

/// A part as its file has it.
class JsonPart {
 public:
  JsonPart(const fs::path& path, std::string_view product)
      : path_(path), product_(product), json_(read_json(path)) {
    if (!is_of_product(json_, product)) fail("", "is not there");
    if (!of("options").is_object()) fail("options", "is no JSON object");
    if (!of("heads").is_array()) fail("heads", "is no list");
  }

  /// The value of this name; throws where there is none.
  const OrderedJson& of(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) fail(name, "is missing");
    return *found;
  }
  std::string text(const char* name) const { return text_of(json_, name); }

  PartFacts facts() const {
    const std::string shard = text("shard"), plan = text("plan_hash");
    const auto part = json_.find("part");
    PartFacts facts{
        path_,
        parse_export_part(shard, plan, part == json_.end() ? "" : part->dump(), path_.string()),
        ""};
    if (!facts.part.plan.units.empty()) facts.backend = text_of(of("options"), "backend");
    return facts;
  }

 private:
  std::string text_of(const OrderedJson& json, const char* name) const {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) fail(name, "is missing");
    return found->get<std::string>();
  }
  [[noreturn]] void fail(const char* name, const char* what) const {
    throw file_error(
        path_.string(), name,
        fmt::format("{} (expected a part of {}, which --shard wrote)", what, product_));
  }

  fs::path path_;
  std::string product_;
  OrderedJson json_;
};

/// Gives the heads of .json parts to `take`, in the order of the plan. Returns what the whole says
/// of its origin.
OrderedJson join_json_parts(
    const std::vector<fs::path>& paths, std::string_view product, bool mixed,
    const std::function<void(const OrderedJson& head, const fs::path& path)>& take) {
  std::vector<JsonPart> parts;
  std::vector<PartFacts> facts;
  for (const fs::path& path : paths) facts.push_back(parts.emplace_back(path, product).facts());
  for (const size_t i : order_of_parts(facts, mixed)) {
    for (const OrderedJson& head : parts[i].of("heads")) take(head, paths[i]);
  }
  OrderedJson options = parts.front().of("options");
  const std::string backend = joined_backends(facts);
  if (!backend.empty()) options["backend"] = backend;
  return {{"capture", parts.front().text("capture")},
          {"capture_hash", hash_of_whole(facts)},
          {"options", options}};
}

/// Numbers of all heads, and what is said of all of them.
struct WholeStats {
  OrderedJson about;
  std::vector<HeadRecord> records;
  std::optional<MergedExport> groups;  ///< of .h5 parts

  void add(const OrderedJson& json, const fs::path& path) {
    std::optional<HeadRecord> record = parse_head_json(json);
    if (!record) throw file_error(path.string(), "heads", "has one that is no record of a head");
    records.push_back(std::move(*record));
  }
};

WholeStats stats_of_json(const std::vector<fs::path>& paths, bool mixed) {
  WholeStats whole;
  whole.about = join_json_parts(
      paths, "stats", mixed,
      [&](const OrderedJson& head, const fs::path& path) { whole.add(head, path); });
  return whole;
}

WholeStats stats_of_hdf5(const std::vector<fs::path>& paths, bool mixed) {
  WholeStats whole;
  whole.groups = open_merged_export(paths, mixed);
  const ExportSpec& spec = whole.groups->spec;
  if (spec.product != ExportProduct::stats) {
    throw file_error(paths.front().string(), "product", "is not stats");
  }
  for (const auto& part : whole.groups->parts) {
    for (const std::string& record : part->records()) {
      whole.add(OrderedJson::parse(record, nullptr, false), part->path());
    }
  }
  whole.about = {{"capture", spec.capture_name},
                 {"capture_hash", spec.capture_hash},
                 {"options", OrderedJson::parse(spec.options_json)}};
  return whole;
}

WholeStats whole_stats(const std::vector<fs::path>& parts, const TableMerge& how) {
  const HeadOrder order = HeadOrder::parse(how.sort);
  const bool hdf5 = parts.front().extension() != ".json";
  WholeStats whole = hdf5 ? stats_of_hdf5(parts, how.mixed) : stats_of_json(parts, how.mixed);
  sort_records(whole.records, order);
  return whole;
}

/// The attnscope-mask/1 or attnscope-lab/1 of all heads.
OrderedJson whole_masks(const std::vector<fs::path>& parts, const TableMerge& how) {
  OrderedJson heads = OrderedJson::array();
  const std::string product = is_table_json(parts.front(), "lab") ? "lab" : "mask";
  const OrderedJson about = join_json_parts(
      parts, product, how.mixed, [&](const OrderedJson& head, const fs::path& path) {
        if (!head.is_object()) throw file_error(path.string(), "heads", "is no list of heads");
        heads.push_back(head);
      });
  OrderedJson whole{{"format", "attnscope-" + product + "/1"}};
  whole.update(about);
  whole["heads"] = std::move(heads);
  return whole;
}

/// `write` creates the output at the path that it is given.
MergeResult write_whole(const fs::path& out, const OutputFileOptions& options,
                        const std::function<void(const fs::path&)>& write) {
  OutputFile file(out, options);
  write(file.new_part_path());
  MergeResult result;
  result.bytes_written = static_cast<int64_t>(fs::file_size(file.new_part_path()));
  file.open_new_part(result.bytes_written);
  file.commit_new_part();
  result.warnings = file.warnings();
  return result;
}

}  // namespace

bool is_table_json(const fs::path& path, std::string_view product) {
  std::error_code none;
  return path.extension() == ".json" && fs::is_regular_file(path, none) &&
         is_of_product(read_json(path), product);
}

JoinedTable join_stats(const std::vector<fs::path>& parts, const TableMerge& how) {
  const WholeStats whole = whole_stats(parts, how);
  return {stats_json(whole.about, whole.records), stats_csv(whole.records)};
}

JoinedTable join_masks(const std::vector<fs::path>& parts, const TableMerge& how) {
  OrderedJson whole = whole_masks(parts, how);
  std::string csv = mask_csv(whole["heads"]);
  return {std::move(whole), std::move(csv)};
}

MergeResult merge_stats(const std::vector<fs::path>& parts, const fs::path& out,
                        const TableMerge& how, OutputFileOptions options) {
  const bool hdf5 = parts.front().extension() != ".json";
  require_ending(out, {".json", ".csv", ".h5"});
  const std::string extension = out.extension().string();
  if (extension == ".h5" && !hdf5) {
    throw usage_error("-o " + out.string() +
                      ": parts that are .json do not say all that an .h5 has (write them as .h5, "
                      "or the whole as .json or .csv)");
  }
  HeadOrder::parse(how.sort);
  options.inputs = parts;
  OutputFile::check_target(out, options);
  const WholeStats whole = whole_stats(parts, how);
  if (how.dry_run) return {};
  return write_whole(out, options, [&](const fs::path& path) {
    if (extension != ".h5") {
      return write_stats_table(whole.about, whole.records, extension, path);
    }
    write_stats_hdf5(whole.groups->spec, whole.groups->layout, whole.records, path);
  });
}

MergeResult merge_masks(const std::vector<fs::path>& parts, const fs::path& out,
                        const TableMerge& how, OutputFileOptions options) {
  require_ending(out, {".json", ".csv"});
  options.inputs = parts;
  OutputFile::check_target(out, options);
  const OrderedJson whole = whole_masks(parts, how);
  if (how.dry_run) return {};
  return write_whole(out, options, [&](const fs::path& path) {
    write_mask_table(whole, out.extension().string(), path);
  });
}

}  // namespace attnscope
