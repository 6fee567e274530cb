#include "viewer/app/viewer_app.h"

#include "core/base/error.h"
#include "io/masks/block_mask_file.h"
#include "viewer/session/session_paths.h"

// The mask over the matrix as a file.

namespace attnscope {
namespace {

/// Of what the blocks are. Their densities and recalls are not known: what was measured is the
/// mask.
BlockMaskFacts facts_of(const Document& document, const HeadMask& mask) {
  const HeadId& head = mask.request.head;
  const MapSource& call = document.calls[static_cast<size_t>(head.call)];
  const bool is_own = head.call < document.own_calls;
  const std::filesystem::path& of = (is_own ? document.origin : document.other_origin).path;
  const HeadName name{.step = call.step,
                      .layer = call.layer,
                      .branch = call.branch(head.batch),
                      .kind = std::string(kind_name(call.kind)),
                      .batch = head.batch,
                      .head = head.head,
                      .place = call.place};
  return {.capture = of.filename().string(),
          .mask = mask.request.text + (mask.request.edits.empty() ? "" : " (edited)"),
          .block = mask.block,
          .queries = StatedOrder::of(call.queries),
          .keys = StatedOrder::of(call.keys),
          .heads = {{name, {}, {}}}};
}

}  // namespace

void ViewerApp::save_mask(const std::filesystem::path& file) {
  const std::string what = "save-mask " + one_line(file.string()) + ": ";
  const std::shared_ptr<const HeadMask> shown = frame_ ? frame_->mask() : nullptr;
  if (!shown || !shown->problem.empty()) throw usage_error(what + "there is no mask");
  if (file.extension() != ".npy") throw usage_error(what + "the name must end in .npy");
  if (shown->request.head.order != 0) {
    throw usage_error(what + "its blocks are of tokens in another order (first order stored)");
  }
  document_->require_unchanged();
  std::vector<std::filesystem::path> inputs = guarded();
  if (document_->capture) {
    inputs.emplace_back(shown->request.text);
    inputs.push_back(block_facts_path(shown->request.text));
  }
  BlockMaskWriter::check_target(file, settings_.force, inputs);
  BlockMaskWriter writer(file, settings_.force, 1, shown->query_blocks, shown->key_blocks);
  writer.append(shown->kept);
  writer.commit(facts_of(*document_, *shown));
  tell("mask saved: " + told_path(file) + ", blocks of " + std::to_string(shown->block) +
       (shown->block == 1 ? " token" : " tokens"));
}

}  // namespace attnscope
