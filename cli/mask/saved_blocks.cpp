#include "cli/mask/saved_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "cli/common/head_table.h"
#include "cli/run/run_steps.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_cover.h"

namespace attnscope {
namespace {

/// The call with all of its heads: whichever were selected, its digest is one.
SelectedCall whole_call(const CallEntry& call) {
  SelectedCall whole{&call, {}, {}};
  whole.batch.resize(static_cast<size_t>(call.problem->batch()));
  whole.heads.resize(static_cast<size_t>(call.problem->num_heads()));
  std::iota(whole.batch.begin(), whole.batch.end(), int64_t{0});
  std::iota(whole.heads.begin(), whole.heads.end(), int64_t{0});
  return whole;
}

std::string hash_of_call(const Capture& capture, const CallEntry& call,
                         const std::stop_token& stop) {
  return capture.call_hashes({whole_call(call)}, false, stop).front();
}

std::string capture_name(const Capture& capture) { return capture.path().filename().string(); }

/// True of two heads of calls with one name: the same step, layer, branch …
bool is_same_call(HeadName a, HeadName b) {
  a.head = b.head = 0;
  return a == b;
}

/// Where a file's blocks are measured on heads that they are not of.
class ForeignHeads {
 public:
  ForeignHeads(const BlockMaskFile& file, const Capture& capture, const std::stop_token& stop)
      : file_(file), facts_(*file.facts()), capture_(capture), stop_(stop) {}

  void look(const SelectedCall& selected) {
    const AttentionProblem& problem = *selected.call->problem;
    for (const int64_t batch : selected.batch) {
      bool is_other_capture = facts_.capture != capture_name(capture_);
      const HeadName any = head_name(problem.id(), batch, 0);
      if (is_same_call(any, facts_.heads.front().name) && !facts_.capture_hash.empty()) {
        is_other_capture = facts_.capture_hash != hash_of_call(capture_, *selected.call, stop_);
      }
      for (const int64_t head : selected.heads) {
        const HeadName name = head_name(problem.id(), batch, head);
        const HeadName& of = facts_.heads[file_.plane_of(problem, head, selected.heads)].name;
        if (name == of && !is_other_capture) continue;
        if (count_++ == 0) text_ = line(of, name, is_other_capture);
      }
    }
  }

  /// Empty where there are none.
  std::string note() const {
    if (count_ < 2) return text_;
    return text_ + fmt::format(", and on {} other{}", count_ - 1, count_ == 2 ? "" : "s");
  }

 private:
  std::string line(const HeadName& of, const HeadName& name, bool is_other_capture) const {
    const auto capture_text = [&](const std::string& capture) {
      return is_other_capture ? fmt::format("capture {} ", one_line(capture)) : "";
    };
    return fmt::format("{}: is the mask of {}{}, and is measured on {}{}", one_line(file_.name()),
                       capture_text(facts_.capture), head_label(of),
                       capture_text(capture_name(capture_)), head_label(name));
  }

  const BlockMaskFile& file_;
  const BlockMaskFacts& facts_;
  const Capture& capture_;
  const std::stop_token stop_;
  int64_t count_ = 0;
  std::string text_;
};

}  // namespace

SavedBlocks::SavedBlocks(const std::filesystem::path& path, bool force, const HeadTask& first,
                         int64_t heads, int64_t block)
    : block_(block),
      writer_(path, force, heads, ceil_div(first.problem->num_queries(), block),
              ceil_div(first.problem->num_keys(), block)) {}

int64_t SavedBlocks::bytes(const HeadTask& head, int64_t block) {
  // Blocks of one token are the mask, which is there.
  if (block == 1) return 0;
  const int64_t rows = ceil_div(head.problem->num_queries(), block);
  const int64_t columns = ceil_div(head.problem->num_keys(), block);
  // A byte a block, and of the mask a bit.
  const auto bytes = checked_mul(rows, columns + ceil_div(columns, 64) * 8);
  if (!bytes) throw Error(ErrorCode::resource, "the blocks are too many for any memory");
  return *bytes;
}

Mask SavedBlocks::add(const HeadTask& head, const Mask& mask, const std::stop_token& stop) {
  const int64_t rows = head.problem->num_queries();
  BlockMask blocks{.query_blocks = ceil_div(rows, block_),
                   .key_blocks = ceil_div(head.problem->num_keys(), block_),
                   .block_queries = block_,
                   .block_keys = block_,
                   .bits = {}};
  if (block_ > 1) {
    blocks.bits.reserve(static_cast<size_t>(blocks.query_blocks * blocks.key_blocks));
  }
  for (int64_t first = 0; first < rows; first += block_) {
    if (stop.stop_requested()) throw interrupted_error(kNothingWritten);
    const std::vector<uint8_t> line =
        kept_blocks(mask, head.batch, head.head, {first, std::min(first + block_, rows)},
                    head.problem->num_keys(), block_);
    writer_.append(line);
    if (block_ > 1) blocks.bits.insert(blocks.bits.end(), line.begin(), line.end());
  }
  return block_ == 1 ? mask : Mask::blocks(blocks);
}

void SavedBlocks::commit(const Capture& capture, const SelectedCall& call, const std::string& mask,
                         std::vector<SavedHead> heads, const std::stop_token& stop) {
  const AttentionProblem& problem = *call.call->problem;
  writer_.commit({.capture = capture_name(capture),
                  .capture_hash = hash_of_call(capture, *call.call, stop),
                  .mask = mask,
                  .block = block_,
                  .queries = StatedOrder::of(problem.query_tokens()),
                  .keys = StatedOrder::of(problem.key_tokens()),
                  .heads = std::move(heads)});
}

std::vector<std::string> other_head_notes(const std::vector<MaskChoice>& masks,
                                          const std::vector<SelectedCall>& calls,
                                          const Capture& capture, const std::stop_token& stop) {
  std::vector<std::string> notes;
  const auto look = [&](const BlockMaskFile& file) {
    if (!file.facts()) return;
    ForeignHeads others(file, capture, stop);
    for (const SelectedCall& call : calls) others.look(call);
    if (!others.note().empty()) notes.push_back(others.note());
  };
  for (const MaskChoice& mask : masks) mask.for_each_file(look);
  return notes;
}

}  // namespace attnscope
