#include "io/hdf5/hdf5_handle.h"

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
  return file_error(file, what, reason);
}

}  // namespace attnscope
