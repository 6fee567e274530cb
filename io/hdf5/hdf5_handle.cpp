#include "io/hdf5/hdf5_handle.h"

#include <string_view>

namespace attnscope {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Keeps the description nearest to the cause: the first of an upward walk.
herr_t keep_first(unsigned, const H5E_error2_t* entry, void* data) {
  auto* text = static_cast<std::string*>(data);
  if (text->empty() && entry->desc != nullptr) *text = entry->desc;
  return 0;
}

/// The text between `before` and `behind`; empty where one of them is missing.
std::string between(const std::string& text, std::string_view before, std::string_view behind) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  const size_t end = text.find(behind, begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

/// The library's reason without its variables (buf = 0x55…, errno = 27): what the system said,
/// where that is in it, or the sentence before them.
std::string plain_reason(const std::string& reason) {
  const std::string system = between(reason, "error message = '", "'");
  if (!system.empty()) return reason.substr(0, reason.find(": ")) + ": " + system;
  if (reason.starts_with("truncated file: ")) {
    const std::string has = between(reason + ",", "eof = ", ",");
    return "is cut off (got " + has + " of " + between(reason + ",", "stored_eof = ", ",") +
           " bytes)";
  }
  const size_t variables = reason.find(" = ");
  if (variables == std::string::npos) return reason;
  const size_t sentence = reason.rfind(": ", variables);
  return sentence == std::string::npos ? "the HDF5 library refuses it" : reason.substr(0, sentence);
}

}  // namespace

Hdf5Session::Hdf5Session() : lock_(library_mutex()) {
  // Has an effect only before the library's first use; afterwards it fails and nothing is lost.
  static const herr_t no_exit_handler = H5dont_atexit();
  static_cast<void>(no_exit_handler);
  H5Eget_auto2(H5E_DEFAULT, &old_report_, &old_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, old_report_, old_data_); }

Error hdf5_error(const std::string& file, const std::string& what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  for (char& c : reason) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  if (reason.empty()) reason = "the HDF5 library gives no reason";
  return file_error(file, what, plain_reason(reason));
}

}  // namespace attnscope
