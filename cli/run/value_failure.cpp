#include "cli/run/value_failure.h"

#include <string>

#include "io/files/output_file.h"

namespace attnscope {

bool is_of_values(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known != nullptr && known->code() == ErrorCode::value;
}

void remove_partial(const std::filesystem::path& out) {
  OutputFile(out, {.resume = true}).remove_partial();
}

void give_up_partial(const std::filesystem::path& out, const Error& error) {
  remove_partial(out);
  throw Error(error.code(), error.what() + std::string("; nothing was kept"), error.place());
}

}  // namespace attnscope
