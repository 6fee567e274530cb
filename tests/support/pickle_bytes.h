#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/zip_bytes.h"

/// Pieces of pickles, in the opcodes that torch.save writes.
namespace attnscope::test::pickled {

inline std::string text(const std::string& s) { return "X" + little_endian(s.size(), 4) + s; }
inline std::string number(int64_t n) { return "J" + little_endian(static_cast<uint64_t>(n), 4); }
inline std::string tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string numbers(const std::vector<int64_t>& list) {
  std::string items;
  for (const int64_t n : list) items += number(n);
  return tuple(items);
}
inline std::string storage(const std::string& type, const std::string& key, int64_t count) {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + number(count)) +
         "Q";
}
inline std::string tensor(const std::string& from, int64_t offset,
                          const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(from + number(offset) + numbers(shape) + numbers(strides) + "\x89" +
               global("collections", "OrderedDict") + ")R") +
         "R";
}
inline std::string dict(const std::string& items) { return "}(" + items + "u"; }
inline std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }

}  // namespace attnscope::test::pickled
