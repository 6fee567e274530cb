#include "cli/plot/plot_output.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "cli/common/left_out_names.h"
#include "cli/common/picture_options.h"
#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "io/files/output_file.h"
#include "io/files/staged_file.h"
#include "io/pictures/chart/chart_picture.h"
#include "io/pictures/picture_page.h"
#include "io/results/csv_line.h"

namespace attnscope {
namespace {

std::string numbers_csv(const PlotNumbers& numbers) {
  std::string text = csv_line(numbers.columns);
  for (const OrderedJson& row : numbers.rows) {
    std::vector<std::string> fields;
    for (const OrderedJson& value : row) fields.push_back(csv_value(value));
    text += csv_line(fields);
  }
  return text;
}

OrderedJson plot_json(const PlotRequest& o, const Plot& plot, const ChartPicture& picture) {
  OrderedJson json{{"format", "attnscope-plot/1"},
                   {"file", o.out},
                   {"what", o.what},
                   {"heads", plot.heads},
                   {"width", picture.width()},
                   {"height", picture.height()},
                   {"data", o.data.empty() ? OrderedJson() : OrderedJson(o.data)},
                   {"notes", plot.notes},
                   {"columns", plot.numbers.columns},
                   {"rows", plot.numbers.rows}};
  add_left_out(json, o.capture);
  return json;
}

/// Gives a picture and its numbers their names. Both are durable before, so that little can go
/// wrong between the two; where it does, a picture that replaced none goes too, and else the
/// message says that it stands beside older numbers.
void commit_both(StagedFile& picture, StagedFile& data) {
  picture.sync();
  data.sync();
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(picture.path(), ignored);
  picture.commit();
  try {
    data.commit();
  } catch (const Error& error) {
    if (is_new) {
      std::filesystem::remove(picture.path(), ignored);
      throw;
    }
    throw Error(error.code(), fmt::format("{} ({} is replaced, its numbers are not)", error.what(),
                                          one_line(picture.path().string())));
  }
}

}  // namespace

void check_plot_targets(const PlotRequest& o, std::span<const std::filesystem::path> inputs) {
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  if (o.data.empty()) return;
  OutputFile::check_target(o.data, {.force = o.force, .inputs = inputs});
}

void write_plot(const PlotRequest& o, const Plot& plot, const Console& console) {
  const PictureStyle look = style_of(o.page, o.out);
  const ChartPicture picture(plot.chart, look);
  StagedFile file(o.out, o.force);
  put_picture(picture.draw(), look, plot.chart.text.title, file);
  if (o.data.empty()) {
    file.commit();
  } else {
    const std::string text = numbers_csv(plot.numbers);
    StagedFile data(o.data, o.force);
    data.append(std::as_bytes(std::span(text)));
    commit_both(file, data);
  }
  for (const std::string& note : plot.notes) console.say("note: " + note);
  console.say(fmt::format(
      "wrote {} ({}, {}, {}){}", o.out, o.what, heads_text(static_cast<int64_t>(plot.heads)),
      page_text(picture.width(), picture.height(), look), o.data.empty() ? "" : " and " + o.data));
  if (o.json) print_json(plot_json(o, plot, picture), true);
}

}  // namespace attnscope
