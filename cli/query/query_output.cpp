#include "cli/query/query_output.h"

#include <fmt/core.h>

#include <limits>

#include "cli/common/left_out_names.h"
#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/results/volume_files.h"

namespace attnscope {
namespace {

/// The text tokens that --text-token asked for; null without it.
OrderedJson text_token_json(const QueryOptions& o) {
  return o.text_tokens.empty() ? OrderedJson() : OrderedJson(o.text_tokens);
}

/// The tokens that a volume is of; null where those of its members differ.
OrderedJson tokens_json(const QueryVolumes& volumes, size_t volume) {
  const std::vector<int64_t>& tokens = volumes.chosen_of(volumes.volumes[volume]);
  return tokens.empty() ? OrderedJson() : OrderedJson(tokens);
}

/// "domain video, weighting value, mean over heads"
std::string describe_output(const QueryVolumes& volumes) {
  std::string text = "domain " + volumes.domain;
  if (volumes.weighting != "none") text += ", weighting " + volumes.weighting;
  if (volumes.mean != "none") text += ", mean over " + volumes.mean;
  return text;
}

}  // namespace

std::optional<PlannedPicture> VolumeOutput::planned() const {
  return page ? std::optional(planned_picture(*page, film.look)) : std::nullopt;
}

MemoryReservation VolumeOutput::reserve(MemoryBudget& budget) const {
  return page ? reserve_page(budget, *page) : MemoryReservation();
}

VolumeOutput choose_volume_output(const HeadRunOptions& o, const PictureOptions& page,
                                  const ShownSequence& shown, const QueryVolumes& volumes) {
  constexpr VolumeFormat kFormats[] = {VolumeFormat::npy, VolumeFormat::hdf5, VolumeFormat::csv,
                                       VolumeFormat::png, VolumeFormat::svg,  VolumeFormat::pdf,
                                       VolumeFormat::gif, VolumeFormat::mp4};
  const TokenGrid& tokens = shown.tokens;
  const VolumeFormat format = volume_format_of(o.out, kFormats);
  const bool text = !tokens.text_range().empty();
  // A video without a grid has a place in the .csv alone.
  const bool has_no_video = text && tokens.video_range().empty();
  const bool suits = format == VolumeFormat::csv ||
                     (format == VolumeFormat::hdf5 && (has_no_video || tokens.has_map()));
  if (!tokens.has_grid() && !suits) {
    throw usage_error(
        tokens.video_range().empty()
            ? fmt::format("-o {}: the {} are text and make no volume; write a .csv or .h5", o.out,
                          shown.reverse ? "queries" : "keys")
            : fmt::format("-o {}: the {} have no token grid to make a volume of; give --grid "
                          "TxHxW, or write a .csv",
                          o.out, shown.reverse ? "queries" : "keys"));
  }
  VolumeOutput output{format, {}, std::nullopt};
  if (is_picture(format)) {
    output.film = film_style_of(page, o.out, tokens.frames());
    output.film.unit = film_unit(volumes);
    output.page = check_film(format, o.out, volumes, output.film);
  }
  OutputFile::check_target(o.out, {.force = o.force, .inputs = shown.inputs});
  return output;
}

std::optional<VolumeOutput> choose_output(const QueryRequest& o, const ShownSequence& shown,
                                          const QueryVolumes& volumes) {
  if (o.track && !shown.tokens.has_grid()) {
    throw usage_error(fmt::format("--track: the {} have no token grid (--grid TxHxW)",
                                  shown.reverse ? "queries" : "keys"));
  }
  if (o.out.empty()) return std::nullopt;
  VolumeOutput output = choose_volume_output(o, o.page, shown, volumes);
  if (o.track && (output.format == VolumeFormat::npy || output.format == VolumeFormat::hdf5)) {
    throw usage_error(
        fmt::format("--track -o {}: a track is a table (.csv), drawn into a film (.png, .pdf, "
                    ".gif), or printed",
                    o.out));
  }
  return output;
}

std::vector<QuerySummary> set_all_values(const QueryRequest& o, const TokenGrid& shown,
                                         FoundValues found, QueryVolumes& volumes) {
  std::vector<QuerySummary> heads;
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    QueryVolume& volume = volumes.volumes[i];
    if (o.json || (o.out.empty() && !o.csv)) {
      const double lse =
          found.lse.empty() ? std::numeric_limits<double>::quiet_NaN() : found.lse[i];
      heads.push_back(
          {{volume.step, volume.layer, volume.branch, volume.kind, volume.batch, volume.head,
            volume.place},
           summarise_values(volumes, volume, shown, found.values[i], lse, o.top_count())});
      if (!o.queries.text_tokens.empty()) heads.back().json["text_tokens"] = volume.chosen_text;
    }
    if (!o.out.empty() || o.csv) set_values(volume, shown, std::move(found.values[i]));
  }
  return heads;
}

void print_volumes_csv(const QueryVolumes& volumes) {
  put_volumes_csv(volumes, [](std::string_view text) { fmt::print("{}", text); });
}

void say_written(const QueryRequest& o, const QueryVolumes& volumes, const Console& console,
                 const std::string& origin) {
  const size_t count = volumes.volumes.size();
  console.say(fmt::format("wrote {} ({} {}{}{}, {})", o.out, count,
                          volumes.mean == "none" ? "head" : "volume", count == 1 ? "" : "s", origin,
                          describe_output(volumes)));
}

NumberOrder order_of(const QueryRequest& o) {
  NumberOrder order =
      NumberOrder::parse(o.sort, query_numbers(o.segment.empty() ? "video" : o.segment));
  if (order.name == "weight" && o.top_count() == 0) {
    throw usage_error("--sort weight: --top 0 lists no weight");
  }
  if (order.name == "lse" && (o.reverse || !o.mean.empty())) {
    throw usage_error(fmt::format("--sort lse: {} have no row sum",
                                  o.reverse ? "columns (--reverse)" : "means (--mean)"));
  }
  return order;
}

void check_order(const QueryRequest& o, size_t rows) {
  if (rows < 2 || order_of(o).name != "lse") return;
  throw usage_error(fmt::format("--sort lse: means over {} tokens have no row sum", rows));
}

void print_summaries(const QueryRequest& o, const QueryVolumes& volumes,
                     std::vector<QuerySummary> heads) {
  const bool alike = volumes.chosen_alike();
  for (size_t i = 0; i < heads.size() && !alike; ++i) {
    heads[i].json["tokens"] = tokens_json(volumes, i);
  }
  const NumberOrder order = order_of(o);
  sort_summaries(order, volumes.shown, heads);
  const auto json = [&] {
    OrderedJson summary{{"format", "attnscope-query/1"},
                        {"query", volumes.query_text},
                        {"text_token", text_token_json(o.queries)},
                        {"tokens", alike ? tokens_json(volumes, 0) : OrderedJson()},
                        {"reverse", volumes.reverse},
                        {"domain", o.domain},
                        {"weighting", volumes.weighting},
                        {"mean", volumes.mean}};
    add_left_out(summary, o.capture);
    OrderedJson& rows = summary["heads"] = OrderedJson::array();
    for (QuerySummary& head : heads) rows.push_back(std::move(head.json));
    return summary;
  };
  print_result(o.json, !o.out.empty(), json, [&] {
    if (o.csv) return print_volumes_csv(volumes);
    fmt::print("{}, {}\n", one_line(volumes.query_text), describe_output(volumes));
    if (heads.size() == 1) return print_summary(heads.front(), volumes.reverse, volumes.shown);
    print_summary_table(heads, {.reverse = volumes.reverse,
                                .shown = volumes.shown,
                                .sort = order.name,
                                .lists_top = o.top.has_value()});
  });
}

}  // namespace attnscope
