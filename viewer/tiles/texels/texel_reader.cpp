#include "viewer/tiles/texels/texel_reader.h"

#include "core/base/error.h"

namespace attnscope {

MapSource exported_call(const StoredFacts& facts, const std::vector<int64_t>& batch,
                        const std::vector<int64_t>& heads) {
  MapSource call;
  call.step = facts.step;
  call.layer = facts.layer;
  call.kind = parse_kind(facts.kind).value_or(CallKind::self);
  call.branches = {facts.branch};
  call.place = facts.place;
  call.batch = batch;
  call.heads = heads;
  call.queries = facts.query_tokens;
  call.keys = facts.key_tokens;
  if (facts.mask != "none") call.mask = one_line(facts.mask);
  call.score = parse_score(facts.score).value_or(ScoreFunction::softmax);
  return call;
}

}  // namespace attnscope
