#include "io/plan_parts/merged_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/problem/head_scales.h"
#include "io/files/json_types.h"
#include "io/metrics/run_table.h"
#include "io/plan_parts/part_set.h"

namespace attnscope {
namespace {

OrderedJson options_of(const PartFile& part) {
  OrderedJson options = OrderedJson::parse(part.stored().options, nullptr, false);
  if (options.is_object()) return options;
  throw file_error(part.path().string(), "options", "is no JSON object");
}

PartFacts facts_of(const PartFile& part) {
  const bool empty = part.part().plan.units.empty();
  return {part.path(), part.part(), empty ? "" : text_option(options_of(part), "backend")};
}

void require_same_program(const PartFile& part, const PartFile& first) {
  const std::pair<std::string, std::string> texts[] = {
      {part.stored().version, first.stored().version},
      {part.stored().product, first.stored().product},
      {part.stored().capture, first.stored().capture}};
  for (const auto& [here, there] : texts) {
    if (here == there) continue;
    throw file_error(part.path().string(), "",
                     fmt::format("is of {}, {} is of {}", one_line(here),
                                 one_line(first.path().string()), one_line(there)));
  }
}

ExportProduct product_of(const PartFile& part) {
  for (const ExportProduct product : exported_maps()) {
    if (export_product_name(product) == part.stored().product) return product;
  }
  if (part.stored().product == export_product_name(ExportProduct::stats)) {
    return ExportProduct::stats;
  }
  throw file_error(part.path().string(), "product",
                   "is none that this program knows: " + one_line(part.stored().product));
}

Encoding encoding_of(ExportProduct product, const std::string& dtype) {
  if (dtype == "u8") return Encoding::u8_log2;
  if (dtype != "f16") return Encoding::f32;
  return product == ExportProduct::logits ? Encoding::f16 : Encoding::f16_scaled;
}

/// What an export that keeps some weights of each row was told to keep.
void take_kept(ExportSpec& spec, const OrderedJson& options, const PartFile& part) {
  if (!spec.keeps_part_of_rows()) return;
  const auto kept = options.find(part.stored().product);
  if (kept == options.end() || !kept->is_number() || kept->get<double>() <= 0) {
    throw file_error(part.path().string(), "options", "do not tell which weights are kept");
  }
  if (spec.product == ExportProduct::topk) {
    spec.detail = KeepLargest{kept->get<int64_t>()};
  } else {
    spec.detail = KeepAbove{kept->get<double>()};
  }
}

ExportSpec whole_spec(const MergedExport& whole, std::span<const PartFacts> facts) {
  const std::string backend = joined_backends(facts);
  const PartFile& first = *whole.parts.front();
  OrderedJson options = options_of(first);
  if (options.contains("backend") && !backend.empty()) options["backend"] = backend;
  ExportSpec spec;
  spec.product = product_of(first);
  spec.encoding = encoding_of(spec.product, text_option(options, "dtype"));
  spec.gzip = text_option(options, "compress") == "gzip";
  spec.capture_name = first.stored().capture;
  spec.capture_hash = hash_of_whole(facts);
  spec.options_json = options.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  spec.backend = backend;
  if (const auto align = options.find("align"); align != options.end()) {
    if (!align->is_number_integer() || align->get<int64_t>() < 0 ||
        align->get<int64_t>() > kMostAlign) {
      throw file_error(first.path().string(), "options", "tell no alignment of chunks");
    }
    spec.align = align->get<int64_t>();
  }
  take_kept(spec, options, first);
  if (spec.product == ExportProduct::pooled) {
    const auto block = options.find("block");
    const auto pyramid = options.find("pyramid");
    if (block == options.end() || !block->is_number_integer() || pyramid == options.end() ||
        !pyramid->is_boolean()) {
      throw file_error(first.path().string(), "options", "do not tell the blocks");
    }
    spec.detail = PoolBlocks{block->get<int64_t>(), pyramid->get<bool>()};
  }
  return spec;
}

/// The group as the part has it.
ExportGroup group_of_part(const PartFile& part, size_t g) {
  ExportGroup group;
  group.name = part.groups()[g];
  group.branch = part.calls()[g].name.branch;
  group.recorded_call = std::make_shared<const CallDescription>(part.calls()[g]);
  group.batch = part.batch_of(g);
  group.heads = part.heads_of(g);
  group.grid.heads = std::ssize(group.batch) * std::ssize(group.heads);
  if (const PartFile::Blocks& blocks = part.blocks_of(g); !blocks.levels.empty()) {
    // As many rows and keys as the blocks may have: the last ones' size is nowhere told, nor
    // needed.
    const PartFile::Level& finest = blocks.levels.front();
    group.grid.rows = finest.rows * finest.block;
    group.grid.cols = finest.cols * finest.block;
    group.row_range = {blocks.first_row, blocks.first_row + group.grid.rows};
    group.keys = {blocks.first_key, blocks.first_key + group.grid.cols};
  }
  if (part.stored().groups.empty() && part.stored().shards.empty()) return group;
  group.recorded = [&part, g] { return part.describe(g); };
  const PartFile::Extents& extents = part.extents_of(g);
  group.has_lse = extents.has_lse;
  group.grid.rows = extents.rows;
  group.grid.cols = extents.keys;
  if (!part.stored().groups.empty()) group.grid = part.stored().groups[g].grid;
  return group;
}

/// Adds the sinks that a part has of more heads of the group.
void join_sinks(GroupDescription& all, const GroupDescription& more, size_t heads,
                size_t more_heads) {
  if (all.sinks.empty()) return;
  const size_t rows = all.sinks_by_query ? all.query.indices.size() : 1;
  const size_t items = all.sinks.size() / (heads * rows);
  std::vector<float> sinks;
  for (size_t item = 0; item < items; ++item) {
    const auto add = [&](const std::vector<float>& of, size_t count) {
      const auto own = std::span(of).subspan(item * count, count);
      sinks.insert(sinks.end(), own.begin(), own.end());
    };
    add(all.sinks, heads * rows);
    add(more.sinks, more_heads * rows);
  }
  all.sinks = std::move(sinks);
}

/// The scales of a group's heads, and of those that a part has more of it.
std::vector<double> joined_scales(const std::vector<double>& some, size_t heads,
                                  const std::vector<double>& more, size_t more_heads) {
  std::vector<double> each;
  for (size_t i = 0; i < heads; ++i) each.push_back(some[some.size() == 1 ? 0 : i]);
  for (size_t i = 0; i < more_heads; ++i) each.push_back(more[more.size() == 1 ? 0 : i]);
  return HeadScales(std::move(each)).each();
}

/// Adds the heads of `group`, which a later part has, to those that are there of it.
void join_heads(ExportGroup& there, ExportGroup group) {
  const size_t heads = there.heads.size(), more = group.heads.size();
  auto call = std::make_shared<CallDescription>(*there.recorded_call);
  call->scale = joined_scales(call->scale, heads, group.recorded_call->scale, more);
  there.recorded_call = std::move(call);
  if (there.recorded) {
    there.recorded = [before = std::move(there.recorded), behind = std::move(group.recorded), heads,
                      more] {
      GroupDescription all = before();
      join_sinks(all, behind(), heads, more);
      return all;
    };
  }
  there.heads.insert(there.heads.end(), group.heads.begin(), group.heads.end());
  there.grid.heads = std::ssize(there.batch) * std::ssize(there.heads);
}

void add_piece(MergedExport& whole, const PartFile& part, size_t g,
               std::map<std::string, size_t>& places) {
  ExportGroup group = group_of_part(part, g);
  const auto [found, is_new] = places.try_emplace(group.name, whole.layout.groups.size());
  const auto heads = std::ssize(group.heads);
  if (is_new) {
    whole.layout.groups.push_back(std::move(group));
    whole.pieces.push_back({{&part, g, 0, heads}});
    return;
  }
  ExportGroup& there = whole.layout.groups[found->second];
  const ChunkGrid &a = there.grid, &b = group.grid;
  const bool fits = there.batch == group.batch && there.has_lse == group.has_lse &&
                    a.rows == b.rows && a.cols == b.cols && a.chunk_rows == b.chunk_rows &&
                    a.chunk_cols == b.chunk_cols && a.element_bytes == b.element_bytes &&
                    there.recorded_call->sinks == group.recorded_call->sinks &&
                    there.heads.back() < group.heads.front();
  if (!fits) {
    throw file_error(part.path().string(), group.name,
                     "does not fit what the parts before it have of the group");
  }
  whole.pieces[found->second].push_back({&part, g, std::ssize(there.heads), heads});
  join_heads(there, std::move(group));
}

}  // namespace

std::vector<std::filesystem::path> MergedExport::paths() const {
  std::vector<std::filesystem::path> paths;
  for (const auto& part : parts) {
    paths.push_back(part->path());
    const std::filesystem::path folder = part->path().parent_path() / part->stored().shard_folder;
    for (const Shard& shard : part->stored().shards) paths.push_back(folder / shard.file);
  }
  return paths;
}

MergedExport open_merged_export(const std::vector<std::filesystem::path>& paths, bool mixed) {
  MergedExport whole;
  whole.inputs = std::make_shared<InputSet>();
  std::vector<std::unique_ptr<const PartFile>> opened;
  std::vector<PartFacts> facts;
  for (const std::filesystem::path& path : paths) {
    opened.push_back(std::make_unique<const PartFile>(path, *whole.inputs));
    facts.push_back(facts_of(*opened.back()));
  }
  for (const size_t i : order_of_parts(facts, mixed)) whole.parts.push_back(std::move(opened[i]));
  for (const auto& part : whole.parts) require_same_program(*part, *whole.parts.front());
  whole.inputs->begin_use();
  whole.spec = whole_spec(whole, facts);
  std::map<std::string, size_t> places;
  for (const auto& part : whole.parts) {
    for (size_t g = 0; g < part->groups().size(); ++g) add_piece(whole, *part, g, places);
  }
  ExportLayout& layout = whole.layout;
  layout.reduced = whole.spec.keeps_part_of_rows();
  layout.request.outputs = whole.spec.product == ExportProduct::output;
  layout.request.quantity =
      whole.spec.product == ExportProduct::logits ? Quantity::logits : Quantity::weights;
  layout.request.encoding = whole.spec.encoding;
  for (const auto& part : whole.parts) {
    if (layout.entries_name.empty() && !part->stored().groups.empty()) {
      layout.entries_name = part->stored().groups.front().entries_name;
    }
  }
  if (whole.spec.is_sharded()) {
    layout.entries_name = whole.spec.product == ExportProduct::logits ? "logits" : "weights";
    const bool all = std::all_of(whole.parts.begin(), whole.parts.end(), [](const auto& part) {
      return part->groups().size() == part->stored().shards.size();
    });
    // Parts of an older version do not say what their groups are.
    if (!all) layout.groups.clear();
  }
  layout.request.entries = layout.has_entries();
  return whole;
}

}  // namespace attnscope
