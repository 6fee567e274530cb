#include "io/results/output_provenance.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/export_marks.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

OrderedJson read_hdf5(const std::filesystem::path& path, std::string_view product) {
  const ExportManifest stored = read_manifest(path);
  if (stored.product != product) {
    throw file_error(
        path.string(), "product",
        fmt::format("expected {}, got {} (--force replaces it)", product, stored.product));
  }
  const PosixFile file(path, PosixFile::Mode::read_only);
  require_sound_structure(stored, file);
  if (!is_marked_complete(stored, file)) {
    throw file_error(path.string(), "",
                     "has the name of a complete file, but is not marked so (--force replaces it)");
  }
  OrderedJson options = OrderedJson::parse(stored.options, nullptr, false);
  if (options.is_discarded()) {
    throw file_error(path.string(), "options", "is no JSON: the file is damaged");
  }
  return run_identity(stored.capture_hash, options, stored.part ? &stored.part->plan : nullptr);
}

}  // namespace

OrderedJson part_identity(const PlanPart& part) {
  return {{"shard", part.share.text()}, {"plan_hash", part.plan_hash}};
}

OrderedJson run_identity(const std::string& capture_hash, const OrderedJson& options,
                         const PlanPart* part) {
  OrderedJson identity{{"capture_hash", capture_hash}, {"options", options}};
  if (part != nullptr) identity.update(part_identity(*part));
  return identity;
}

OrderedJson read_table_json(const std::filesystem::path& path, std::string_view product) {
  OrderedJson json = OrderedJson::parse(read_file_text(path), nullptr, false);
  if (json.is_object() && json.contains("format") &&
      json["format"] == fmt::format("attnscope-{}/1", product) && json.contains("capture_hash") &&
      json.contains("options")) {
    return json;
  }
  throw file_error(path.string(), "",
                   fmt::format("exists and is no {} that --resume could go on with "
                               "(--force replaces it)",
                               product));
}

OrderedJson output_provenance(const std::filesystem::path& path, std::string_view product) {
  const std::string extension = path.extension().string();
  if (product != "pooled" && extension == ".csv") {
    throw file_error(path.string(), "",
                     "exists, and a .csv does not say what it was made of (--force replaces it)");
  }
  const bool hdf5 = extension == ".h5" || product == "pooled";
  const OrderedJson found = hdf5 ? read_hdf5(path, product) : read_table_json(path, product);
  OrderedJson provenance{{"capture_hash", found["capture_hash"]}, {"options", found["options"]}};
  // The numbers are the same with it and without it.
  OrderedJson& options = provenance["options"];
  if (product == "stats" && options.is_object()) options.erase("curve");
  for (const char* name : {"shard", "plan_hash"}) {
    if (found.contains(name)) provenance[name] = found[name];
  }
  return provenance;
}

void expect_same_run(const OrderedJson& found, const OrderedJson& expected,
                     const std::filesystem::path& path) {
  const auto text = [](const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  if (found.contains("shard") && !expected.contains("shard")) {
    throw file_error(path.string(), "shard",
                     fmt::format("is of another run: part {} of its plan (--force gives it up)",
                                 text(found["shard"])));
  }
  for (const auto& [key, value] : expected.items()) {
    const OrderedJson got = found.contains(key) ? found[key] : OrderedJson();
    if (got == value) continue;
    if (value.is_object() && got.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) {
        const OrderedJson inner_got = got.contains(inner) ? got[inner] : OrderedJson();
        if (inner_got == inner_value) continue;
        throw file_error(path.string(), key,
                         fmt::format("is of another run: {}: expected {}, got {} (--force gives "
                                     "it up)",
                                     inner, text(inner_value), text(inner_got)));
      }
    }
    throw file_error(path.string(), key,
                     fmt::format("is of another run: expected {}, got {} (--force gives it up)",
                                 text(value), text(got)));
  }
}

}  // namespace attnscope
