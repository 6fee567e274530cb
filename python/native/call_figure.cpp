#include "python/native/call_figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cli/common/head_table.h"
#include "core/problem/head_name.h"
#include "web/figure/head/figure_document.h"
#include "web/figure/head/figure_refusal.h"

namespace attnscope {
namespace {

std::string title_of(const CallHandle& call, const HeadPlace& head) {
  if (!call.capture) {
    return fmt::format("{}, batch {} head {}", call.problem().name(), head.batch, head.head);
  }
  const std::string label = head_label(head_name(call.entry->id, head.batch, head.head));
  if (!call.entry->model.empty()) return call.entry->model + ", " + label;
  const std::filesystem::path& path = call.capture->path();
  const std::filesystem::path name = path.has_filename() ? path : path.parent_path();
  return name.filename().string() + ", " + label;
}

void put_base(FigureAnswer& answer, const FigurePyramid& pyramid) {
  answer.base_rows = pyramid.rows;
  answer.base_cols = pyramid.cols;
  const auto texels = static_cast<std::ptrdiff_t>(pyramid.codes.size() / 2);
  for (auto code = pyramid.codes.begin() + texels; code != pyramid.codes.end(); ++code) {
    answer.base.push_back(static_cast<float>(weight_of_code(*code)));
  }
}

FigureAnswer make_answer(const CallHandle& call, const HeadPlace& head,
                         const FigureQuestion& question, EngineRun& run) {
  const FigureCut cut = make_cut(question.choice, call.problem(), head.batch, head.head);
  require_page(cut);
  const MemoryReservation held =
      run.budget().reserve(figure_map_bytes(cut), "the page's queries and keys");
  const FigureMap map = make_figure_map(cut, [&](std::span<const HeadTask> tasks, TileSink& sink) {
    run.check_values(tasks);
    run.run(tasks, sink);
  });
  if (call.capture) call.capture->require_unchanged();
  FigureAnswer answer;
  answer.rows = cut.rows.count;
  answer.cols = cut.keys.count;
  const FigureSource source{*call.entry, title_of(call, head), question.command,
                            run.backend().name_for(call.problem())};
  answer.page.reserve(static_cast<size_t>(whole_page_bytes(cut)));
  write_figure(source, cut, map, [&](std::string_view text) { answer.page += text; });
  put_base(answer, map.pyramid);
  return answer;
}

}  // namespace

FigureAnswer figure_of(const CallHandle& call, const HeadPlace& head,
                       const FigureQuestion& question, EngineRun& run) {
  try {
    return make_answer(call, head, question, run);
  } catch (const FigureRefusal& refusal) {
    FigureAnswer answer;
    answer.refusal = one_line(refusal.what());
    return answer;
  }
}

}  // namespace attnscope
