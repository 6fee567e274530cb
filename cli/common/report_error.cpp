#include "cli/common/report_error.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "cli/common/console.h"
#include "core/base/error_kind.h"
#include "core/base/failure_text.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

bool errors_as_json = false;

}  // namespace

void report_errors_as_json() { errors_as_json = true; }

void report_error(std::string_view kind, std::string_view message, const Error::Place& place) {
  write_error_text(fmt::format("attnscope: {}\n", one_line(message)));
  if (!errors_as_json || has_printed_json()) return;
  print_bare_json({{"format", "attnscope-error/1"},
                   {"kind", kind},
                   {"message", one_line(message)},
                   {"file", known_text(place.file)},
                   {"place", known_text(place.place)}},
                  true);
}

void report_error(const std::exception& failure) {
  std::string message = failure_text(failure);
  Error::Place place;
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    place = error->place();
  } else if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    message += ": give a smaller --memory";
  } else if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    place.file = file->path1().string();
  }
  report_error(failure_kind(failure), message, place);
}

std::string_view failure_kind(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return error_kind(error->code());
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&failure) != nullptr) return "file";
  const bool lacks = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr ||
                     dynamic_cast<const std::system_error*>(&failure) != nullptr;
  return lacks ? "resource" : "defect";
}

}  // namespace attnscope
