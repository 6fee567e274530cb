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

bool as_json = false;

OrderedJson known_text(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

}  // namespace

void report_errors_as_json() { as_json = true; }

void report_error(std::string_view kind, std::string_view message, const Error::Place& place) {
  write_error_text(fmt::format("attnscope: {}\n", one_line(message)));
  if (!as_json || has_printed_json()) return;
  print_bare_json({{"format", "attnscope-error/1"},
                   {"kind", kind},
                   {"message", one_line(message)},
                   {"file", known_text(place.file)},
                   {"place", known_text(place.place)}},
                  true);
}

void report_error(const std::exception& failure) {
  const std::string message = failure_text(failure);
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    report_error(error_kind(error->code()), message, error->place());
  } else if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    report_error("resource", message + ": give a smaller --memory");
  } else if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    report_error("file", message, {file->path1().string(), ""});
  } else {
    const bool of_system = dynamic_cast<const std::system_error*>(&failure) != nullptr;
    report_error(of_system ? "resource" : "defect", message);
  }
}

}  // namespace attnscope
