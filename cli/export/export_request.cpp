#include "cli/export/export_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "cli/common/left_out_names.h"
#include "cli/run/run_backend.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/selection.h"
#include "core/problem/signed_weights.h"
#include "io/capture/capture_guard.h"
#include "io/capture/facts/mask_fact.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// Side of pooled blocks unless --block says otherwise.
constexpr int64_t kDefaultBlock = 64;

ExportProduct parse_product(const ExportOptions& o) {
  if (o.product.empty()) {
    return o.topk > 0        ? ExportProduct::topk
           : o.threshold > 0 ? ExportProduct::threshold
           : o.block > 0     ? ExportProduct::pooled
           : o.queries.any() ? ExportProduct::rows
                             : ExportProduct::weights;
  }
  const std::span<const ExportProduct> known = exported_maps();
  return *std::find_if(known.begin(), known.end(), [&](ExportProduct product) {
    return export_product_name(product) == o.product;
  });
}

Encoding parse_encoding(ExportProduct product, const std::string& dtype) {
  const bool weights = product == ExportProduct::weights || product == ExportProduct::rows;
  if (dtype.empty()) return weights ? Encoding::f16_scaled : Encoding::f32;
  if (dtype == "f32") return Encoding::f32;
  if (dtype == "f16" && weights) return Encoding::f16_scaled;
  if (dtype == "f16" && product == ExportProduct::logits) return Encoding::f16;
  if (dtype == "u8" && weights) return Encoding::u8_log2;
  const std::string_view valid = weights                            ? "f16, f32 or u8"
                                 : product == ExportProduct::logits ? "f32 or f16"
                                                                    : "f32";
  const std::string_view what =
      product == ExportProduct::output ? "outputs" : export_product_name(product);
  throw usage_error(fmt::format("--dtype {}: {} are stored as {}", dtype, what, valid));
}

void check_output_fits(const ExportOptions& o, const AttentionProblem& problem) {
  if (!problem.v()) {
    throw usage_error(problem.name() +
                      ": --product output needs v, which is not there (expected a capture with "
                      "values, or --v FILE[:KEY] beside --q and --k)");
  }
  if (!o.cols.empty()) {
    throw usage_error("--cols does not apply to --product output: an output is over all keys");
  }
}

void check_products_fit(const ExportOptions& o, ExportProduct product,
                        const AttentionProblem& problem) {
  const ScoreFunction score = problem.score();
  if (product != ExportProduct::logits && product != ExportProduct::output) {
    require_one_sign(problem, "--product " + std::string(export_product_name(product)));
  }
  if (product == ExportProduct::output) check_output_fits(o, problem);
  if (product == ExportProduct::rows && !o.queries.any()) {
    throw usage_error(
        "--product rows needs --queries LIST, --query T,Y,X, --at PIXEL or --index N");
  }
  if (product != ExportProduct::rows && o.queries.any()) {
    throw usage_error(
        fmt::format("--query, --at, --index and --queries choose rows: they need --product "
                    "rows (got {})",
                    export_product_name(product)));
  }
  if (product == ExportProduct::rows && !o.rows.empty()) {
    throw usage_error("--rows crops a range of rows; with --product rows give --queries instead");
  }
  if ((product == ExportProduct::topk) != (o.topk > 0)) {
    throw usage_error(o.topk > 0 ? fmt::format("--topk {}: belongs to --product topk (got {})",
                                               o.topk, export_product_name(product))
                                 : std::string("--product topk needs --topk N"));
  }
  if ((product == ExportProduct::threshold) != (o.threshold > 0)) {
    throw usage_error(o.threshold > 0
                          ? fmt::format("--threshold {}: belongs to --product threshold (got {})",
                                        o.threshold, export_product_name(product))
                          : std::string("--product threshold needs --threshold X"));
  }
  const bool pooled = product == ExportProduct::pooled;
  if (!pooled && (o.block > 0 || o.pyramid)) {
    throw usage_error(fmt::format("{} belongs to --product pooled (got {})",
                                  o.pyramid ? "--pyramid" : "--block",
                                  export_product_name(product)));
  }
  if (pooled && o.verify_all) {
    throw usage_error("--verify-all: nothing of an interrupted pooled export is kept");
  }
  const bool maps = product == ExportProduct::weights || product == ExportProduct::logits ||
                    product == ExportProduct::rows;
  if (o.compress != "none" && !maps) {
    throw usage_error(fmt::format("--compress {}: {} are not compressed", o.compress,
                                  export_product_name(product)));
  }
  if (product == ExportProduct::lse && !o.cols.empty()) {
    throw usage_error("--cols does not apply to --product lse: an LSE is over all keys");
  }
  if (product == ExportProduct::lse && !is_normalised(score)) {
    throw usage_error("--product lse: sigmoid scores have no LSE");
  }
  if (product == ExportProduct::logits && is_linear(score)) {
    throw usage_error("--product logits: linear scores have no logits");
  }
}

/// The alignment of chunks in bytes; 0 where none is asked for.
int64_t parse_align(const ExportOptions& o) {
  if (o.align.empty()) return 0;
  constexpr int64_t kLeast = 4096;
  const int64_t bytes = parse_size(o.align, "--align", -1);
  if (bytes >= kLeast && bytes <= kMostAlign && (bytes & (bytes - 1)) == 0) return bytes;
  throw usage_error("--align " + one_line(o.align) +
                    ": expected a power of two from 4KiB to 64MiB, such as 1MiB");
}

/// Only what decides the content, so that equal files have equal options. Files are not named:
/// what they hold goes into the capture's hash.
OrderedJson content_options(const ExportOptions& o, ExportProduct product, Encoding encoding,
                            const std::string& backend, const std::string& score) {
  OrderedJson json;
  json["product"] = export_product_name(product);
  json["dtype"] = encoding == Encoding::f32 ? "f32" : encoding == Encoding::u8_log2 ? "u8" : "f16";
  json.update(selection_json(o.selection));
  if (!o.rows.empty()) json["rows"] = o.rows;
  if (!o.cols.empty()) json["cols"] = o.cols;
  if (product == ExportProduct::rows) {
    json["query"] = o.queries.coords;
    json["index"] = o.queries.indices;
    json["queries"] = o.queries.list;
  }
  if (product == ExportProduct::topk) json["topk"] = o.topk;
  if (product == ExportProduct::threshold) json["threshold"] = o.threshold;
  if (product == ExportProduct::pooled) {
    json["block"] = o.block > 0 ? o.block : kDefaultBlock;
    json["pyramid"] = o.pyramid;
  }
  if (o.compress != "none") json["compress"] = o.compress;
  if (!o.align.empty()) json["align"] = parse_align(o);
  json["score"] = score;
  // The capture's hash covers the files that these name, and the options that tell the tensors.
  const FactOverrides& texts = o.capture.texts;
  for (const auto& [name, value] :
       {std::pair("scale", texts.scale), std::pair("mask", texts.mask),
        std::pair("layout", texts.layout), std::pair("grid", texts.grid),
        std::pair("text", texts.text), std::pair("preset", texts.preset),
        std::pair("rope", texts.rope)}) {
    if (value) json[name] = *value;
  }
  if (texts.mask && !is_mask_word(*texts.mask)) json["mask"] = "tensor";
  add_left_out(json, o.capture);
  json["backend"] = backend;
  return json;
}

}  // namespace

ExportSpec make_export_spec(const ExportOptions& o, const Capture& capture,
                            const TileBackend& backend, const std::optional<PlanShare>& share) {
  ExportSpec spec;
  spec.product = parse_product(o);
  spec.encoding = parse_encoding(spec.product, o.dtype);
  const std::vector<SelectedCall> calls = capture.select(parse_selection(o.selection));
  require_equal_heads(calls, "a group of an export", true);
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    check_products_fit(o, spec.product, problem);
    ExportCall call;
    call.selected = selected;
    call.keys = parse_crop(o.cols.empty() ? ":" : o.cols, "--cols", problem.num_keys());
    if (spec.product == ExportProduct::rows) {
      call.row_list = resolve_queries(o.queries, problem);
    } else {
      call.rows = parse_crop(o.rows.empty() ? ":" : o.rows, "--rows", problem.num_queries());
    }
    spec.calls.push_back(std::move(call));
  }
  spec.capture_name = capture.path().filename().string();
  spec.backend = recorded_backend(backend, spec.selection());
  const OrderedJson options =
      content_options(o, spec.product, spec.encoding, spec.backend, score_text(spec.selection()));
  spec.options_json = options.dump(-1, ' ', false, Json::error_handler_t::replace);
  spec.gzip = o.compress == "gzip";
  spec.align = parse_align(o);
  if (spec.product == ExportProduct::topk) spec.detail = KeepLargest{o.topk};
  if (spec.product == ExportProduct::threshold) spec.detail = KeepAbove{o.threshold};
  if (spec.product == ExportProduct::pooled) {
    spec.detail = PoolBlocks{o.block > 0 ? o.block : kDefaultBlock, o.pyramid};
  }
  if (share) {
    // A shard file holds a group, and stays as it is when parts become the whole.
    spec.share = share_selection(spec.selection(), *share,
                                 spec.is_sharded() ? ShareUnit::calls : ShareUnit::heads,
                                 plan_text("export", options, spec.capture_name));
  }
  return spec;
}

ExportWriteOptions write_options_of(const ExportOptions& o, const Capture& capture) {
  return {.force = o.force,
          .sync = o.sync,
          .resume = o.resume,
          .verify_all = o.verify_all,
          .inputs = guarded_inputs(capture),
          .sources = capture.inputs()};
}

}  // namespace attnscope
