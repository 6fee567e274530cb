#include "core/error.h"

#include <system_error>

namespace attnscope {

Error file_error(std::string_view file, std::string_view where, std::string_view what) {
  std::string message(file);
  if (!where.empty()) message.append(": ").append(where);
  message.append(": ").append(what);
  return Error(ErrorCode::file, message);
}

Error usage_error(std::string_view what) { return Error(ErrorCode::usage, std::string(what)); }

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace attnscope
