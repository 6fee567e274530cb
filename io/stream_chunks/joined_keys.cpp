#include "io/stream_chunks/joined_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "io/stream_chunks/position_map.h"

namespace attnscope {
namespace {

const TokenGrid& keys_of(const CallEntry& call) { return call.problem->key_tokens(); }

void append(std::vector<ChunkTokens>& list, size_t chunk, IndexRange tokens) {
  if (tokens.empty()) return;
  if (!list.empty() && list.back().chunk == chunk && list.back().tokens.end == tokens.begin) {
    list.back().tokens.end = tokens.end;
  } else {
    list.push_back({chunk, tokens});
  }
}

IndexRange positions_of(const TokenSegment& segment) {
  return {*segment.position, *segment.position + segment.tokens.size()};
}

/// The queries of all chunks by position.
PositionMap query_positions(std::span<const CallEntry* const> chunks) {
  PositionMap map;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const TokenGrid& queries = chunks[c]->problem->query_tokens();
    if (!queries.has_map()) throw usage_error("queries: no token map tells their positions");
    for (const TokenSegment& segment : queries.segments()) {
      if (!segment.position) {
        throw usage_error("queries: segment " + segment.name +
                          " has no position, by which chunks are joined");
      }
      map.visit(positions_of(segment), [&](IndexRange part, const PositionMap::Run* run) {
        if (run == nullptr) return;
        throw usage_error(fmt::format("position {} is a query of chunks {} and {}", part.begin,
                                      chunks[run->sequence]->id.place.chunk,
                                      chunks[c]->id.place.chunk));
      });
      map.assign(positions_of(segment), {c, segment.tokens.begin});
    }
  }
  return map;
}

/// Compares rows of keys and values of two chunks.
class RowComparison {
 public:
  RowComparison(std::span<const CallEntry* const> chunks, const std::stop_token& stop)
      : chunks_(chunks), stop_(stop) {}

  /// Where the tensors of `count` keys first differ: "k[0, 1, 7, 3] is 0.25, k[…] is 0.5"; empty:
  /// they do not.
  std::string difference(size_t a, int64_t first_a, size_t b, int64_t first_b,
                         int64_t count) const {
    const AttentionProblem& x = *chunks_[a]->problem;
    const AttentionProblem& y = *chunks_[b]->problem;
    std::string text = difference("k", x.k(), first_a, y.k(), first_b, count);
    if (text.empty() && x.v() && y.v()) {
      text = difference("v", x.v(), first_a, y.v(), first_b, count);
    }
    return text;
  }

 private:
  std::string difference(const char* name, const HeadTensor& x, int64_t first_x,
                         const HeadTensor& y, int64_t first_y, int64_t count) const {
    const int64_t step = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, x.row_bytes()));
    std::vector<std::byte> of_x, of_y;
    for (int64_t b = 0; b < x.batch(); ++b) {
      for (int64_t h = 0; h < x.heads(); ++h) {
        for (int64_t row = 0; row < count; row += step) {
          if (stop_.stop_requested()) {
            throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
          }
          const int64_t rows = std::min(step, count - row);
          const auto bytes = static_cast<size_t>(rows * x.row_bytes());
          of_x.resize(bytes);
          of_y.resize(bytes);
          x.read_rows(b, h, {first_x + row, first_x + row + rows}, of_x.data());
          y.read_rows(b, h, {first_y + row, first_y + row + rows}, of_y.data());
          if (std::memcmp(of_x.data(), of_y.data(), bytes) == 0) continue;
          const int64_t at = first_element(of_x, of_y, dtype_bytes(x.dtype()));
          const auto value = [&](const std::vector<std::byte>& of) {
            float number = 0;
            to_floats(x.dtype(), of.data() + at * dtype_bytes(x.dtype()), 1, &number);
            return number;
          };
          const int64_t key = row + at / x.width(), channel = at % x.width();
          return fmt::format("{0}[{1}, {2}, {3}, {5}] is {6}, {0}[{1}, {2}, {4}, {5}] is {7}", name,
                             b, h, first_x + key, first_y + key, channel, value(of_x), value(of_y));
        }
      }
    }
    return "";
  }

  static int64_t first_element(const std::vector<std::byte>& x, const std::vector<std::byte>& y,
                               int64_t bytes) {
    return (std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin()) / bytes;
  }

  const std::span<const CallEntry* const> chunks_;
  const std::stop_token& stop_;
};

/// The keys of all chunks, chunk by chunk.
class KeyJoin {
 public:
  KeyJoin(std::span<const CallEntry* const> chunks, const std::stop_token& stop)
      : chunks_(chunks), queries_(query_positions(chunks)), compare_(chunks, stop) {}

  JoinedKeys run() {
    for (size_t c = 0; c < chunks_.size(); ++c) add_chunk(c);
    const auto fixed = fixed_of(0);
    const auto& segments = keys_of(*chunks_.front()).segments();
    const auto streamed = std::find_if(segments.begin(), segments.end(), [](const TokenSegment& s) {
      return s.position.has_value();
    });
    for (const TokenSegment* segment : fixed) {
      const bool before =
          streamed == segments.end() || segment->tokens.begin < streamed->tokens.begin;
      append(before ? joined_.first : joined_.last, 0, segment->tokens);
    }
    collect();
    for (size_t c = 0; c < chunks_.size(); ++c) place_chunk(c);
    return std::move(joined_);
  }

 private:
  std::vector<const TokenSegment*> fixed_of(size_t chunk) const {
    std::vector<const TokenSegment*> fixed;
    for (const TokenSegment& segment : keys_of(*chunks_[chunk]).segments()) {
      if (!segment.position) fixed.push_back(&segment);
    }
    return fixed;
  }

  void add_chunk(size_t c) {
    if (!keys_of(*chunks_[c]).has_map()) {
      throw usage_error("keys: no token map tells their positions");
    }
    check_fixed(c);
    check_once(c);
    visit_parts(c, [&](IndexRange positions, int64_t key, bool own) {
      own ? add_own(c, positions, key) : add_cached(c, positions, key);
    });
    // Later chunks are compared with these: neighbours in K stay so, however they came there.
    visit_parts(c, [&](IndexRange positions, int64_t key, bool own) {
      latest_.assign(positions, {c, key, own});
    });
  }

  /// The keys with a position of a chunk, in parts that are its own queries or are not.
  template <typename Visit>
  void visit_parts(size_t c, const Visit& visit) const {
    for (const TokenSegment& segment : keys_of(*chunks_[c]).segments()) {
      if (!segment.position) continue;
      const IndexRange all = positions_of(segment);
      queries_.visit(all, [&](IndexRange part, const PositionMap::Run* run) {
        const bool own = run != nullptr && run->sequence == c;
        visit(part, segment.tokens.begin + part.begin - all.begin, own);
      });
    }
  }

  void check_once(size_t c) const {
    PositionMap seen;
    visit_parts(c, [&](IndexRange positions, int64_t key, bool) {
      seen.visit(positions, [&](IndexRange part, const PositionMap::Run* run) {
        if (run == nullptr) return;
        throw usage_error(
            fmt::format("keys: position {} is there twice in chunk {}: keys {} and {}", part.begin,
                        number(c), run->first, key + part.begin - positions.begin));
      });
      seen.assign(positions, {c, key});
    });
  }

  void check_fixed(size_t c) const {
    const auto first = fixed_of(0), here = fixed_of(c);
    const bool alike =
        std::equal(first.begin(), first.end(), here.begin(), here.end(),
                   [](const TokenSegment* a, const TokenSegment* b) {
                     return a->name == b->name && a->tokens.size() == b->tokens.size();
                   });
    if (!alike) {
      throw usage_error(fmt::format("keys: chunks {} and {} have other segments without a position",
                                    number(0), number(c)));
    }
    for (size_t i = 0; c > 0 && i < first.size(); ++i) {
      const std::string text = compare_.difference(0, first[i]->tokens.begin, c,
                                                   here[i]->tokens.begin, here[i]->tokens.size());
      if (text.empty()) continue;
      throw usage_error(
          fmt::format("keys: segment {} has no position and differs between chunks {} and {}: {}",
                      first[i]->name, number(0), number(c), text));
    }
  }

  /// Adds keys of a chunk that are those of its own queries.
  void add_own(size_t c, IndexRange positions, int64_t key) {
    latest_.visit(positions, [&](IndexRange part, const PositionMap::Run* known) {
      if (known == nullptr) return;
      const int64_t here = key + part.begin - positions.begin;
      check_same(c, part, here, *known);
    });
    own_.assign(positions, {c, key});
  }

  /// Adds keys of a chunk that belong to no query of its own.
  void add_cached(size_t c, IndexRange positions, int64_t key) {
    latest_.visit(positions, [&](IndexRange part, const PositionMap::Run* known) {
      const int64_t here = key + part.begin - positions.begin;
      if (known == nullptr) {
        left_.assign(part, {c, here});
      } else if (!known->own) {
        check_same(c, part, here, *known);
      } else if (!compare_.difference(known->sequence, known->first, c, here, part.size())
                      .empty()) {
        cached_.assign(part, {c, here});
      }
    });
  }

  void check_same(size_t c, IndexRange positions, int64_t key,
                  const PositionMap::Run& known) const {
    const std::string text =
        compare_.difference(known.sequence, known.first, c, key, positions.size());
    if (text.empty()) return;
    throw usage_error(fmt::format(
        "the keys at positions {} to {} differ between chunks {} and {} (a model that turns "
        "cached keys anew?), so there is no single map: {}",
        positions.begin, positions.end - 1, number(known.sequence), number(c), text));
  }

  /// The columns, in their order, and where the positions stand among them.
  void collect() {
    for (const ChunkTokens& tokens : joined_.first) columns_ += tokens.tokens.size();
    const auto add = [&](std::vector<ChunkTokens>& list, PositionMap& columns, IndexRange part,
                         const PositionMap::Run& run) {
      append(list, run.sequence, {run.first, run.first + part.size()});
      columns.assign(part, {0, columns_});
      columns_ += part.size();
    };
    cached_.visit_all([&](IndexRange part, const PositionMap::Run& run) {
      add(joined_.cached, cached_columns_, part, run);
    });
    // Positions that were never a query of a chunk that is there are as a cache had them.
    PositionMap all = left_;
    own_.visit_all([&](IndexRange part, const PositionMap::Run& run) { all.assign(part, run); });
    all.visit_all([&](IndexRange part, const PositionMap::Run& run) {
      add(joined_.own, own_columns_, part, run);
    });
  }

  void place_chunk(size_t c) {
    std::vector<PlacedKeys>& placed = joined_.placed.emplace_back();
    const auto place = [&](int64_t key, int64_t count, int64_t column) {
      if (!placed.empty() && placed.back().keys.end == key &&
          placed.back().column + placed.back().keys.size() == column) {
        placed.back().keys.end += count;
      } else {
        placed.push_back({{key, key + count}, column});
      }
    };
    place_fixed(c, place);
    visit_parts(c, [&](IndexRange positions, int64_t key, bool own) {
      const auto at = [&](IndexRange part) { return key + part.begin - positions.begin; };
      const auto place_own = [&](IndexRange part) {
        own_columns_.visit(part, [&](IndexRange piece, const PositionMap::Run* run) {
          place(at(piece), piece.size(), run->first);
        });
      };
      if (own) return place_own(positions);
      cached_columns_.visit(positions, [&](IndexRange part, const PositionMap::Run* run) {
        run != nullptr ? place(at(part), part.size(), run->first) : place_own(part);
      });
    });
    std::sort(placed.begin(), placed.end(),
              [](const PlacedKeys& a, const PlacedKeys& b) { return a.keys.begin < b.keys.begin; });
  }

  template <typename Place>
  void place_fixed(size_t c, const Place& place) const {
    int64_t before = 0, after = columns_;
    int64_t left = 0;
    for (const ChunkTokens& tokens : joined_.first) left += tokens.tokens.size();
    for (const TokenSegment* segment : fixed_of(c)) {
      const int64_t count = segment->tokens.size();
      const bool first = before < left;
      place(segment->tokens.begin, count, first ? before : after);
      (first ? before : after) += count;
    }
  }

  int64_t number(size_t chunk) const { return chunks_[chunk]->id.place.chunk; }

  const std::span<const CallEntry* const> chunks_;
  const PositionMap queries_;
  const RowComparison compare_;
  PositionMap latest_;  ///< keys as the latest chunk that had them
  PositionMap own_;     ///< keys as the chunk that they are of attended to them
  PositionMap left_;    ///< keys that were in caches alone
  PositionMap cached_;  ///< keys that caches held otherwise than that chunk
  PositionMap cached_columns_, own_columns_;
  int64_t columns_ = 0;  ///< so far; in the end that of the last fixed keys
  JoinedKeys joined_;
};

}  // namespace

std::vector<ChunkTokens> JoinedKeys::all() const {
  std::vector<ChunkTokens> list;
  for (const auto* part : {&first, &cached, &own, &last}) {
    for (const ChunkTokens& tokens : *part) append(list, tokens.chunk, tokens.tokens);
  }
  return list;
}

std::vector<ChunkTokens> joined_queries(std::span<const CallEntry* const> chunks) {
  std::vector<ChunkTokens> list;
  query_positions(chunks).visit_all([&](IndexRange part, const PositionMap::Run& run) {
    append(list, run.sequence, {run.first, run.first + part.size()});
  });
  return list;
}

JoinedKeys join_keys(std::span<const CallEntry* const> chunks, const std::stop_token& stop) {
  return KeyJoin(chunks, stop).run();
}

}  // namespace attnscope
