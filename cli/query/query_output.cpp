#include "cli/query/query_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "cli/common/console.h"
#include "cli/query/query_summary.h"
#include "core/base/error.h"
#include "io/files/export_file.h"
#include "io/results/film_files.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

/// What --text-token asked for; null without it.
Json text_token_json(const QueryOptions& o) {
  return o.text_tokens.empty() ? Json() : Json(o.text_tokens);
}

}  // namespace

std::string describe_output(const QueryVolumes& volumes) {
  std::string text = "domain " + volumes.domain;
  if (volumes.weighting != "none") text += ", weighting " + volumes.weighting;
  if (volumes.mean != "none") text += ", mean over " + volumes.mean;
  return text;
}

VolumeWriter writer_for(const QueryRequest& o, const ShownSequence& shown, size_t count) {
  const TokenGrid& tokens = shown.tokens;
  const std::string extension = std::filesystem::path(o.out).extension().string();
  const std::vector<std::pair<std::string_view, VolumeWriter>> writers{{".npy", write_volumes_npy},
                                                                       {".h5", write_volumes_hdf5},
                                                                       {".csv", write_volumes_csv},
                                                                       {".png", write_volumes_png},
                                                                       {".gif", write_volumes_gif}};
  const auto found = std::find_if(writers.begin(), writers.end(),
                                  [&](const auto& entry) { return entry.first == extension; });
  if (found == writers.end()) {
    throw usage_error(
        fmt::format("-o {}: the name must end in .npy, .h5, .csv, .png or .gif (got \"{}\")", o.out,
                    extension));
  }
  const bool volume_needed = extension == ".npy" || extension == ".png" || extension == ".gif";
  const bool text = !tokens.text_range().empty();
  if (!tokens.has_grid() && (volume_needed || (extension == ".h5" && !text))) {
    throw usage_error(
        tokens.video_range().empty()
            ? fmt::format("-o {}: the {} are text and make no volume; write a .csv or .h5", o.out,
                          shown.reverse ? "queries" : "keys")
            : fmt::format("-o {}: the {} have no token grid to make a volume of; give --grid "
                          "TxHxW, or write a .csv",
                          o.out, shown.reverse ? "queries" : "keys"));
  }
  if (extension == ".png") {
    check_picture_size(o.out, {tokens.frames(), tokens.height(), tokens.width()},
                       static_cast<int64_t>(count));
  }
  if (extension == ".gif") check_animation_size(o.out, static_cast<int64_t>(count));
  ExportFile::check_target(o.out, {.force = o.force, .inputs = shown.inputs});
  return found->second;
}

void print_summaries(const QueryRequest& o, const QueryVolumes& volumes,
                     const nlohmann::ordered_json& heads) {
  if (!o.json) {
    fmt::print("{}, {}\n", one_line(volumes.query_text), describe_output(volumes));
    return print_row_summaries(heads, volumes.reverse);
  }
  print_json({{"format", "attnscope-query/1"},
              {"query", volumes.query_text},
              {"text_token", text_token_json(o.queries)},
              {"reverse", volumes.reverse},
              {"domain", o.domain},
              {"weighting", volumes.weighting},
              {"mean", volumes.mean},
              {"heads", heads}},
             true);
}

}  // namespace attnscope
