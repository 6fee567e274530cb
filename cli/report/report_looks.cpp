#include "cli/report/report_looks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/common/shell_words.h"
#include "cli/report/report_facts.h"
#include "cli/report/standing_heads.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/products/row_collector.h"
#include "core/products/tokens/sequence_parts.h"
#include "web/figure/head/figure_refusal.h"

namespace attnscope {
namespace {

CellMap large_map(StreamRun& run, const MeasuredHead& head, int64_t sample) {
  HeadTask task = head.task();
  const int64_t queries = task.problem->num_queries(), keys = task.problem->num_keys();
  CellMap map = CellMap::of(queries, keys, kLookCells);
  if (sample > 0 && sample < queries) {
    const std::vector<int64_t> rows = sampled_rows(queries, sample);
    task.row_list = rows;
    RowCellSink sink({&map, 1});
    run.run({&task, 1}, sink);
  } else {
    ReductionJob job{task, {}};
    job.request.block = map.block();
    CellSink sink({&map, 1});
    run.reduce({&job, 1}, sink);
  }
  return map;
}

std::vector<float> row_of(StreamRun& run, const MeasuredHead& head, int64_t query) {
  HeadTask task = head.task();
  task.row_list = {&query, 1};
  RowCollector rows({&task, 1}, SoftmaxDomain::all, run.workers(), run.budget());
  run.run({&task, 1}, rows);
  return rows.take_mean(0);
}

OrderedJson map_facts(const std::string& name, const CellMap& map, const CodedMap& coded,
                      const AttentionProblem& problem) {
  return {{"data", name},
          {"rows", map.rows()},
          {"cols", map.cols()},
          {"low", coded.low},
          {"high", coded.high},
          {"query_marks", marks_of(problem.query_tokens(), map.height)},
          {"key_marks", marks_of(problem.key_tokens(), map.width)}};
}

std::string best_text(const MeasuredHead& head) {
  const bool by_entropy = is_normalised(head.call->problem->score());
  const bool video = !head.call->problem->query_tokens().video_range().empty();
  return fmt::format(
      "its best token: of the {}queries that were computed the one whose row has the {}",
      video ? "video " : "", by_entropy ? "smallest entropy" : "largest weight");
}

/// The film of the best query's row over the keys' grid.
void add_film(ReportLook& look, StreamRun& run, const MeasuredHead& head,
              const std::vector<int64_t>& pictures) {
  const AttentionProblem& problem = *head.call->problem;
  const TokenGrid& keys = problem.key_tokens();
  look.facts["film"] = nullptr;
  if (!head.best_query || !keys.has_grid()) return;
  const std::vector<float> row = row_of(run, head, *head.best_query);
  const IndexRange video = keys.video_range();
  const CodedMap coded = coded_map(
      std::span(row).subspan(static_cast<size_t>(video.begin), static_cast<size_t>(video.size())));
  const std::string name = fmt::format("film-{}", look.head);
  OrderedJson film{{"data", name},
                   {"grid", {keys.frames(), keys.height(), keys.width()}},
                   {"query", nullptr},
                   {"token", *head.best_query},
                   {"text", best_text(head)},
                   {"low", coded.low},
                   {"high", coded.high},
                   {"frames", OrderedJson::array()}};
  const auto place = problem.query_tokens().coord(*head.best_query);
  if (place && problem.same_tokens()) film["query"] = {place->t, place->y, place->x};
  for (int64_t t = 0; t < keys.frames(); ++t) {
    const int64_t picture =
        t < std::ssize(pictures) ? pictures[static_cast<size_t>(t)] : int64_t{-1};
    film["frames"].push_back(picture < 0 ? OrderedJson() : OrderedJson(picture));
  }
  look.facts["film"] = std::move(film);
  look.data.push_back({name, coded.codes});
}

/// Its bytes in the page, of a map that was made.
int64_t bytes_of(const HeldFigure& figure) {
  int64_t bytes =
      std::ssize(figure.figure.facts.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  for (const FigureBytes& each : figure.arrays.data) {
    bytes += encoded_bytes(std::ssize(each.bytes)) + 128;
  }
  return bytes;
}

/// The part of a head. Where the page's engine makes finer blocks of the whole map at once, its
/// base is as small as can be.
FigureCut cut_of(const MeasuredHead& head, const FigureChoice& choice) {
  constexpr int64_t kSoonComputed = int64_t{1} << 28;
  constexpr int64_t kSmallBase = 64;
  const AttentionProblem& problem = *head.call->problem;
  FigureCut cut = make_cut(choice, problem, head.record.name.batch, head.record.name.head);
  if (cut.rows.count * cut.keys.count * problem.head_dim() <= kSoonComputed) {
    cut.choice.base_texels = kSmallBase;
  }
  return cut;
}

/// Of queries, keys, norms and base, without what all figures share.
int64_t expected_bytes(const FigureCut& cut) {
  return whole_page_bytes(cut) - figure_frame_bytes();
}

}  // namespace

OrderedJson marks_of(const TokenGrid& tokens, int64_t tokens_a_cell) {
  OrderedJson marks = OrderedJson::array();
  const auto cell = static_cast<double>(tokens_a_cell);
  for (const SequencePart& part : sequence_frames(tokens)) {
    marks.push_back({part.name, static_cast<double>(part.tokens.begin) / cell,
                     static_cast<double>(part.tokens.end) / cell});
  }
  return marks;
}

ReportLook look_at(StreamRun& run, const MeasuredHead& head, size_t place, int64_t sample,
                   const std::vector<int64_t>& pictures, const std::string& input_name) {
  const AttentionProblem& problem = *head.call->problem;
  ReportLook look;
  look.head = place;
  look.facts["head"] = place;
  const CellMap map = large_map(run, head, sample);
  const CodedMap coded = coded_map(map.values);
  const std::string name = fmt::format("look-{}", place);
  look.facts["map"] = map_facts(name, map, coded, problem);
  look.data.push_back({name, coded.codes});
  add_film(look, run, head, pictures);
  look.facts["text"] = head_sentences({&head.record, head.own_way}, problem.num_keys());
  look.facts["command"] = fmt::format("attnscope query {}{} --index {}", shell_word(input_name),
                                      head_options(head.record.name), head.best_query.value_or(0));
  look.facts["figure"] = nullptr;
  return look;
}

std::unique_ptr<HeldFigure> make_held_figure(StreamRun& run, const MeasuredHead& head, size_t place,
                                             int64_t most, bool may_stride,
                                             const std::string& input_name,
                                             const std::string& title) {
  const HeadName& name = head.record.name;
  const AttentionProblem& problem = *head.call->problem;
  FigureChoice choice;
  FigureCut cut = cut_of(head, choice);
  const int64_t longest = std::max(problem.num_queries(), problem.num_keys());
  while (expected_bytes(cut) > most) {
    if (!may_stride || choice.stride >= longest) return nullptr;
    ++choice.stride;
    cut = cut_of(head, choice);
  }
  require_page(cut);
  auto figure = std::make_unique<HeldFigure>();
  figure->held = run.budget().reserve(figure_map_bytes(cut), "a figure of the report");
  figure->stride = choice.stride;
  figure->map = make_figure_map(
      cut, [&](std::span<const HeadTask> tasks, TileSink& sink) { run.run(tasks, sink); });
  figure->arrays = figure_arrays(figure->map);
  const std::string stride = choice.stride > 1 ? fmt::format(" --stride {}", choice.stride) : "";
  FigureSource source{*head.call, title,
                      fmt::format("attnscope figure {}{}{} -o map.html", shell_word(input_name),
                                  head_options(name), stride),
                      run.backend().name_for(problem)};
  const bool in_cut = head.best_query && *head.best_query % choice.stride == 0;
  if (in_cut) source.start.query = head.best_query;
  figure->figure = {static_cast<int64_t>(place), figure_facts(source, cut, figure->map),
                    figure->arrays.data};
  figure->bytes = bytes_of(*figure);
  if (figure->bytes > most) return nullptr;
  return figure;
}

}  // namespace attnscope
