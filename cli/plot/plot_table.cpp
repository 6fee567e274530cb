#include "cli/plot/plot_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/common/shell_words.h"
#include "cli/common/stored_input.h"
#include "core/base/error.h"
#include "io/metrics/compare_tables.h"
#include "io/metrics/read_table.h"
#include "io/metrics/table_heads.h"

namespace attnscope {

void refuse_computing_plot(const PlotRequest& o) {
  std::string given = capture_option_given(o.capture, o.run);
  if (o.sample > 0) given = "--sample";
  if (o.exact) given = "--exact";
  if (!given.empty()) {
    throw usage_error(fmt::format(
        "{}: {} is a table of numbers, of which nothing is computed (the option belongs to "
        "captures)",
        given, one_line(o.capture.capture)));
  }
  if (o.kind() == PlotKind::logits) {
    throw usage_error(
        fmt::format("--what logits: {} is a table of numbers of heads; give the capture, of which "
                    "they are computed",
                    one_line(o.capture.capture)));
  }
}

PlotHeads plot_heads_of_table(PlotRequest o, const Console& console, MemoryBudget& budget,
                              MemoryReservation& held) {
  refuse_computing_plot(o);
  const NumberTable table = read_number_table(o.capture.capture, budget, held);
  settle_where_of_table(o.selection, table);
  const std::vector<HeadName> all = heads_of_table(table);
  std::vector<HeadName> names;
  for (const size_t i : select_stored(all, o.selection, console)) names.push_back(all[i]);
  PlotHeads heads;
  heads.is_table = true;
  heads.title = file_name(o.capture.capture);
  if (table.runs.size() > 1) heads.how = fmt::format("mean of {} runs", table.runs.size());
  heads.records = mean_heads(table, names).records;
  sort_records(heads.records);
  heads.keys_seen = [](const HeadRecord&) { return std::optional<double>(); };
  return heads;
}

}  // namespace attnscope
