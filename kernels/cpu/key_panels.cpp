#include "kernels/cpu/key_panels.h"

namespace attnscope {

KeyPanels::KeyPanels(const PackedHead& head, IndexRange blocks) : head_(head), blocks_(blocks) {
  if (head.panels == nullptr) turn_ = std::unique_lock(head.streaming);
}

const float* KeyPanels::block(int64_t block) {
  if (head_.panels != nullptr) {
    return head_.panels.get() + block * kBlockKeys * head_.format.steps();
  }
  if (!stream_ || block < last_) {
    stream_.reset();
    const AttentionProblem& problem = head_.problem;
    stream_.emplace(StreamedKeys{head_.format, problem.k(), head_.batch,
                                 problem.kv_head(head_.head), head_.key_exponent},
                    IndexRange{block, blocks_.end}, head_.threads);
  }
  last_ = block;
  return stream_->block(block);
}

}  // namespace attnscope
