#include "viewer/app/viewer_app.h"

#include "core/base/error.h"
#include "io/capture/call/block_mask_file.h"
#include "io/files/output_file.h"

// The mask over the matrix as a file.

namespace attnscope {

void ViewerApp::save_mask(const std::filesystem::path& file) {
  const std::string what = "save-mask " + one_line(file.string()) + ": ";
  const std::shared_ptr<const HeadMask> shown = mask();
  if (!shown || !shown->problem.empty()) throw usage_error(what + "there is no mask");
  if (file.extension() != ".npy") throw usage_error(what + "the name must end in .npy");
  if (shown->request.head.order != 0) {
    throw usage_error(what + "its blocks are of tokens in another order (first order stored)");
  }
  document_->require_unchanged();
  std::vector<std::filesystem::path> inputs;
  if (document_->capture) {
    inputs = document_->capture->files();
    inputs.emplace_back(shown->request.text);
  }
  OutputFile::check_target(file, {.force = settings_.force, .inputs = inputs});
  BlockMaskWriter writer(file, settings_.force, 1, shown->query_blocks, shown->key_blocks);
  writer.append(shown->kept);
  writer.commit();
  tell("mask saved: " + std::filesystem::absolute(file).string() + ", blocks of " +
       std::to_string(shown->block) + (shown->block == 1 ? " token" : " tokens"));
}

}  // namespace attnscope
