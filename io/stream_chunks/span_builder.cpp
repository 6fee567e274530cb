#include "io/stream_chunks/span_builder.h"

#include <string>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

bool SpanBuilder::goes_on(int64_t query, const std::vector<IndexRange>& runs) const {
  if (query != queries_.end || runs.size() != latest_.size()) return false;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].begin != latest_[i].begin) return false;
    const int64_t more = runs[i].end - latest_[i].end;
    if (more != 0 && more != 1) return false;
    // From its second query on, the band has settled which runs grow.
    const bool grows = latest_[i].end > first_[i].end;
    if (queries_.size() > 1 && grows != (more == 1)) return false;
  }
  return true;
}

void SpanBuilder::add(int64_t query, const std::vector<IndexRange>& runs) {
  std::vector<IndexRange> joined;
  for (const IndexRange& run : runs) {
    if (!joined.empty() && joined.back().end == run.begin) {
      joined.back().end = run.end;
    } else {
      joined.push_back(run);
    }
  }
  if (goes_on(query, joined)) {
    queries_.end = query + 1;
    latest_ = std::move(joined);
    return;
  }
  end_band();
  queries_ = {query, query + 1};
  first_ = latest_ = std::move(joined);
}

void SpanBuilder::end_band() {
  for (size_t i = 0; i < first_.size(); ++i) {
    const bool grows = latest_[i].end > first_[i].end;
    // The last key of the first query begins the diagonal.
    const IndexRange still{first_[i].begin, grows ? first_[i].end - 1 : first_[i].end};
    if (!still.empty()) spans_.push_back({queries_, still});
    if (grows) spans_.push_back({queries_, {still.end, latest_[i].end}, true});
  }
  if (static_cast<int64_t>(spans_.size()) > kMostQuerySpans) {
    throw usage_error("its mask takes more than " + std::to_string(kMostQuerySpans) +
                      " spans of queries and keys");
  }
  first_.clear();
  latest_.clear();
}

std::vector<QuerySpan> SpanBuilder::finish() {
  end_band();
  return std::exchange(spans_, {});
}

}  // namespace attnscope
