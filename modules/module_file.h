#pragma once

#include <string>

#include "core/base/error.h"

namespace attnscope {

/// A part of the program that is a file of its own and loaded only when it is wanted, so that the
/// program runs where the libraries that the part needs are missing. Texts live as long as the
/// program.
struct ModuleName {
  const char* what;      ///< "CUDA": it is attnscope's CUDA module
  const char* file;      ///< its name
  const char* variable;  ///< of the environment, that may name another file
  const char* prefix;    ///< with which errors begin
};

/// The file of a module: what its variable names, else the file beside the running program, else in
/// ../lib/attnscope from there (an installed program is in bin/). Throws Error(unavailable) where
/// none of these exists.
std::string module_path(const ModuleName& name);

/// A module that was loaded. It stays so until the program ends, whatever becomes of this object:
/// its threads and what it made run its code. Copies are handles of the same.
class ModuleFile {
 public:
  /// Throws Error(unavailable), one line, where the file cannot be loaded (the line has the
  /// loader's own words, which name a library that is missing), or belongs to another build:
  /// `abi_entry` is the function that says which, `abi` what it has to say.
  ModuleFile(const ModuleName& name, const std::string& path, const char* abi_entry,
             const std::string& abi);

  /// A function of the module. Throws Error(unavailable) where it has none of that name.
  template <typename Function>
  Function entry(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
  Error unavailable(const std::string& what) const;

  ModuleName name_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace attnscope
