#include "cli/render/render_films.h"

#include <fmt/core.h>

#include <numeric>

#include "cli/common/cache_option.h"
#include "cli/common/pixel_query.h"
#include "cli/query/query_compute.h"
#include "cli/query/query_evictions.h"
#include "cli/query/query_tasks.h"
#include "core/base/error.h"
#include "core/products/film_time.h"
#include "core/products/map_reductions.h"
#include "core/products/query_mean.h"
#include "core/products/row_collector.h"
#include "core/products/text_columns.h"
#include "core/products/tokens/text_token.h"
#include "io/pictures/joined_parts.h"
#include "io/results/film_files.h"

namespace attnscope {
namespace {

/// Strips of many words are smaller than those of one query.
constexpr int kWordSide = 120;

QueryVolumes empty_volumes(const RenderJob& job, std::array<int64_t, 3> grid) {
  QueryVolumes volumes;
  volumes.grid = grid;
  volumes.model = job.heads.front().call->model;
  volumes.capture = job.capture.path().filename().string();
  volumes.state_text = state_text(job);
  volumes.shares = is_normalised(job.heads.front().call->problem->score());
  return volumes;
}

QueryVolume head_volume(const RenderHead& head) {
  QueryVolume volume;
  volume.step = head.call->id.step;
  volume.layer = head.call->id.layer;
  volume.batch = head.batch;
  volume.head = head.head;
  volume.branch = branch_of(head.call->id, head.batch);
  volume.kind = kind_name(head.call->id.kind);
  volume.place = head.call->id.place;
  volume.label = head_label(head);
  return volume;
}

std::array<int64_t, 3> grid_of(const RenderJob& job, const TokenGrid& tokens, const char* whose) {
  if (!tokens.has_grid()) {
    throw usage_error(
        fmt::format("--picture {}: the {} of {} have no token grid; give --grid TxHxW",
                    picture_name(job.kind), whose, job.heads.front().call->problem->name()));
  }
  return {tokens.frames(), tokens.height(), tokens.width()};
}

bool is_animation(const RenderJob& job) { return is_animation_name(job.request.out); }

/// The moments that a film shows, and the video under it.
struct FilmUnder {
  FilmTime time = FilmTime::latent;
  std::vector<FilmMoment> moments;
  std::array<int64_t, 3> shown{};  ///< the film's own grid: a frame a moment
};

FilmUnder film_under(const RenderJob& job, std::array<int64_t, 3> grid,
                     const VideoGeometry& geometry) {
  FilmUnder under;
  const bool of_video = static_cast<int64_t>(job.overlay.files.size()) > grid[0];
  if (!job.request.time.empty()) {
    under.time = *parse_film_time(job.request.time);
  } else if (is_animation(job) && of_video) {
    under.time = FilmTime::nearest;
  }
  under.moments = overlay_moments(job.overlay, grid[0], geometry, under.time);
  under.shown = {static_cast<int64_t>(under.moments.size()), grid[1], grid[2]};
  return under;
}

/// How the volumes lie over the video, where there is one: as the options tell, with what the
/// header says of it.
void choose_over(const FilmUnder& under, RenderJob& job, FilmStyle& style) {
  style.over_video = !job.overlay.empty();
  if (!style.over_video) return;
  style.over.mode = *parse_film_mode(job.request.over);
  style.over.opacity = job.request.opacity;
  job.facts["over"] = job.request.over;
  job.facts["time"] = film_time_name(under.time);
  std::string lines;
  if (style.over.mode == FilmMode::outline) {
    lines = "outlined: the cells that hold half of a strip's weight";
  } else if (style.over.mode == FilmMode::contour) {
    lines = "contours at 20, 40, 60 and 80 % of the scale";
  }
  style.about = joined_parts({lines, std::string(film_time_text(under.time))});
  if (under.time != FilmTime::latent) style.frame_name = "frame";
}

/// The volumes at the moments that the film shows.
QueryVolumes shown_volumes(const FilmUnder& under, const FilmStyle& style, QueryVolumes volumes) {
  if (!style.over_video || under.time == FilmTime::latent) return volumes;
  return volumes_at(std::move(volumes), under.moments);
}

PageSize check_page(const RenderJob& job, const QueryVolumes& volumes, const FilmStyle& style) {
  return is_animation(job) ? check_animation(job.request.out, volumes, style)
                           : check_filmstrip(job.request.out, volumes, style);
}

/// The page of the volumes before anything is computed; says where it is very high.
MemoryReservation plan_film(RenderJob& job, const QueryVolumes& volumes, const FilmStyle& style) {
  const PageSize page = check_page(job, volumes, style);
  tell_large_film(job.request.out, page, style, job.console);
  return plan_page(job, page);
}

void draw_film(RenderJob& job, const QueryVolumes& volumes, FilmStyle style) {
  style.colours = job.colours;
  job.capture.require_unchanged();
  if (is_animation(job)) {
    write_animation(volumes, style, job.request.out, job.request.force);
  } else {
    write_filmstrip(volumes, style, job.request.out, job.request.force);
  }
  const PageSize page = check_page(job, volumes, style);
  report_picture(job, page.width, page.height);
}

void check_text_domain(const RenderJob& job, SoftmaxDomain domain) {
  for (const RenderHead& head : job.heads) {
    const TokenGrid& keys = head.call->problem->key_tokens();
    if (domain == SoftmaxDomain::text && keys.text_range().empty()) {
      throw usage_error("--domain text: " + head.call->problem->name() +
                        " has no text keys; give --text SPAN");
    }
  }
}

/// The text tokens that a head's strips are of.
std::vector<int64_t> chosen_words(const RenderRequest& o, const RenderHead& head) {
  const AttentionProblem& problem = *head.call->problem;
  const TokenGrid& keys = problem.key_tokens();
  const PromptText prompt{head.call->tokens_of(head.batch), keys.text_range().size(),
                          problem.name()};
  return choose_text_tokens(o.text_tokens, keys, head.batch, prompt);
}

/// "text token 2  "red"", or the number alone where no strings were recorded.
std::string text_token_label(std::span<const std::string> words, int64_t token) {
  const auto at = static_cast<size_t>(token);
  return at < words.size() ? fmt::format("text token {}  \"{}\"", token, words[at])
                           : fmt::format("text token {}", token);
}

/// Of a volume of a film: weights, and which cells were evicted.
int64_t film_bytes(std::array<int64_t, 3> grid) { return grid[0] * grid[1] * grid[2] * 5; }

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// A volume a word of each head, without values.
QueryVolumes word_volumes(const RenderJob& job, std::array<int64_t, 3> grid,
                          const std::vector<std::vector<int64_t>>& chosen) {
  QueryVolumes volumes = empty_volumes(job, grid);
  volumes.tells_mean = true;
  const bool one = job.heads.size() == 1;
  volumes.query_text = joined_parts({one ? head_label(job.heads.front()) : "",
                                     "attention of the video's tokens to the text", "exact",
                                     domain_text(job, job.request.domain)});
  for (size_t i = 0; i < job.heads.size(); ++i) {
    const RenderHead& head = job.heads[i];
    for (const int64_t token : chosen[i]) {
      QueryVolume volume = head_volume(head);
      volume.label = joined_parts(
          {one ? "" : volume.label, text_token_label(head.call->tokens_of(head.batch), token)});
      volumes.volumes.push_back(std::move(volume));
    }
  }
  return volumes;
}

QueryRequest query_request(const RenderRequest& o) {
  QueryRequest request;
  static_cast<HeadRunOptions&>(request) = o;
  request.queries = o.queries;
  request.queries.text_tokens = o.text_tokens;
  request.domain = o.domain;
  request.segment = o.segment;
  request.weighting = o.weighting;
  request.mean = o.mean;
  request.reverse = o.reverse;
  return request;
}

/// The video frames of the latent frames of a call's keys or queries; where nothing tells, those of
/// most video models.
VideoGeometry geometry_of(const RenderJob& job, const CallEntry& call, bool keys) {
  return known_frames(pixel_sequence(call, keys, job.request.capture)).value_or(VideoGeometry());
}

}  // namespace

void render_filmstrip(RenderJob& job) {
  QueryRequest request = query_request(job.request);
  if (!request.queries.any()) {
    throw usage_error(
        "--picture filmstrip needs --query T,Y,X, --at PIXEL, --index N or --text-token N|STRING");
  }
  const MeanAxes mean = parse_mean_axes(request.mean);
  const SoftmaxDomain domain = parse_domain(request.domain);
  const auto calls = job.capture.select(parse_selection(request.selection));
  settle_pixels(pixel_sequences(calls, request.reverse, request.capture), request.queries,
                job.console);
  const QueryTasks tasks = make_query_tasks(request, calls);
  check_domain(domain, tasks);
  check_weighting(request, tasks);
  QueryVolumes volumes = describe_volumes(request, job.capture, tasks);
  volumes.mean = mean.text();
  const AttentionProblem& problem = *tasks.tasks.front().problem;
  tell_mixed_tokens(tasks.tokens_of(0).tokens,
                    request.reverse ? problem.key_tokens() : problem.query_tokens(), job.console);
  if (volumes.chosen_alike()) job.facts["tokens"] = tasks.tokens_of(0).tokens;
  const TokenGrid& shown = tasks.shown(0);
  const auto grid = grid_of(job, shown, request.reverse ? "queries" : "keys");
  const FilmUnder under =
      film_under(job, grid, geometry_of(job, *calls.front().call, !request.reverse));
  FilmStyle style = film_style_of(job.request.page, request.out, under.shown[0]);
  style.unit = film_unit(volumes);
  choose_over(under, job, style);
  mark_evicted(tasks, volumes);
  const MemoryReservation picture =
      plan_film(job, shown_volumes(under, style, averages_of(mean, volumes)), style);
  Overlay overlay(job.overlay, under.moments, job.run.budget());
  const QueryRun run{request, tasks, job.run.backend(), job.run.budget(), job.console, job.page};
  LseCache cache(cache_folders(request.selection.cache, job.capture), job.capture.inputs());
  auto computed = request.reverse ? compute_columns(run, cache) : compute_rows(run);
  if (!computed) return;
  if (mean.any()) average_volumes(mean, volumes, computed->values, job.run.budget());
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    set_values(volumes.volumes[i], shown, std::move(computed->values[i]));
  }
  const MemoryReservation memory = job.run.budget().reserve(
      film_bytes(under.shown) * static_cast<int64_t>(volumes.volumes.size()), "the film");
  style.video = overlay.take();
  volumes = shown_volumes(under, style, std::move(volumes));
  draw_film(job, volumes, std::move(style));
}

void render_text(RenderJob& job) {
  const RenderRequest& o = job.request;
  require_alike_grids(job);
  const SoftmaxDomain domain = parse_domain(o.domain);
  if (domain != SoftmaxDomain::all && domain != SoftmaxDomain::text) {
    throw usage_error("--domain " + o.domain + ": --picture text shows text keys (all or text)");
  }
  check_text_domain(job, SoftmaxDomain::text);
  const auto grid = grid_of(job, job.heads.front().call->problem->query_tokens(), "queries");
  std::vector<HeadTask> tasks;
  std::vector<std::vector<int64_t>> chosen;
  size_t strips = 0;
  for (const RenderHead& head : job.heads) {
    const AttentionProblem& problem = *head.call->problem;
    tasks.push_back({&problem,
                     head.batch,
                     head.head,
                     problem.query_tokens().video_range(),
                     {},
                     problem.key_tokens().text_range()});
    chosen.push_back(chosen_words(o, head));
    strips += chosen.back().size();
  }
  if (strips == 0) throw usage_error("--picture text: all of the text is padding");
  const FilmUnder under = film_under(job, grid, geometry_of(job, *job.heads.front().call, false));
  FilmStyle style = film_style_of(o.page, o.out, under.shown[0]);
  style.frame_side = kWordSide;
  style.fewer = "fewer words by --text-token";
  choose_over(under, job, style);
  QueryVolumes volumes = word_volumes(job, grid, chosen);
  const MemoryReservation picture = plan_film(job, shown_volumes(under, style, volumes), style);
  Overlay overlay(job.overlay, under.moments, job.run.budget());
  TextColumns columns(tasks, chosen, domain == SoftmaxDomain::text, job.run.budget());
  job.run.run(tasks, columns);
  if (job.run.is_plan_only()) return;
  size_t strip = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (size_t n = 0; n < chosen[i].size(); ++n) {
      QueryVolume& volume = volumes.volumes[strip++];
      volume.video = columns.take(static_cast<int64_t>(i), n);
      volume.told_mean = mean_of(volume.video);
    }
  }
  job.facts["strips"] = strips;
  const MemoryReservation memory =
      job.run.budget().reserve(film_bytes(under.shown) * static_cast<int64_t>(strips), "the film");
  style.video = overlay.take();
  volumes = shown_volumes(under, style, std::move(volumes));
  draw_film(job, volumes, style);
}

void render_offsets(RenderJob& job) {
  require_alike_grids(job);
  std::vector<HeadTask> tasks;
  for (const RenderHead& head : job.heads) {
    const AttentionProblem& problem = *head.call->problem;
    const TokenGrid& grid = problem.key_tokens();
    if (!grid.has_grid() || problem.query_tokens() != grid) {
      throw usage_error("--picture offsets: queries and keys of " + problem.name() +
                        " are not tokens of one grid; give --grid TxHxW");
    }
    tasks.push_back({&problem, head.batch, head.head, grid.video_range(), {}, grid.video_range()});
  }
  const auto [T, H, W] = grid_of(job, tasks.front().problem->key_tokens(), "keys");
  FilmStyle style = film_style_of(job.request.page, job.request.out, 2 * T - 1);
  style.unit = "mass";
  style.frame_name = "dt";
  style.first_frame = 1 - T;
  QueryVolumes volumes = empty_volumes(job, {2 * T - 1, 2 * H - 1, 2 * W - 1});
  volumes.query_text =
      "mass by offset from the query (outlined), mean over the video's queries  ·  exact  ·  " +
      domain_text(job, "all");
  for (const RenderHead& head : job.heads) {
    QueryVolume volume = head_volume(head);
    volume.query = std::array<int64_t, 3>{T - 1, H - 1, W - 1};
    volumes.volumes.push_back(std::move(volume));
  }
  const MemoryReservation picture = plan_film(job, volumes, style);
  auto kernels = offset_kernels(tasks, job.run);
  if (kernels.empty()) return;
  for (size_t i = 0; i < tasks.size(); ++i) {
    volumes.volumes[i].video = std::move(kernels[i].mass);
  }
  draw_film(job, volumes, style);
}

}  // namespace attnscope
