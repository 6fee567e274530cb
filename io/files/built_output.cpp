#include "io/files/built_output.h"

#include <optional>

namespace attnscope {

void commit_built(OutputFile& file,
                  const std::function<void(const std::filesystem::path&)>& build) {
  const std::filesystem::path& made = file.new_part_path();
  std::error_code none;
  std::filesystem::remove(made, none);
  std::optional<FileIdentity> ours;
  try {
    build(made);
    ours = file_identity(made);
    file.open_new_part(static_cast<int64_t>(std::filesystem::file_size(made)));
    file.commit_new_part();
  } catch (...) {
    // A file that somebody else put in its place is not ours to remove.
    if (!ours || file_identity(made) == ours) std::filesystem::remove(made, none);
    throw;
  }
}

}  // namespace attnscope
