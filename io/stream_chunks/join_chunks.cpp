#include "io/stream_chunks/join_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>

#include "core/base/error.h"
#include "core/mask/query_spans.h"
#include "core/tensor/memory_tensor.h"
#include "io/files/json_types.h"
#include "io/segments/segment_json.h"
#include "io/stream_chunks/joined_keys.h"
#include "io/stream_chunks/joined_rows.h"
#include "io/stream_chunks/joined_tokens.h"
#include "io/stream_chunks/span_builder.h"

namespace attnscope {
namespace {

using Chunks = std::vector<const CallEntry*>;

/// The labels that the chunks of one call have in common.
auto call_key(const SelectedCall& s) {
  const CallId& id = s.call->id;
  return std::tuple(id.step, id.layer, id.kind, id.branches, id.place.block, id.place.slot, s.batch,
                    s.heads);
}

std::string joined_call_text(const CallEntry& call) {
  ModelPlace place = call.id.place;
  place.chunk = kNoChunk;
  return call_words(call.id.step, call.id.layer,
                    fmt::format("{}", fmt::join(call.id.branches, "+")), "", place, ", ");
}

std::shared_ptr<const TensorSource> numbers_tensor(const std::string& name,
                                                   std::vector<int64_t> shape,
                                                   const std::vector<int64_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return std::make_shared<MemoryTensor>(name, DType::i64, std::move(shape),
                                        std::vector<std::byte>(bytes.begin(), bytes.end()));
}

using Runs = std::vector<IndexRange>;

/// The keys that a query may attend to.
Runs kept_runs(const AttentionProblem& problem, int64_t batch, int64_t head, int64_t query,
               std::vector<float>& bias) {
  const IndexRange keys{0, problem.num_keys()};
  const Mask& mask = problem.mask();
  const TileClass row = mask.classify(batch, head, {query, query + 1}, keys);
  if (row == TileClass::empty) return {};
  if (row == TileClass::full) return {keys};
  bias.resize(static_cast<size_t>(keys.size()));
  mask.fill_bias(batch, head, {&query, 1}, keys, bias.data(), keys.size());
  Runs runs;
  for (int64_t key = 0; key < keys.end; ++key) {
    if (bias[static_cast<size_t>(key)] != 0) continue;
    if (runs.empty() || runs.back().end != key) runs.push_back({key, key});
    runs.back().end = key + 1;
  }
  return runs;
}

/// The columns of a chunk's keys `runs` among the joined keys, ascending.
Runs placed_runs(const Runs& runs, const std::vector<PlacedKeys>& placed) {
  Runs columns;
  auto piece = placed.begin();
  for (const IndexRange& run : runs) {
    while (piece != placed.end() && piece->keys.end <= run.begin) ++piece;
    for (auto at = piece; at != placed.end() && at->keys.begin < run.end; ++at) {
      const IndexRange keys = intersect(run, at->keys);
      const int64_t first = at->column + keys.begin - at->keys.begin;
      columns.push_back({first, first + keys.size()});
    }
  }
  std::sort(columns.begin(), columns.end(),
            [](const IndexRange& a, const IndexRange& b) { return a.begin < b.begin; });
  return columns;
}

/// True where batch items or heads may have masks of their own.
bool tells_heads_apart(const CallEntry& call) {
  if (!call.mask_fact) return !call.problem->mask().is_none();
  const MaskForm form = call.mask_fact->form;
  if (call.mask == nullptr || form == MaskForm::spans) return false;
  // The last axes are those of queries and keys, or of tokens.
  const bool entries = form == MaskForm::tensor || form == MaskForm::blocks;
  const auto shape = call.mask->shape();
  const size_t own = entries ? 2 : 1;
  for (size_t axis = 0; axis + own < shape.size(); ++axis) {
    if (shape[axis] > 1) return true;
  }
  return false;
}

void check_alike(const CallEntry& call, int64_t query, const Runs& runs, std::vector<float>& bias) {
  const AttentionProblem& problem = *call.problem;
  for (int64_t b = 0; b < problem.batch(); ++b) {
    for (int64_t h = 0; h < problem.num_heads(); ++h) {
      if (kept_runs(problem, b, h, query, bias) == runs) continue;
      throw usage_error(fmt::format(
          "the mask of chunk {} differs between batch items or heads (query {}: item 0, head 0 and "
          "item {}, head {}), which a joined mask cannot say",
          call.id.place.chunk, query, b, h));
    }
  }
}

/// The joined keys that each query of the chunks attends to: those that its chunk's own mask lets
/// it. Reads masks row by row. Throws Error(usage) where a mask differs between batch items or
/// heads or has finite biases, which spans cannot tell; Error(interrupted) soon after a stop is
/// requested; what reading throws.
std::vector<QuerySpan> joined_spans(std::span<const CallEntry* const> chunks,
                                    const std::vector<ChunkTokens>& queries, const JoinedKeys& keys,
                                    const std::stop_token& stop) {
  SpanBuilder builder;
  std::vector<float> bias;
  int64_t joined = 0;
  for (const ChunkTokens& piece : queries) {
    const CallEntry& call = *chunks[piece.chunk];
    if (call.problem->mask().has_finite_bias()) {
      throw usage_error(
          fmt::format("the mask of chunk {} adds finite biases, which a joined mask "
                      "cannot say",
                      call.id.place.chunk));
    }
    const bool apart = tells_heads_apart(call);
    for (int64_t query = piece.tokens.begin; query < piece.tokens.end; ++query, ++joined) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
      }
      const Runs runs = kept_runs(*call.problem, 0, 0, query, bias);
      if (apart) check_alike(call, query, runs, bias);
      builder.add(joined, placed_runs(runs, keys.placed[piece.chunk]));
    }
  }
  return builder.finish();
}

/// Joins the chunks of one call.
class ChunkJoin {
 public:
  ChunkJoin(const Chunks& chunks, const std::stop_token& stop)
      : chunks_(chunks), first_(*chunks.front()), stop_(stop) {}

  std::shared_ptr<const CallEntry> run() {
    check_parts();
    check_shapes();
    auto entry = std::make_shared<CallEntry>(first_);
    queries_ = joined_queries(chunks_);
    join_facts(*entry);
    keys_ = join_keys(chunks_, stop_);
    tell_missing();
    join_tensors(*entry);
    return entry;
  }
  std::vector<std::string> notes;

 private:
  int64_t number(size_t chunk) const { return chunks_[chunk]->id.place.chunk; }

  void check_parts() const {
    for (const CallEntry* call : chunks_) {
      if (call->undivided) {
        throw usage_error(
            fmt::format("chunk {} has the score linear:normaliser, whose chunks cannot be joined",
                        call->id.place.chunk));
      }
      if (!call->problem->sinks().is_none()) {
        throw usage_error(
            fmt::format("chunk {} has sinks, which are not joined", call->id.place.chunk));
      }
      for (const auto& [bias, what] :
           {std::pair(&call->alibi, "linear biases"), {&call->relative_bias, "relative biases"}}) {
        if (!bias->tensor) continue;
        throw usage_error(
            fmt::format("chunk {} has {}, which are not joined", call->id.place.chunk, what));
      }
      if (call->facts.count("part") == 0) continue;
      throw usage_error(
          fmt::format("chunk {} is the part of one of several processes: join these first, from "
                      "the folder that "
                      "has them all",
                      call->id.place.chunk));
    }
  }

  void check_shapes() const {
    const AttentionProblem& a = *first_.problem;
    for (const CallEntry* call : chunks_) {
      const AttentionProblem& b = *call->problem;
      const bool fits = a.batch() == b.batch() && a.num_heads() == b.num_heads() &&
                        a.num_kv_heads() == b.num_kv_heads() && a.head_dim() == b.head_dim() &&
                        a.q().dtype() == b.q().dtype();
      if (fits) continue;
      throw usage_error(fmt::format(
          "chunks {} and {} have other shapes: q [{}, {}, N, {}] {} and [{}, {}, N, {}] {}",
          number(0), call->id.place.chunk, a.batch(), a.num_heads(), a.head_dim(),
          dtype_name(a.q().dtype()), b.batch(), b.num_heads(), b.head_dim(),
          dtype_name(b.q().dtype())));
    }
  }

  /// Forwards that nobody told are called alike in chunks that may be of other branches.
  void require_told() const {
    for (const CallEntry* call : chunks_) {
      if (!call->id.place.forward.is_stated()) continue;
      throw usage_error(
          fmt::format("nobody told the step or branch of chunk {} (forward {}): "
                      "attnscope relabel tells it",
                      call->id.place.chunk, call->id.place.forward.forward));
    }
  }

  /// The facts that all chunks have alike; what may differ is left out where it does.
  void join_facts(CallEntry& entry) {
    require_told();
    const std::set<std::string> own{"chunk", "queries", "keys", "mask", "mask_block", "format"};
    const std::set<std::string> loose{"timestep", "extra"};
    std::set<std::string> names;
    for (const CallEntry* call : chunks_) {
      for (const auto& [name, fact] : call->facts) names.insert(name);
    }
    for (const std::string& name : names) {
      if (own.count(name) != 0) continue;
      const auto of = [&](const CallEntry& call) {
        const auto found = call.facts.find(name);
        return found == call.facts.end() ? std::string("nothing") : found->second.json;
      };
      const auto other = std::find_if(chunks_.begin(), chunks_.end(), [&](const CallEntry* call) {
        return of(*call) != of(first_);
      });
      if (other == chunks_.end()) continue;
      const std::string what =
          fmt::format("{} is {} in chunk {} and {} in chunk {}", name, of(first_), number(0),
                      of(**other), (*other)->id.place.chunk);
      if (loose.count(name) == 0) throw usage_error(what);
      notes.push_back(fmt::format("{}: left out: {}", joined_call_text(first_), what));
      entry.facts.erase(name);
    }
    for (const std::string& name : own) entry.facts.erase(name);
    entry.facts["kind"] = {OrderedJson(kind_name(first_.id.kind)).dump(), "recorded"};
    entry.id.place.chunk = kNoChunk;
  }

  /// Says which pieces of the stream are not there.
  void tell_missing() {
    std::set<int64_t> numbers;
    for (const CallEntry* call : chunks_) numbers.insert(call->id.place.chunk);
    std::string missing;
    int64_t count = 0;
    for (int64_t n = 0; n < *numbers.rbegin() && count <= kMostNamed; ++n) {
      if (numbers.count(n) != 0) continue;
      if (++count <= kMostNamed) missing += (missing.empty() ? "" : ", ") + std::to_string(n);
    }
    if (count > kMostNamed) missing += " and more";
    std::string gaps;
    int64_t past = 0;
    for (const ChunkTokens& piece : queries_) {
      const TokenGrid& tokens = chunks_[piece.chunk]->problem->query_tokens();
      const int64_t begin = *tokens.position(piece.tokens.begin);
      if (begin > past)
        gaps += fmt::format("{}{} to {}", gaps.empty() ? "" : ", ", past, begin - 1);
      past = *tokens.position(piece.tokens.end - 1) + 1;
    }
    if (missing.empty() && gaps.empty()) return;
    if (!missing.empty()) missing = (count > 1 ? "without chunks " : "without chunk ") + missing;
    if (!gaps.empty()) gaps = "no rows of positions " + gaps;
    notes.push_back(joined_call_text(first_) + ": " + missing +
                    (missing.empty() || gaps.empty() ? "" : "; ") + gaps);
  }

  void join_tensors(CallEntry& entry) {
    const AttentionProblem& p = *first_.problem;
    const std::vector<ChunkTokens> columns = keys_.all();
    const auto tensor = [&](const char* name, auto member, const std::vector<ChunkTokens>& list) {
      const HeadTensor& of = (p.*member)();
      std::vector<RowPiece> pieces;
      for (const ChunkTokens& tokens : list) {
        pieces.push_back(
            head_rows((chunks_[tokens.chunk]->problem.get()->*member)(), tokens.tokens));
      }
      return HeadTensor(joined_rows(source_name(name), of.dtype(), of.batch(), of.heads(),
                                    of.width(), std::move(pieces)),
                        Layout::bhsd);
    };
    AttentionProblem::Parts parts;
    parts.q = tensor("q", &AttentionProblem::q, queries_);
    parts.k = tensor("k", &AttentionProblem::k, columns);
    const bool values = all_have([](const CallEntry& c) { return bool(c.problem->v()); });
    if (values) parts.v = tensor("v", &AttentionProblem::v, columns);
    tell_lost("v", [](const CallEntry& c) { return bool(c.problem->v()); });
    tell_lost("lse", [](const CallEntry& c) { return c.lse != nullptr; });
    tell_lost("out", [](const CallEntry& c) { return c.out != nullptr; });
    parts.scale = p.scales();
    parts.score = p.score();
    join_mask(entry);
    join_tokens(entry, parts);
    parts.mask = make_mask(*entry.mask_fact, entry.mask, parts.query_tokens, parts.key_tokens);
    parts.id = entry.id;
    parts.name = p.name();
    join_outputs(entry, values);
    entry.problem = std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
  }

  std::string source_name(const char* name) const {
    return first_.file.string() + " and its later chunks: tensor " + name;
  }

  /// A mask of everything, or of all before a query, is that; else it is spans.
  void join_mask(CallEntry& entry) {
    const auto spans = joined_spans(chunks_, queries_, keys_, stop_);
    int64_t rows = 0, columns = 0;
    for (const ChunkTokens& tokens : queries_) rows += tokens.tokens.size();
    for (const ChunkTokens& tokens : keys_.all()) columns += tokens.tokens.size();
    const bool one = spans.size() == 1 && spans[0].queries == IndexRange{0, rows} &&
                     spans[0].keys == IndexRange{0, columns};
    entry.mask_fact =
        MaskFact{one ? spans[0].causal ? MaskForm::causal : MaskForm::none : MaskForm::spans};
    entry.mask =
        one ? nullptr
            : numbers_tensor(source_name("mask_spans"), {static_cast<int64_t>(spans.size()), 5},
                             query_span_rows(spans));
  }

  void join_tokens(CallEntry& entry, AttentionProblem::Parts& parts) const {
    const OrderedJson queries = joined_query_segments(chunks_, queries_);
    const OrderedJson keys = joined_key_segments(chunks_, keys_);
    const auto grid = [](const OrderedJson& segments) {
      return TokenGrid::of_segments(parse_segments(Json::parse(segments.dump()), nullptr).segments);
    };
    parts.query_tokens = grid(queries);
    parts.key_tokens = grid(keys);
    entry.facts["queries"] = {queries.dump(), "recorded"};
    if (keys != queries) entry.facts["keys"] = {keys.dump(), "recorded"};
    entry.tokens.clear();
    entry.map_tensors.clear();
  }

  /// The recorded results of rows, and their normalisers, where all chunks have them.
  void join_outputs(CallEntry& entry, bool values) {
    if (entry.lse && all_have([](const CallEntry& c) { return c.lse != nullptr; })) {
      std::vector<RowPiece> pieces;
      for (const ChunkTokens& tokens : queries_) {
        pieces.push_back(scalar_rows(chunks_[tokens.chunk]->lse, tokens.tokens));
      }
      entry.lse = joined_rows(source_name("lse"), first_.lse->dtype(), first_.problem->batch(),
                              first_.problem->num_heads(), 0, std::move(pieces));
    } else {
      entry.lse = nullptr;
    }
    entry.out = entry.out_rows = nullptr;
    if (!values || !all_have([](const CallEntry& c) { return c.out != nullptr; })) return;
    std::vector<RowPiece> pieces;
    std::vector<int64_t> rows;
    int64_t joined = 0;
    for (const ChunkTokens& tokens : queries_) {
      add_output_rows(tokens, joined, pieces, rows);
      joined += tokens.tokens.size();
    }
    const auto count = static_cast<int64_t>(rows.size());
    entry.out =
        joined_rows(source_name("out"), first_.out->dtype(), first_.problem->batch(),
                    first_.problem->num_heads(), first_.problem->v().width(), std::move(pieces));
    entry.out_rows = numbers_tensor(source_name("out_rows"), {count}, rows);
  }

  /// The recorded rows among some tokens of a chunk, whose first is row `joined` of all.
  void add_output_rows(const ChunkTokens& tokens, int64_t joined, std::vector<RowPiece>& pieces,
                       std::vector<int64_t>& rows) const {
    const CallEntry& call = *chunks_[tokens.chunk];
    std::vector<int64_t> recorded(static_cast<size_t>(call.out_rows->shape()[0]));
    const int64_t begin = 0;
    call.out_rows->read({&begin, 1}, call.out_rows->shape(),
                        std::as_writable_bytes(std::span(recorded)).data());
    const HeadTensor out(call.out, Layout::bhsd);
    for (size_t i = 0; i < recorded.size(); ++i) {
      if (!tokens.tokens.contains(recorded[i])) continue;
      const auto row = static_cast<int64_t>(i);
      pieces.push_back(head_rows(out, {row, row + 1}));
      rows.push_back(joined + recorded[i] - tokens.tokens.begin);
    }
  }

  /// Says what only some of the chunks have, which the joined call has not.
  template <typename Has>
  void tell_lost(const char* name, const Has& has) {
    const bool any =
        std::any_of(chunks_.begin(), chunks_.end(), [&](const CallEntry* c) { return has(*c); });
    if (!any || all_have(has)) return;
    notes.push_back(
        fmt::format("{}: left out: {} is not in all chunks", joined_call_text(first_), name));
  }

  template <typename Has>
  bool all_have(const Has& has) const {
    return std::all_of(chunks_.begin(), chunks_.end(), [&](const CallEntry* c) { return has(*c); });
  }

  static constexpr int64_t kMostNamed = 8;
  const Chunks& chunks_;
  const CallEntry& first_;
  const std::stop_token& stop_;
  std::vector<ChunkTokens> queries_;
  JoinedKeys keys_;
};

}  // namespace

JoinedChunks join_chunks(const std::vector<SelectedCall>& calls, const std::stop_token& stop) {
  JoinedChunks joined;
  std::map<decltype(call_key(calls.front())), Chunks> streams;
  for (const SelectedCall& s : calls) {
    if (s.call->id.place.has_chunk()) streams[call_key(s)].push_back(s.call);
  }
  for (const SelectedCall& s : calls) {
    if (!s.call->id.place.has_chunk()) {
      joined.calls.push_back(s);
      continue;
    }
    const auto stream = streams.find(call_key(s));
    // The whole stream stands where its first chunk does.
    if (stream->second.front() != s.call) continue;
    ChunkJoin join(stream->second, stop);
    try {
      joined.made.push_back(join.run());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      joined.refusals.push_back(
          fmt::format("{}: chunks are not joined: {}", joined_call_text(*s.call), error.what()));
      continue;
    }
    joined.calls.push_back({joined.made.back().get(), s.batch, s.heads});
    joined.notes.insert(joined.notes.end(), join.notes.begin(), join.notes.end());
  }
  return joined;
}

}  // namespace attnscope
