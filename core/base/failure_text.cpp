#include "core/base/failure_text.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "core/base/error.h"

namespace attnscope {

std::string failure_text(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return error->what();
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) return "out of memory";
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    return one_line(file->path1().string()) + ": " + errno_text(file->code().value());
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&failure)) {
    return "the system refuses what attnscope needs: " + errno_text(system->code().value()) +
           " (threads and processes: ulimit -u; open files: ulimit -n)";
  }
  return "a defect of attnscope: please report it with its input";
}

}  // namespace attnscope
