#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

/// Must live wherever the HDF5 library is called: lets one thread of the process in at a time
/// (builds of the library without thread safety exist), silences its error printing in this thread,
/// and keeps its exit handler from flushing files again after an error.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t old_report_ = nullptr;
  void* old_data_ = nullptr;
};

/// Error(file) "FILE: WHAT: the library's own reason" from this thread's HDF5 error stack.
Error hdf5_error(const std::string& file, const std::string& what);

/// Owns one id of the library; closed by Close on destruction. Movable.
template <herr_t (*Close)(hid_t)>
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  /// Takes the id that a library call returned; throws hdf5_error when it is none.
  Hdf5Handle(hid_t id, const std::string& file, const std::string& what) : id_(id) {
    if (id < 0) throw hdf5_error(file, what);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, static_cast<hid_t>(H5I_INVALID_HID))) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) Close(id_);
  }
  hid_t id() const { return id_; }
  /// Closes now; the result of the library.
  herr_t close() { return Close(std::exchange(id_, static_cast<hid_t>(H5I_INVALID_HID))); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using Hdf5File = Hdf5Handle<H5Fclose>;
using Hdf5Group = Hdf5Handle<H5Gclose>;
using Hdf5Dataset = Hdf5Handle<H5Dclose>;
using Hdf5Space = Hdf5Handle<H5Sclose>;
using Hdf5Type = Hdf5Handle<H5Tclose>;
using Hdf5Properties = Hdf5Handle<H5Pclose>;
using Hdf5Attribute = Hdf5Handle<H5Aclose>;

}  // namespace attnscope
