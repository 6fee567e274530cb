#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope::test {

/// The forms in which an attention call can stand in files.
enum class InputForm : uint8_t {
  safetensors,
  npy,  ///< q.npy, k.npy, v.npy
  npz_stored,
  npz_deflated,
  torch,
  hdf5,          ///< contiguous
  hdf5_chunked,  ///< chunks of 512 KiB, not packed
  hdf5_gzip,     ///< the same, shuffled and deflated
  hdf5_largest,  ///< chunks of 16 MiB, shuffled and deflated, of bytes that do not pack
  named_folder   ///< one .npy file a head and tensor
};

/// Every form, and its name for messages.
const std::vector<std::pair<InputForm, const char*>>& input_forms();

/// Writes q, k and v [1, heads, tokens, d] of f16 zeros in `folder`, as files with holes where the
/// form allows it, and what the program takes as its input then: a path, or --q, --k and --v.
/// hdf5_largest holds small random numbers in q and k. Forms that hold a whole call in a file have
/// `out` of zeros for row 0 too.
std::vector<std::string> write_large_input(InputForm form, const std::string& folder, int64_t heads,
                                           int64_t tokens, int64_t d);

}  // namespace attnscope::test
