#include <random>

#include "io/stream_chunks/span_builder.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Runs = std::vector<IndexRange>;

/// The runs of keys that a query attends to by the spans.
Runs runs_of(const std::vector<QuerySpan>& spans, int64_t query) {
  Runs runs;
  for (const QuerySpan& span : spans) {
    if (!span.queries.contains(query)) continue;
    const IndexRange keys = span.keys_of(query);
    if (!runs.empty() && runs.back().end == keys.begin) {
      runs.back().end = keys.end;
    } else {
      runs.push_back(keys);
    }
  }
  return runs;
}

}  // namespace

TEST_CASE("queries that see the same, or one key more each, are one span") {
  SpanBuilder builder;
  for (int64_t i = 0; i < 5; ++i) builder.add(i, {{0, 3}, {3, 4}, {7, 9 + i}});
  builder.add(5, {});
  builder.add(6, {});
  for (int64_t i = 7; i < 9; ++i) builder.add(i, {{2, 3}});
  const std::vector<QuerySpan> expected{
      {{0, 5}, {0, 4}}, {{0, 5}, {7, 8}}, {{0, 5}, {8, 13}, true}, {{7, 9}, {2, 3}}};
  CHECK(builder.finish() == expected);
  CHECK(builder.finish().empty());
}

TEST_CASE("spans are what they were made of, whatever the runs are") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    SpanBuilder builder;
    std::vector<Runs> rows;
    Runs runs;
    for (int64_t query = 0; query < 60; ++query) {
      // Mostly as the query before, or a step further at some ends.
      const int64_t what = pick(random, 0, 9);
      if (what == 0) {
        runs.clear();
        for (int64_t at = pick(random, 0, 5); at < 70; at += pick(random, 2, 30)) {
          runs.push_back({at, at + 1});
          at += 1;
        }
      } else if (what < 6) {
        for (size_t i = 0; i < runs.size(); ++i) {
          const int64_t most = i + 1 < runs.size() ? runs[i + 1].begin - 1 : 100;
          if (runs[i].end < most && (what < 4 || i == 0)) ++runs[i].end;
        }
      }
      rows.push_back(runs);
      builder.add(query, runs);
    }
    const std::vector<QuerySpan> spans = builder.finish();
    for (size_t query = 0; query < rows.size(); ++query) {
      REQUIRE(runs_of(spans, static_cast<int64_t>(query)) == rows[query]);
    }
    for (size_t i = 1; i < spans.size(); ++i) {
      const bool same = spans[i].queries == spans[i - 1].queries;
      REQUIRE((same ? spans[i].keys.begin >= spans[i - 1].keys.end
                    : spans[i].queries.begin >= spans[i - 1].queries.end));
    }
  }
}
