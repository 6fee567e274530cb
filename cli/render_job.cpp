#include "cli/render_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/console.h"
#include "core/error.h"
#include "core/score.h"
#include "core/selection.h"

namespace attnscope {
namespace {

/// The facts that tell table rows from each other; the layer is always named.
struct RowFact {
  const char* name;
  std::string (*text)(const RenderHead&);
};

constexpr std::array<RowFact, 5> kRowFacts{
    {{"step", [](const RenderHead& h) { return std::to_string(h.call->id.step); }},
     {"layer", [](const RenderHead& h) { return std::to_string(h.call->id.layer); }},
     {"branch", [](const RenderHead& h) { return branch_of(h.call->id, h.batch); }},
     {"kind", [](const RenderHead& h) { return std::string(kind_name(h.call->id.kind)); }},
     {"batch", [](const RenderHead& h) { return std::to_string(h.batch); }}}};

}  // namespace

std::vector<RenderHead> selected_heads(const RenderRequest& request, const Capture& capture) {
  std::vector<RenderHead> heads;
  size_t row = 0;
  for (const SelectedCall& selected : capture.select(parse_selection(request.selection))) {
    for (const int64_t batch : selected.batch) {
      for (const int64_t head : selected.heads) heads.push_back({selected.call, batch, head, row});
      ++row;
    }
  }
  return heads;
}

std::vector<HeadTask> map_tasks(const RenderJob& job) {
  const RenderRequest& o = job.request;
  std::vector<HeadTask> tasks;
  for (const RenderHead& head : job.heads) {
    const AttentionProblem& problem = *head.call->problem;
    IndexRange rows{0, problem.num_queries()};
    IndexRange keys{0, problem.num_keys()};
    if (!o.rows.empty()) rows = parse_crop(o.rows, "--rows", problem.num_queries());
    if (!o.cols.empty()) keys = parse_crop(o.cols, "--cols", problem.num_keys());
    tasks.push_back({&problem, head.batch, head.head, rows, {}, keys});
  }
  return tasks;
}

std::string head_label(const RenderHead& h) {
  return fmt::format("step {} layer {} {} {} batch {} head {}", h.call->id.step, h.call->id.layer,
                     branch_of(h.call->id, h.batch), kind_name(h.call->id.kind), h.batch, h.head);
}

std::string domain_text(const RenderJob& job, const std::string& domain) {
  const ScoreFunction score = job.heads.front().call->problem->score();
  if (score != ScoreFunction::softmax) return fmt::format("{} scores", score_name(score));
  return "softmax domain " + domain;
}

std::string page_title(const RenderJob& job) {
  const std::string& model = job.heads.front().call->model;
  return model.empty() ? job.capture.path().filename().string() : model;
}

std::string capture_text(const RenderJob& job) {
  return job.heads.front().call->model.empty() ? "" : job.capture.path().filename().string();
}

TableNames head_table(const RenderJob& job) {
  TableNames names;
  names.column_name = "head";
  std::vector<const RenderHead*> rows;
  std::set<int64_t> columns;
  for (const RenderHead& head : job.heads) {
    if (head.row == rows.size()) rows.push_back(&head);
    columns.insert(head.head);
  }
  for (const int64_t column : columns) names.columns.push_back(std::to_string(column));
  names.rows.resize(rows.size());
  for (const RowFact& fact : kRowFacts) {
    const bool differs = std::any_of(rows.begin(), rows.end(), [&](const RenderHead* row) {
      return fact.text(*row) != fact.text(*rows.front());
    });
    if (!differs && std::string_view(fact.name) != "layer") continue;
    names.row_name += (names.row_name.empty() ? "" : " ") + std::string(fact.name);
    for (size_t r = 0; r < rows.size(); ++r) {
      names.rows[r] += (names.rows[r].empty() ? "" : " ") + fact.text(*rows[r]);
    }
  }
  return names;
}

std::vector<size_t> head_places(const RenderJob& job, const TableNames& names) {
  std::vector<size_t> places;
  for (const RenderHead& head : job.heads) {
    const auto column =
        std::find(names.columns.begin(), names.columns.end(), std::to_string(head.head));
    places.push_back(head.row * names.columns.size() +
                     static_cast<size_t>(column - names.columns.begin()));
  }
  return places;
}

void require_one_head(const RenderJob& job, const std::string& instead) {
  if (job.heads.size() == 1) return;
  throw usage_error(
      fmt::format("--picture {} draws one head, and {} are selected: choose one with --layers and "
                  "--heads, or {}",
                  picture_name(job.kind), job.heads.size(), instead));
}

void require_alike_grids(const RenderJob& job) {
  const AttentionProblem& first = *job.heads.front().call->problem;
  for (const RenderHead& head : job.heads) {
    const AttentionProblem& other = *head.call->problem;
    const bool alike = other.query_tokens().grid_text() == first.query_tokens().grid_text() &&
                       other.query_tokens().text_text() == first.query_tokens().text_text() &&
                       other.key_tokens().grid_text() == first.key_tokens().grid_text() &&
                       other.key_tokens().text_text() == first.key_tokens().text_text();
    if (alike) continue;
    throw usage_error(fmt::format(
        "the selected calls have different token grids (keys {} with text {} in {}, {} with text "
        "{} in {}): select calls of one kind with --kind",
        first.key_tokens().grid_text(), first.key_tokens().text_text(), first.name(),
        other.key_tokens().grid_text(), other.key_tokens().text_text(), other.name()));
  }
}

void write_picture(RenderJob& job, const Canvas& canvas) {
  write_canvas_png(canvas, job.request.out, job.request.force);
  report_picture(job, canvas.width(), canvas.height());
}

void report_picture(RenderJob& job, int width, int height) {
  job.console.say(fmt::format("wrote {} ({}, {} head{}, {} × {} pixels)", job.request.out,
                              picture_name(job.kind), job.heads.size(),
                              job.heads.size() == 1 ? "" : "s", width, height));
  if (!job.request.json) return;
  nlohmann::ordered_json json{{"format", "attnscope-render/1"},
                              {"file", job.request.out},
                              {"picture", picture_name(job.kind)},
                              {"heads", job.heads.size()},
                              {"width", width},
                              {"height", height}};
  json.update(job.facts);
  print_json(json, true);
}

}  // namespace attnscope
