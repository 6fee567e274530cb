#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

MapSource exported_call(const StoredFacts& facts, const std::vector<int64_t>& batch,
                        const std::vector<int64_t>& heads) {
  MapSource call;
  call.step = facts.step;
  call.layer = facts.layer;
  call.kind = parse_kind(facts.kind).value_or(CallKind::self);
  call.branches = {facts.branch};
  call.batch = batch;
  call.heads = heads;
  call.queries = facts.query_tokens;
  call.keys = facts.key_tokens;
  call.score = parse_score(facts.score).value_or(ScoreFunction::softmax);
  return call;
}

}  // namespace attnscope
