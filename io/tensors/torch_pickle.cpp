#include "io/tensors/torch_pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "io/files/utf8.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {
namespace {

// Opcodes and their arguments: CPython's Lib/pickletools.py. What torch.save writes with them:
// torch/serialization.py and torch/_utils.py.

using Kind = TorchPickle::Kind;
using Value = TorchPickle::Value;

constexpr size_t kMark = ~size_t{0};
/// Bytes of a place in a list that grows, and of one in the memo.
constexpr int64_t kPlaceBytes = 2 * sizeof(size_t);
constexpr int64_t kMemoBytes = 64;

struct StorageName {
  std::string_view name;
  std::optional<DType> dtype;
};
/// Storages without a type, whose tensors have one each.
constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";
constexpr std::array kStorages{StorageName{"torch.FloatStorage", DType::f32},
                               StorageName{"torch.HalfStorage", DType::f16},
                               StorageName{"torch.BFloat16Storage", DType::bf16},
                               StorageName{"torch.DoubleStorage", DType::f64},
                               StorageName{"torch.LongStorage", DType::i64},
                               StorageName{"torch.IntStorage", DType::i32},
                               StorageName{"torch.ShortStorage", DType::i16},
                               StorageName{"torch.CharStorage", DType::i8},
                               StorageName{"torch.ByteStorage", DType::u8},
                               StorageName{"torch.BoolStorage", DType::boolean},
                               StorageName{"torch.ComplexFloatStorage", std::nullopt},
                               StorageName{"torch.ComplexDoubleStorage", std::nullopt},
                               StorageName{kUntyped, DType::u8}};

/// The globals that a pickle may call, each with arguments that are checked.
constexpr std::array<std::string_view, 6> kCallables{"collections.OrderedDict",
                                                     "torch.Size",
                                                     "torch.device",
                                                     "torch._utils._rebuild_tensor_v2",
                                                     "torch._utils._rebuild_tensor_v3",
                                                     "torch._utils._rebuild_parameter"};

/// The global that makes a tensor of some class of its own. It passes, so that the error names the
/// class, which follows.
constexpr std::string_view kRebuildClass = "torch._tensor._rebuild_from_type_v2";

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kTypes{TypeName{"float64", DType::f64},
                            TypeName{"float32", DType::f32},
                            TypeName{"float16", DType::f16},
                            TypeName{"bfloat16", DType::bf16},
                            TypeName{"int64", DType::i64},
                            TypeName{"int32", DType::i32},
                            TypeName{"int16", DType::i16},
                            TypeName{"int8", DType::i8},
                            TypeName{"uint64", DType::u64},
                            TypeName{"uint32", DType::u32},
                            TypeName{"uint16", DType::u16},
                            TypeName{"uint8", DType::u8},
                            TypeName{"bool", DType::boolean},
                            TypeName{"float8_e4m3fn", DType::e4m3},
                            TypeName{"float8_e5m2", DType::e5m2},
                            TypeName{"float8_e4m3fnuz", DType::e4m3fnuz},
                            TypeName{"float8_e5m2fnuz", DType::e5m2fnuz},
                            TypeName{"float8_e8m0fnu", DType::u8},
                            TypeName{"float4_e2m1fn_x2", DType::u8}};

constexpr size_t kLongestTypeName = 64;

/// torch's types of elements, those of later versions too: a kind of number and how many bits.
std::optional<TorchType> torch_type(const std::string& global) {
  constexpr std::string_view kModule = "torch.";
  if (!global.starts_with(kModule) || global.size() > kLongestTypeName) return std::nullopt;
  const std::string_view name = std::string_view(global).substr(kModule.size());
  for (const TypeName& known : kTypes) {
    if (known.name == name) return TorchType{global, known.dtype};
  }
  for (const std::string_view kind :
       {"float", "bfloat", "int", "uint", "complex", "qint", "quint", "bits"}) {
    const bool is_one = name.size() > kind.size() && name.starts_with(kind) &&
                        name[kind.size()] >= '0' && name[kind.size()] <= '9' &&
                        name.find('.') == std::string_view::npos;
    if (is_one) return TorchType{global, std::nullopt};
  }
  return std::nullopt;
}

/// Opcodes that make objects of any class or look into a registry of them: refused by name.
std::string opcode_text(unsigned char code) {
  const std::map<unsigned char, std::string_view> names{
      {'b', "BUILD"},           {'i', "INST"},           {'o', "OBJ"},          {0x81, "NEWOBJ"},
      {0x92, "NEWOBJ_EX"},      {0x82, "EXT1"},          {0x83, "EXT2"},        {0x84, "EXT4"},
      {'P', "PERSID"},          {'C', "SHORT_BINBYTES"}, {'B', "BINBYTES"},     {0x8e, "BINBYTES8"},
      {0x96, "BYTEARRAY8"},     {0x8b, "LONG4"},         {0x97, "NEXT_BUFFER"}, {0x8f, "EMPTY_SET"},
      {'U', "SHORT_BINSTRING"}, {'T', "BINSTRING"},      {'I', "INT"},          {'0', "POP"}};
  const auto found = names.find(code);
  if (found != names.end()) return "the opcode " + std::string(found->second);
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("the opcode 0x") + kDigits[code >> 4] + kDigits[code & 15];
}

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& file, HeadMemory& memory)
      : bytes_(bytes), file_(file), memory_(memory) {}

  TorchPickle run() {
    while (!stopped_) {
      start_ = at_;
      // Any opcode may add one place to the stack.
      take_memory(kPlaceBytes);
      step(static_cast<unsigned char>(take(1)[0]));
    }
    if (at_ != bytes_.size()) fail("bytes follow the end of the pickle");
    if (stack_.size() != 1 || stack_[0] == kMark) fail("does not end with one value");
    result_.root = stack_[0];
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(file_, "data.pkl: byte " + std::to_string(start_), what);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail("needs " + std::to_string(count) + " bytes more than stand there (got " +
           std::to_string(bytes_.size() - at_) + ")");
    }
    const std::string_view piece = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += piece.size();
    return piece;
  }
  uint64_t take_number(size_t width) {
    const std::string_view piece = take(width);
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(piece[i]);
    return value;
  }
  std::string take_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("a line does not end");
    std::string line(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return line;
  }

  void take_memory(int64_t bytes) { memory_.take(bytes, "data.pkl", "what it holds"); }
  static int64_t place_bytes(size_t count) { return static_cast<int64_t>(count) * kPlaceBytes; }

  size_t make(Value value) {
    take_memory(static_cast<int64_t>(sizeof(Value) + value.text.capacity()) +
                place_bytes(value.items.size()));
    result_.values.push_back(std::move(value));
    return result_.values.size() - 1;
  }
  void push(Value value) { stack_.push_back(make(std::move(value))); }
  size_t pop() {
    if (stack_.empty()) fail("takes a value from an empty stack");
    const size_t top = stack_.back();
    if (top == kMark) fail("takes a value where a mark stands");
    stack_.pop_back();
    return top;
  }
  size_t top() {
    const size_t value = pop();
    stack_.push_back(value);
    return value;
  }
  std::vector<size_t> pop_to_mark() {
    std::vector<size_t> items;
    while (!stack_.empty() && stack_.back() != kMark) {
      items.push_back(stack_.back());
      stack_.pop_back();
    }
    if (stack_.empty()) fail("there is no mark");
    stack_.pop_back();
    std::reverse(items.begin(), items.end());
    return items;
  }
  Value& value(size_t index) { return result_.values[index]; }

  void push_text(uint64_t length) {
    const std::string_view text = take(length);
    if (!valid_utf8(text)) fail("a string is no valid UTF-8");
    push({Kind::text, 0, 0, std::string(text), {}});
  }
  void push_integer(int64_t number) { push({Kind::integer, number, 0, "", {}}); }
  void push_tuple(size_t count) {
    std::vector<size_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push({Kind::tuple, 0, 0, "", std::move(items)});
  }

  void step(unsigned char code) {
    if (step_scalar(code) || step_container(code) || step_memo(code)) return;
    switch (code) {
      case 0x80: {  // PROTO
        const uint64_t protocol = take_number(1);
        if (protocol < 2 || protocol > 5) fail("unknown protocol " + std::to_string(protocol));
        return;
      }
      case 0x95:  // FRAME: how many bytes to read ahead
        if (take_number(8) > bytes_.size() - at_) fail("a frame ends beyond the pickle");
        return;
      case '.':  // STOP
        stopped_ = true;
        return;
      case 'c': {  // GLOBAL
        const std::string module = take_line();
        return push_global(module, take_line());
      }
      case 0x93: {  // STACK_GLOBAL
        const size_t name = pop(), module = pop();
        if (value(name).kind != Kind::text || value(module).kind != Kind::text) {
          fail("a global's name is no string");
        }
        return push_global(value(module).text, value(name).text);
      }
      case 'Q':  // BINPERSID
        return push_storage(pop());
      case 'R': {  // REDUCE
        const size_t arguments = pop(), callable = pop();
        return call(callable, arguments);
      }
      default:
        fail(opcode_text(code) +
             " is not allowed: the file holds more than tensors, numbers and "
             "strings");
    }
  }

  bool step_scalar(unsigned char code) {
    switch (code) {
      case 'N':
        push({});
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push({Kind::boolean, code == 0x88 ? 1 : 0, 0, "", {}});
        return true;
      case 'J':  // BININT
        push_integer(static_cast<int32_t>(take_number(4)));
        return true;
      case 'K':  // BININT1
        push_integer(static_cast<int64_t>(take_number(1)));
        return true;
      case 'M':  // BININT2
        push_integer(static_cast<int64_t>(take_number(2)));
        return true;
      case 0x8a:  // LONG1
        push_long();
        return true;
      case 'G': {  // BINFLOAT, big-endian
        const std::string_view piece = take(8);
        uint64_t bits = 0;
        for (const char c : piece) bits = bits << 8 | static_cast<unsigned char>(c);
        push({Kind::real, 0, std::bit_cast<double>(bits), "", {}});
        return true;
      }
      case 'X':  // BINUNICODE
        push_text(take_number(4));
        return true;
      case 0x8c:  // SHORT_BINUNICODE
        push_text(take_number(1));
        return true;
      case 0x8d:  // BINUNICODE8
        push_text(take_number(8));
        return true;
      default:
        return false;
    }
  }

  /// Two's complement, little-endian.
  void push_long() {
    const uint64_t length = take_number(1);
    const std::string_view piece = take(length);
    if (length > 8) fail("an integer needs more than 64 bits");
    uint64_t number = 0;
    for (size_t i = piece.size(); i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(piece[i]);
    }
    const bool negative = !piece.empty() && (piece.back() & 0x80) != 0;
    if (negative && length < 8) number |= ~uint64_t{0} << (8 * length);
    push_integer(static_cast<int64_t>(number));
  }

  bool step_container(unsigned char code) {
    switch (code) {
      case '(':
        stack_.push_back(kMark);
        return true;
      case ')':
        push({Kind::tuple, 0, 0, "", {}});
        return true;
      case ']':
        push({Kind::list, 0, 0, "", {}});
        return true;
      case '}':
        push({Kind::dict, 0, 0, "", {}});
        return true;
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        push_tuple(code - 0x84u);
        return true;
      case 't':
        push({Kind::tuple, 0, 0, "", pop_to_mark()});
        return true;
      case 'a':
        add_items(Kind::list, {pop()});
        return true;
      case 'e':
        add_items(Kind::list, pop_to_mark());
        return true;
      case 's': {
        const size_t item = pop(), key = pop();
        add_items(Kind::dict, {key, item});
        return true;
      }
      case 'u':
        add_items(Kind::dict, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  void add_items(Kind kind, const std::vector<size_t>& items) {
    Value& target = value(top());
    if (target.kind != kind) {
      fail(kind == Kind::dict ? "sets an item of what is no dictionary"
                              : "appends to what is no list");
    }
    if (kind == Kind::dict && items.size() % 2 != 0) fail("a dictionary's key lacks its value");
    take_memory(place_bytes(items.size()));
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool step_memo(unsigned char code) {
    switch (code) {
      case 'q':  // BINPUT
        keep(take_number(1));
        return true;
      case 'r':  // LONG_BINPUT
        keep(take_number(4));
        return true;
      case 0x94:  // MEMOIZE
        keep(memo_.size());
        return true;
      case 'h':  // BINGET
        push_memo(take_number(1));
        return true;
      case 'j':  // LONG_BINGET
        push_memo(take_number(4));
        return true;
      default:
        return false;
    }
  }
  void keep(uint64_t place) {
    take_memory(kMemoBytes);
    memo_[place] = top();
  }
  void push_memo(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("memo " + std::to_string(place) + " was never set");
    stack_.push_back(found->second);
  }

  void push_global(const std::string& module, const std::string& name) {
    const std::string full = module + "." + name;
    if (torch_type(full)) return push({Kind::text, 0, 0, full, {}});
    const bool storage = std::any_of(kStorages.begin(), kStorages.end(),
                                     [&](const StorageName& s) { return s.name == full; });
    const bool callable = full == kRebuildClass ||
                          std::find(kCallables.begin(), kCallables.end(), full) != kCallables.end();
    if (!storage && !callable) {
      const bool nested = full.find("nested") != std::string::npos;
      fail("the global " + full + " is not allowed: the file holds " +
           (nested ? "a nested (jagged) tensor: save its values() as q and k, and its offsets() as "
                     "cu_seqlens"
                   : "more than tensors, numbers and strings"));
    }
    push({Kind::name, 0, 0, full, {}});
  }

  /// ('storage', torch.FloatStorage, key, location, number of elements)
  void push_storage(size_t index) {
    const Value& id = value(index);
    const bool tuple = id.kind == Kind::tuple && id.items.size() == 5;
    const auto item = [&](size_t i) -> const Value& { return value(id.items[i]); };
    if (!tuple || item(0).text != "storage" || item(1).kind != Kind::name ||
        item(2).kind != Kind::text || item(3).kind != Kind::text || item(4).kind != Kind::integer ||
        item(4).integer < 0) {
      fail("a persistent id is no storage");
    }
    TorchStorage storage;
    const auto known = std::find_if(kStorages.begin(), kStorages.end(),
                                    [&](const StorageName& s) { return s.name == item(1).text; });
    if (known == kStorages.end()) fail(item(1).text + " is no storage");
    storage.type = {std::string(known->name), known->dtype};
    storage.key = item(2).text;
    storage.count = item(4).integer;
    const bool safe = !storage.key.empty() && storage.key != "." && storage.key != ".." &&
                      std::all_of(storage.key.begin(), storage.key.end(), [](unsigned char c) {
                        return c > ' ' && c < 0x7f && c != '/' && c != '\\';
                      });
    if (!safe) fail("a storage has the unsafe key \"" + storage.key + "\"");
    take_memory(static_cast<int64_t>(2 * sizeof(TorchStorage) + storage.key.capacity()));
    result_.storages.push_back(std::move(storage));
    push({Kind::storage, static_cast<int64_t>(result_.storages.size() - 1), 0, "", {}});
  }

  void call(size_t callable, size_t arguments) {
    const std::string name = value(callable).kind == Kind::name ? value(callable).text : "";
    if (name.empty()) fail("calls what is no known function");
    if (value(arguments).kind != Kind::tuple) fail("calls " + name + " without a tuple");
    const std::vector<size_t>& items = value(arguments).items;
    if (name == "collections.OrderedDict" && items.empty()) {
      return push({Kind::dict, 0, 0, "", {}});
    }
    if (name == "torch.Size" && items.size() == 1 && is_sequence(items[0])) {
      return push({Kind::tuple, 0, 0, "", value(items[0]).items});
    }
    if (name == "torch.device" && !items.empty() && value(items[0]).kind == Kind::text) {
      return push({Kind::text, 0, 0, value(items[0]).text, {}});
    }
    if (name == "torch._utils._rebuild_parameter" && items.size() == 3 &&
        value(items[0]).kind == Kind::tensor && is_empty(items[2])) {
      stack_.push_back(items[0]);
      return;
    }
    if (name == "torch._utils._rebuild_tensor_v2") return push_tensor(items);
    if (name == "torch._utils._rebuild_tensor_v3") return push_untyped_tensor(items);
    fail("calls " + name + " with arguments that no plain tensor has");
  }

  bool is_sequence(size_t index) {
    return value(index).kind == Kind::tuple || value(index).kind == Kind::list;
  }
  /// Hooks and metadata, where there are none.
  bool is_empty(size_t index) {
    const Value& v = value(index);
    return v.kind == Kind::none || (v.kind == Kind::dict && v.items.empty());
  }

  /// (untyped storage, offset, size, stride, requires_grad, backward_hooks, dtype[, metadata])
  void push_untyped_tensor(std::vector<size_t> items) {
    const bool typed = items.size() >= 7 && value(items[6]).kind == Kind::text;
    const auto type = typed ? torch_type(value(items[6]).text) : std::nullopt;
    if (!type) fail("a tensor has no known kind of type");
    items.erase(items.begin() + 6);
    push_tensor(items, type);
  }

  /// (storage, offset, size, stride, requires_grad, backward_hooks[, metadata]); the elements are
  /// of `type` where the storage has none.
  void push_tensor(const std::vector<size_t>& items, std::optional<TorchType> type = {}) {
    const bool plain =
        (items.size() == 6 || items.size() == 7) && value(items[0]).kind == Kind::storage &&
        value(items[1]).kind == Kind::integer &&
        std::all_of(items.begin() + 5, items.end(), [&](size_t item) { return is_empty(item); });
    if (!plain) fail("a tensor is no plain one (complex or negated views, hooks)");
    TorchTensor tensor;
    tensor.storage = static_cast<size_t>(value(items[0]).integer);
    const TorchType& stored = result_.storages[tensor.storage].type;
    if (type.has_value() != (stored.name == kUntyped)) {
      fail("a tensor's type and its storage do not fit each other");
    }
    tensor.type = type.value_or(stored);
    tensor.offset = value(items[1]).integer;
    tensor.shape = numbers(items[2]);
    tensor.strides = numbers(items[3]);
    if (tensor.shape.size() != tensor.strides.size() || tensor.offset < 0) {
      fail("a tensor's size and stride do not fit each other");
    }
    take_memory(static_cast<int64_t>(2 * sizeof(TorchTensor)) +
                2 * place_bytes(tensor.shape.size()));
    result_.tensors.push_back(std::move(tensor));
    push({Kind::tensor, static_cast<int64_t>(result_.tensors.size() - 1), 0, "", {}});
  }
  std::vector<int64_t> numbers(size_t index) {
    if (!is_sequence(index) || value(index).items.size() > kMaxRank) {
      fail("a tensor's size or stride is no tuple of at most 64 numbers");
    }
    std::vector<int64_t> list;
    for (const size_t item : value(index).items) {
      if (value(item).kind != Kind::integer || value(item).integer < 0) {
        fail("a tensor's size or stride is no number from 0");
      }
      list.push_back(value(item).integer);
    }
    return list;
  }

  std::string_view bytes_;
  const std::string& file_;
  HeadMemory& memory_;
  size_t at_ = 0;
  size_t start_ = 0;  ///< of the opcode at work
  bool stopped_ = false;
  std::vector<size_t> stack_;
  std::map<uint64_t, size_t> memo_;
  TorchPickle result_;
};

}  // namespace

TorchPickle read_torch_pickle(std::string_view bytes, const std::string& file, HeadMemory& memory) {
  return PickleMachine(bytes, file, memory).run();
}

}  // namespace attnscope
