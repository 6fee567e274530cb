#include "io/capture/interrupted_relabel.h"

#include "core/base/error.h"

namespace attnscope {

void refuse_interrupted_relabel(const std::filesystem::path& folder) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(folder / kRelabelJournal, error);
  if (error || status.type() == std::filesystem::file_type::not_found) return;
  const std::string name = folder.empty() ? "." : folder.string();
  throw file_error(
      name, "",
      "is being relabelled, or that was interrupted: attnscope relabel " + name + " finishes it");
}

}  // namespace attnscope
