#include "cli/plot/plot_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "io/files/file_ending.h"
#include "io/pictures/picture_page.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 5> kPlots{"recall", "entropy", "classes", "logits", "keys"};

}  // namespace

std::string_view plot_name(PlotKind kind) { return kPlots[static_cast<size_t>(kind)]; }

PlotKind PlotRequest::kind() const {
  return static_cast<PlotKind>(std::find(kPlots.begin(), kPlots.end(), what) - kPlots.begin());
}

StatsChoice PlotRequest::choice() const {
  StatsChoice choice;
  choice.sample = sample;
  choice.exact = exact;
  return choice;
}

void check_plot_options(const PlotRequest& o) {
  refuse_tasks("", o.alone, o.out, kOneProcess);
  require_ending(o.out, picture_endings());
  style_of(o.page, o.out);
  if (!o.data.empty()) require_ending(o.data, {".csv"}, "--data");
  if (o.exact && o.sample > 0) {
    throw usage_error(
        fmt::format("--exact: is about all rows, and --sample {} takes that many (give one of the "
                    "two)",
                    o.sample));
  }
  const PlotKind kind = o.kind();
  if (o.exact && kind != PlotKind::recall && kind != PlotKind::logits) {
    throw usage_error(fmt::format(
        "--exact: --what {} is of all rows anyway (only recall and logits are not)", o.what));
  }
}

void add_plot_options(CommandParser& command, PlotRequest& o) {
  add_capture_options(command, o.capture);
  command
      .add_option("--what", o.what,
                  "recall (mass that the largest weights of a row hold, over how few they are),\n"
                  "entropy (of each head, over depth), classes (of heads, over the steps),\n"
                  "logits (how often which occur), keys (the mass that each key gets)")
      .one_of({kPlots.begin(), kPlots.end()})
      .required()
      .type_name("NAME");
  command.add_option("-o", o.out, "the picture: .png, .svg or .pdf").required().type_name("FILE");
  command.add_option("--data", o.data, "the numbers drawn, as a .csv").type_name("FILE");
  command
      .add_option("--sample", o.sample,
                  "from N evenly spread rows of each head (default: all; of logits: 256)")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command.add_flag("--exact", o.exact, "recall, logits: count on all rows, not on 256 spread ones");
  add_picture_options(command, o.page, false, false);
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_alone_option(command, o.alone);
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute nothing",
                      .force = "replace files that exist",
                      .json = "print the numbers drawn as JSON"});
}

}  // namespace attnscope
