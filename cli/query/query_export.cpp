#include "cli/query/query_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cli/common/command.h"
#include "cli/common/pixel_query.h"
#include "cli/common/stored_input.h"
#include "cli/query/query_output.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/selection.h"
#include "core/products/query_mean.h"
#include "core/products/row_mean.h"
#include "core/products/softmax_domain.h"
#include "io/capture/unknown_state.h"
#include "io/export/read/export_files.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

void check_request(const QueryRequest& o) {
  check_export_options(o.capture, o.run);
  const std::pair<const char*, bool> others[] = {{"--reverse", o.reverse},
                                                 {"--domain", o.domain != "all"},
                                                 {"--weighting", o.weighting != "none"},
                                                 {"--cache", !o.selection.cache.empty()},
                                                 {"--text-token", !o.queries.text_tokens.empty()},
                                                 {"--dry-run", o.dry_run}};
  for (const auto& [option, given] : others) {
    if (!given) continue;
    throw usage_error(fmt::format(
        "{}: {} is an export, whose rows are shown as they are (the option needs the capture)",
        option, one_line(o.capture.capture)));
  }
  if (!o.queries.any()) throw usage_error("query needs --query T,Y,X, --at PIXEL or --index N");
}

/// Where the chosen tokens stand among the exported rows.
std::vector<int64_t> positions_of(const StoredMaps& maps, const StoredHead& head,
                                  const ChosenTokens& chosen) {
  const std::vector<int64_t>& queries = head.facts->queries;
  std::vector<int64_t> positions;
  for (const int64_t token : chosen.tokens) {
    const auto found = std::lower_bound(queries.begin(), queries.end(), token);
    if (found == queries.end() || *found != token) {
      throw usage_error(fmt::format("{}: {} has no row of query {} (it has {})",
                                    maps.path().string(), one_line(head.group->name), token,
                                    format_index_list(queries)));
    }
    positions.push_back(found - queries.begin());
  }
  return positions;
}

/// The mean of the chosen rows, over all keys.
std::vector<float> mean_row(const StoredMaps& maps, const StoredHead& head,
                            const std::vector<int64_t>& positions) {
  RowSums sums(head.group->grid.cols, Quantity::weights);
  for (const int64_t position : positions) {
    const auto row = maps.row(head, position);
    if (!row) {
      throw usage_error(fmt::format(
          "{}: the tiles of query {} of {} are not in the file yet (attnscope info says how far "
          "it is)",
          maps.path().string(), head.facts->queries[static_cast<size_t>(position)],
          stored_label(head)));
    }
    sums.add(*row);
  }
  return sums.mean(static_cast<int64_t>(positions.size()));
}

void check_heads(const StoredMaps& maps, const std::vector<StoredHead>& heads) {
  if (maps.is_logits()) {
    throw usage_error(maps.path().string() +
                      ": holds logits; query shows weights (export --product weights or rows)");
  }
  for (const StoredHead& head : heads) {
    const StoredFacts& facts = *head.facts;
    if (facts.keys != IndexRange{0, facts.key_tokens.tokens()}) {
      throw usage_error(fmt::format("{}: {} has keys {}:{} of {} only; a query shows them all",
                                    maps.path().string(), one_line(head.group->name),
                                    facts.keys.begin, facts.keys.end, facts.key_tokens.tokens()));
    }
    if (facts.key_tokens != heads.front().facts->key_tokens) {
      throw usage_error(
          "the selected calls have different token grids: select calls of one kind with --kind");
    }
  }
}

QueryVolume describe_volume(const StoredHead& head, const ChosenTokens& chosen,
                            const TokenGrid& keys) {
  QueryVolume volume;
  volume.label = stored_label(head);
  volume.step = head.facts->step;
  volume.layer = head.facts->layer;
  volume.batch = head.batch;
  volume.head = head.head;
  volume.branch = head.facts->branch;
  volume.kind = head.facts->kind;
  volume.place = head.facts->place;
  // A place in these volumes only where queries and keys are the same tokens.
  if (head.facts->same_tokens()) volume.query = single_coord(chosen, keys);
  return volume;
}

QueryVolumes describe_volumes(const QueryRequest& o, const StoredMaps& maps,
                              const std::vector<StoredHead>& heads,
                              const std::vector<ChosenTokens>& chosen, const TokenGrid& keys) {
  QueryVolumes volumes;
  volumes.grid = {keys.frames(), keys.height(), keys.width()};
  volumes.model = heads.front().facts->model;
  volumes.capture = maps.stored().capture;
  volumes.domain = "all";
  std::vector<std::string> masks;
  for (const StoredHead& head : heads) masks.push_back(one_line(head.facts->mask));
  const std::optional<ScoreFunction> score = parse_score(heads.front().facts->score);
  volumes.shares = score && is_normalised(*score);
  volumes.domain_text = domain_text(one_line(heads.front().facts->score), "all", masks);
  volumes.tracked = o.track;
  volumes.query_text = describe_chosen(o.queries, chosen.front(), false);
  if (!o.segment.empty()) {
    volumes.query_text += ", segment " + o.segment;
    volumes.shown = o.segment;
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].facts->q_state.empty()) volumes.state_text = kUnknownState;
    volumes.volumes.push_back(describe_volume(heads[i], chosen[i], keys));
    volumes.volumes.back().chosen = volumes.list_chosen(chosen[i].tokens);
  }
  return volumes;
}

}  // namespace

int query_export(QueryRequest& o, const Console& console) {
  check_request(o);
  const MeanAxes mean = parse_mean_axes(o.mean);
  const StoredMaps maps(o.capture.capture);
  const std::vector<StoredHead> heads = select_stored(maps, o.selection, console);
  check_heads(maps, heads);
  std::vector<PixelSequence> sequences;
  for (const StoredHead& head : heads) {
    sequences.push_back(pixel_sequence(*head.facts, one_line(head.group->name)));
  }
  settle_pixels(sequences, o.queries, console);
  std::vector<ChosenTokens> chosen;
  std::vector<std::vector<int64_t>> positions;
  for (const StoredHead& head : heads) {
    chosen.push_back(
        resolve_tokens(o.queries, {head.facts->query_tokens, {}, one_line(head.group->name)}));
    positions.push_back(positions_of(maps, head, chosen.back()));
  }
  const TokenGrid& tokens = heads.front().facts->key_tokens;
  const TokenGrid keys = o.segment.empty()
                             ? tokens
                             : seen_segment(tokens, o.segment, one_line(heads.front().group->name));
  check_order(o, chosen.front().tokens.size());
  tell_mixed_tokens(chosen.front().tokens, heads.front().facts->query_tokens, console);
  QueryVolumes volumes = describe_volumes(o, maps, heads, chosen, keys);
  volumes.mean = mean.text();
  const auto inputs = files_of_export(maps.path(), maps.stored());
  const auto output = choose_output(o, {keys, false, inputs}, averages_of(mean, volumes));
  MemoryBudget budget(memory_limit(o.run));
  // The results, and a row's sums and chunks.
  const MemoryReservation memory = budget.reserve(
      keys.tokens() * (4 * static_cast<int64_t>(heads.size()) + 16) +
          4 * heads.front().group->grid.chunk_rows * heads.front().group->grid.chunk_cols +
          maps.reading_bytes(heads.front()),
      "the rows of the query");
  const auto picture = output ? output->reserve(budget) : MemoryReservation();
  std::vector<std::vector<float>> values;
  std::vector<double> lse;
  for (size_t i = 0; i < heads.size(); ++i) {
    values.push_back(mean_row(maps, heads[i], positions[i]));
    lse.push_back(positions[i].size() == 1 ? maps.lse(heads[i], positions[i].front())
                                           : std::numeric_limits<double>::quiet_NaN());
  }
  if (mean.any()) average_volumes(mean, volumes, values, budget);
  if (mean.any()) lse.clear();
  std::vector<QuerySummary> summaries = set_all_values(o, keys, {std::move(values), lse}, volumes);
  if (output) {
    write_volumes(output->format, volumes, output->film, o.out, o.force);
    say_written(o, volumes, console, " of an export");
  }
  print_summaries(o, volumes, std::move(summaries));
  return kExitOk;
}

}  // namespace attnscope
