#include "cli/render/render_job.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/common/head_table.h"
#include "cli/render/render_report.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/problem/score.h"
#include "core/problem/signed_weights.h"
#include "core/products/softmax_domain.h"
#include "io/capture/unknown_state.h"
#include "io/pictures/joined_parts.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

HeadName name_of(const RenderHead& h) { return head_name(h.call->id, h.batch, h.head); }

HeadTable table_of(const RenderJob& job) {
  std::vector<HeadName> names;
  for (const RenderHead& head : job.heads) names.push_back(name_of(head));
  return table_of_heads(names);
}

}  // namespace

std::vector<RenderHead> selected_heads(const RenderRequest& request, const Capture& capture) {
  std::vector<RenderHead> heads;
  for (const SelectedCall& selected : capture.select(parse_selection(request.selection))) {
    require_one_sign(*selected.call->problem, "a picture of weights");
    for (const int64_t batch : selected.batch) {
      for (const int64_t head : selected.heads) heads.push_back({selected.call, batch, head});
    }
  }
  return heads;
}

OrderedJson drawn_json(const std::vector<RenderHead>& heads) {
  OrderedJson drawn = OrderedJson::array();
  for (const RenderHead& head : heads) drawn.push_back(name_json(name_of(head)));
  return drawn;
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

std::string head_label(const RenderHead& h) { return head_label(name_of(h)); }

std::string domain_text(const RenderJob& job, const std::string& domain) {
  std::vector<std::string> masks;
  for (const RenderHead& head : job.heads) masks.push_back(head.call->problem->mask().describe());
  return domain_text(job.heads.front().call->problem->score_words(), domain, masks);
}

std::string page_title(const RenderJob& job) {
  const std::string& model = job.heads.front().call->model;
  return model.empty() ? job.capture.path().filename().string() : model;
}

std::string state_text(const RenderJob& job) {
  const bool unknown = std::any_of(job.heads.begin(), job.heads.end(), [](const RenderHead& head) {
    return is_state_unknown(*head.call);
  });
  return unknown ? kUnknownState : "";
}

std::string capture_text(const RenderJob& job) {
  const bool named = !job.heads.front().call->model.empty();
  return joined_parts({named ? job.capture.path().filename().string() : "", state_text(job)});
}

TableNames head_names(const RenderJob& job) { return table_of(job).names; }

std::vector<size_t> head_places(const RenderJob& job) { return table_of(job).places; }

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

PictureStyle picture_look(const RenderJob& job) {
  return style_of(job.request.page, job.request.out);
}

MemoryReservation plan_page(RenderJob& job, PageSize page) {
  job.page = planned_picture(page, picture_look(job));
  return reserve_page(job.run.budget(), page);
}

void write_picture(RenderJob& job, const Canvas& canvas) {
  job.capture.require_unchanged();
  write_picture(canvas, picture_look(job), page_title(job), job.request.out, job.request.force);
  report_picture(job, canvas.width(), canvas.height());
}

void report_picture(RenderJob& job, int width, int height) {
  report_written(
      job.request, job.console,
      {picture_name(job.kind), job.heads.size(), width, height, {}, job.facts, job.drawn});
}

}  // namespace attnscope
