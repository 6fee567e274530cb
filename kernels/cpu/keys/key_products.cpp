#include "kernels/cpu/keys/key_products.h"

namespace attnscope {

KeyProducts::KeyProducts(const PackedHead& head, IndexRange blocks, const float* queries)
    : head_(head), blocks_(blocks), queries_(queries) {
  if (streamed() && head_.known.first == nullptr) turn_ = std::unique_lock(head.streaming);
}

const float* KeyProducts::panels(int64_t block) const {
  return head_.panels.get() + block * kBlockKeys * head_.format.steps();
}

KeyProducts::Products KeyProducts::products(int64_t block) {
  if (head_.known.first != nullptr) {
    return {head_.known.first + block * kBlockKeys, head_.known.stride};
  }
  if (!stream_ || block < last_) {
    stream_.reset();
    const AttentionProblem& problem = head_.problem;
    const StreamedProduct product{.format = head_.format,
                                  .k = problem.k(),
                                  .batch = head_.batch,
                                  .head = problem.kv_head(head_.head),
                                  .key_exponent = head_.key_exponent,
                                  .q = queries_,
                                  .raw = head_.products.raw};
    stream_.emplace(product, IndexRange{block, blocks_.end}, head_.threads);
  }
  last_ = block;
  return {stream_->block(block), stream_->stride()};
}

}  // namespace attnscope
