#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace attnscope {

/// The kind of failure that an Error reports. The command line maps it to its exit code.
enum class ErrorCode {
  usage,        ///< the request is wrong: an option, a selection, a shape that cannot be meant
  file,         ///< a file is missing, unreadable, malformed, or cannot be written
  value,        ///< the numbers in a tensor cannot be used (NaN, Inf)
  resource,     ///< memory, disk or device space does not suffice
  unavailable,  ///< a backend or feature was not built or finds no device
  interrupted,  ///< stopped on request
};

/// The exception thrown at every public boundary. The message is one line of the form
/// "FILE: WHERE: what is wrong (got X, limit Y)", without the program's name and without a full
/// stop; whatever is quoted from a file in it goes through one_line(). Assertions, not Error, are
/// for defects of this program.
class Error : public std::runtime_error {
 public:
  /// The file that an error is about and the place in it, where they are known: empty otherwise.
  struct Place {
    std::string file;
    std::string place;
  };

  Error(ErrorCode code, const std::string& message);
  Error(ErrorCode code, const std::string& message, Place place);
  ErrorCode code() const noexcept { return code_; }
  /// Valid as long as this error or a copy of it.
  const Place& place() const noexcept { return *place_; }

 private:
  ErrorCode code_;
  std::shared_ptr<const Place> place_;  // shared: copies of an exception may not throw
};

/// `text` as a line that a terminal shows as it is: control characters become \\n, \\t or \\xNN,
/// and of more than about 1200 bytes the middle is left out. Texts from files may hold anything.
std::string one_line(std::string_view text);

/// An Error of code `file`: "FILE: WHERE: WHAT"; `where` may be empty.
Error file_error(std::string_view file, std::string_view where, std::string_view what);

/// An Error of code `usage` with the message as it is.
Error usage_error(std::string_view what);

/// The text of an errno value, thread-safe.
std::string errno_text(int error_number);

}  // namespace attnscope
