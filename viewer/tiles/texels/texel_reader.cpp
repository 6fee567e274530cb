#include "viewer/tiles/texels/texel_reader.h"

#include "core/base/error.h"
#include "io/export/read/stored_blocks.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

std::unique_ptr<TexelReader> read_export_texels(const std::filesystem::path& path) {
  if (read_manifest(path).product == "pooled") {
    return read_texels(std::make_shared<const StoredBlocks>(path));
  }
  return read_texels(std::make_shared<const StoredMaps>(path));
}

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
  call.sinks = !facts.sinks.empty();
  call.score = parse_score(facts.score).value_or(ScoreFunction::softmax);
  return call;
}

}  // namespace attnscope
