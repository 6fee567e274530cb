#pragma once

#include <sys/random.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace attnscope::test {

/// A new empty folder, removed with all it holds at the end of its life. Its name is of consonants
/// alone: tests look for words and numbers in what names it, and "0x" or "nan" must not get there
/// by chance.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static constexpr char kLetters[] = "bcdfghjkmpqrvwyz";
    for (int tries = 0; tries < 100; ++tries) {
      std::array<unsigned char, 8> random{};
      if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        continue;
      std::string name = "attnscope-";
      for (const unsigned char value : random) name += kLetters[value % 16];
      path_ = std::filesystem::temp_directory_path() / name;
      if (!std::filesystem::create_directory(path_)) continue;
      std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
      return;
    }
    throw std::runtime_error("no new folder to be had in " + path_.parent_path().string());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace attnscope::test
