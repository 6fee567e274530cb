#include "modules/module_file.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// The text of dlerror(), without the path where it begins with that.
std::string loader_text(const std::string& path) {
  const char* const said = dlerror();
  const std::string text = said == nullptr ? "the loader does not say why" : said;
  return text.rfind(path + ": ", 0) == 0 ? text.substr(path.size() + 2) : text;
}

}  // namespace

std::string module_path(const ModuleName& name) {
  const char* const given = std::getenv(name.variable);
  if (given != nullptr && *given != '\0') return given;
  std::error_code failure;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
  const fs::path installed = folder.parent_path() / "lib" / "attnscope";
  for (const fs::path& place : {folder, installed}) {
    if (fs::exists(place / name.file, failure)) return (place / name.file).string();
  }
  throw Error(ErrorCode::unavailable, std::string(name.prefix) + "its module " + name.file +
                                          " is neither in " + folder.string() + " nor in " +
                                          installed.string() + " (" + name.variable +
                                          " can name it)");
}

ModuleFile::ModuleFile(const ModuleName& name, const std::string& path, const char* abi_entry,
                       const std::string& abi)
    : name_(name),
      // A name without a slash would be looked for among the system's libraries.
      path_(path.find('/') == std::string::npos ? "./" + path : path),
      handle_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw unavailable(loader_text(path_));
  const std::string found = entry<const char* (*)()>(abi_entry)();
  if (found != abi) {
    throw unavailable("belongs to another build of attnscope (expected \"" + abi + "\", got \"" +
                      found + "\")");
  }
}

void* ModuleFile::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr) {
    throw unavailable("is not attnscope's " + std::string(name_.what) + " module (it has no " +
                      name + ")");
  }
  return found;
}

Error ModuleFile::unavailable(const std::string& what) const {
  return Error(ErrorCode::unavailable, name_.prefix + path_ + ": " + what);
}

}  // namespace attnscope
