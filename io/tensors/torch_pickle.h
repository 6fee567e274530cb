#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "io/files/head_memory.h"

namespace attnscope {

/// A type of elements as torch calls it.
struct TorchType {
  std::string name;            ///< "torch.float8_e4m3fn", "torch.ComplexFloatStorage"
  std::optional<DType> dtype;  ///< none: one that this program does not know
};

/// torch's type of two e2m1 codes a byte, whose sizes count bytes.
inline constexpr std::string_view kTorchFp4 = "torch.float4_e2m1fn_x2";

/// The bytes of several tensors, as torch.save keeps them: archive member data/KEY.
struct TorchStorage {
  TorchType type;  ///< of a storage without a type: bytes
  std::string key;
  int64_t count = 0;  ///< elements
};

/// A view of a storage, in elements of the tensor's type; not checked against it.
struct TorchTensor {
  size_t storage = 0;
  TorchType type;
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

/// The content of a pickle of plain values and tensors. Values refer to each other by their index,
/// may be shared, and may even contain themselves.
struct TorchPickle {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    list,     ///< items
    tuple,    ///< items
    dict,     ///< items: key, value, key, value …
    storage,  ///< storages[integer]
    tensor,   ///< tensors[integer]
    name,     ///< text: one of the known globals
  };
  struct Value {
    Kind kind = Kind::none;
    int64_t integer = 0;
    double real = 0;
    std::string text;
    std::vector<size_t> items;
  };
  std::deque<Value> values;
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
  size_t root = 0;
};

/// Interprets data.pkl of a torch.save file. Only the opcodes and globals that plain tensors need
/// are understood, by their exact names; nothing is imported or called. Throws Error(file)
/// "FILE: data.pkl: byte N: …" for anything else, Error(resource) where its values take more than
/// `memory` has left. `file` is how messages name the archive.
///
/// Not a library's work: general readers of pickles make whatever a file names, and the one that is
/// made for such files comes with all of libtorch.
TorchPickle read_torch_pickle(std::string_view bytes, const std::string& file, HeadMemory& memory);

}  // namespace attnscope
