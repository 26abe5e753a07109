#include "core/weights/torch/unpickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "base/files/byte_reader.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

constexpr std::size_t kMostPickledDimensions = 8;
constexpr std::size_t kMostPickleBytes = 16 << 20;
// What a pickle may keep: an instruction of one byte makes a value of a hundred. A tensor takes
// about 30 values.
constexpr std::size_t kMostValues = 1 << 20;

// What a pickle may name: classes of storages, and what makes tensors and dictionaries.
constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
constexpr std::pair<std::string_view, std::string_view> kStorages[] = {
    {"torch.FloatStorage", "F32"},  {"torch.HalfStorage", "F16"}, {"torch.BFloat16Storage", "BF16"},
    {"torch.DoubleStorage", "F64"}, {"torch.LongStorage", "I64"}, {"torch.IntStorage", "I32"},
    {"torch.ShortStorage", "I16"},  {"torch.CharStorage", "I8"},  {"torch.ByteStorage", "U8"},
    {"torch.BoolStorage", "BOOL"}};

// Values are named by their places, so that they can share others and contain themselves.
using Id = std::uint32_t;

struct None {};
struct Tuple {
  std::vector<Id> items;
};
struct Dictionary {
  std::vector<std::pair<Id, Id>> items;
};
struct Storage {
  std::string_view name;
  std::string_view dtype;
  std::int64_t elements = 0;
};
// One of those above.
struct Global {
  std::string_view name;
  std::string_view dtype;
};
using Value = std::variant<None, bool, std::int64_t, std::string_view, Tuple, Dictionary, Global,
                           Storage, PickledTensor>;

constexpr std::string_view kKinds[] = {"None",    "a truth value", "a number",
                                       "a text",  "a tuple",       "a dictionary",
                                       "a class", "a storage",     "a tensor"};

// Runs the instructions of a pickle, each of which works on a stack.
class Unpickler {
 public:
  Unpickler(std::span<const std::byte> pickle, std::string_view where)
      : reader_(pickle), where_(where) {}

  Result<std::vector<std::pair<std::string_view, PickledTensor>>> Run();

 private:
  struct Instruction {
    std::uint8_t code;
    Status (Unpickler::*run)();
  };
  static const Instruction kInstructions[];

  Error Damaged() const {
    return Invalid("{}: the pickle is damaged at byte {}", where_, reader_.position());
  }
  Error Refusal(std::string_view what) const {
    return Invalid("{}: {}, but only a dictionary of tensors is read", where_, what);
  }

  Status Push(Value value);
  /// None where the stack ends, or what is above the mark does.
  std::optional<Id> Pop();
  std::optional<std::vector<Id>> PopToMark();
  template <typename T>
  T* As(std::optional<Id> id) {
    return id ? std::get_if<T>(&values_[*id]) : nullptr;
  }

  template <typename Number>
  Status PushNumber();
  template <typename Length>
  Status PushText();
  template <typename Place>
  Status Put();
  template <typename Place>
  Status Get();
  template <int kItems>
  Status PushTuple();
  template <bool kValue>
  Status PushBool() {
    return Push(kValue);
  }
  Status PushNone() { return Push(None{}); }
  Status PushLong();
  Status PushEmptyTuple() { return Push(Tuple{}); }
  Status PushMarkedTuple();
  Status PushDictionary() { return Push(Dictionary{}); }
  Status Protocol();
  Status Frame() { return reader_.Skip(sizeof(std::uint64_t)) ? Status() : Damaged(); }
  Status Mark();
  Status Memoize();
  Status GlobalLines();
  Status GlobalOfStack();
  Status PushGlobal(std::string_view module, std::string_view name);
  Status PersistentId();
  Status Call();
  Status CallTensor(const Tuple& arguments);
  Status Build();
  Status SetItem();
  Status SetItems();

  std::optional<std::vector<std::int64_t>> Numbers(Id tuple);

  ByteReader reader_;
  std::string_view where_;
  std::vector<Value> values_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // How high the stack was.
  std::unordered_map<std::uint32_t, Id> memo_;
};

constexpr std::uint8_t kStop = '.';

const Unpickler::Instruction Unpickler::kInstructions[] = {
    {0x80, &Unpickler::Protocol},
    {0x95, &Unpickler::Frame},
    {'(', &Unpickler::Mark},
    {'N', &Unpickler::PushNone},
    {0x88, &Unpickler::PushBool<true>},
    {0x89, &Unpickler::PushBool<false>},
    {'J', &Unpickler::PushNumber<std::int32_t>},
    {'K', &Unpickler::PushNumber<std::uint8_t>},
    {'M', &Unpickler::PushNumber<std::uint16_t>},
    {0x8a, &Unpickler::PushLong},
    {'X', &Unpickler::PushText<std::uint32_t>},
    {0x8c, &Unpickler::PushText<std::uint8_t>},
    {')', &Unpickler::PushEmptyTuple},
    {0x85, &Unpickler::PushTuple<1>},
    {0x86, &Unpickler::PushTuple<2>},
    {0x87, &Unpickler::PushTuple<3>},
    {'t', &Unpickler::PushMarkedTuple},
    {'}', &Unpickler::PushDictionary},
    {'s', &Unpickler::SetItem},
    {'u', &Unpickler::SetItems},
    {'q', &Unpickler::Put<std::uint8_t>},
    {'r', &Unpickler::Put<std::uint32_t>},
    {0x94, &Unpickler::Memoize},
    {'h', &Unpickler::Get<std::uint8_t>},
    {'j', &Unpickler::Get<std::uint32_t>},
    {'c', &Unpickler::GlobalLines},
    {0x93, &Unpickler::GlobalOfStack},
    {'Q', &Unpickler::PersistentId},
    {'R', &Unpickler::Call},
    {'b', &Unpickler::Build},
};

Status Unpickler::Push(Value value) {
  stack_.push_back(static_cast<Id>(values_.size()));
  values_.push_back(std::move(value));
  return {};
}

std::optional<Id> Unpickler::Pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return std::nullopt;
  const Id top = stack_.back();
  stack_.pop_back();
  return top;
}

std::optional<std::vector<Id>> Unpickler::PopToMark() {
  if (marks_.empty()) return std::nullopt;
  const auto begin = stack_.begin() + marks_.back();
  std::vector<Id> popped(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return popped;
}

Status Unpickler::Protocol() {
  const auto version = reader_.Read<std::uint8_t>();
  if (!version) return Damaged();
  constexpr int kFirst = 2;
  constexpr int kLast = 5;
  if (*version >= kFirst && *version <= kLast) return {};
  return Invalid("{}: is pickled by protocol {}, but those from {} to {} are read", where_,
                 *version, kFirst, kLast);
}

Status Unpickler::Mark() {
  marks_.push_back(stack_.size());
  return {};
}

template <typename Number>
Status Unpickler::PushNumber() {
  const auto number = reader_.Read<Number>();
  return number ? Push(static_cast<std::int64_t>(*number)) : Damaged();
}

// A number of so many bytes, the last of which has the sign.
Status Unpickler::PushLong() {
  const auto bytes = reader_.ReadText<std::uint8_t>();
  if (!bytes || bytes->size() > sizeof(std::int64_t)) return Damaged();
  const bool negative = !bytes->empty() && static_cast<signed char>(bytes->back()) < 0;
  std::uint64_t number = negative ? ~std::uint64_t{0} : 0;
  for (auto byte = bytes->rbegin(); byte != bytes->rend(); ++byte) {
    number = number << 8 | static_cast<unsigned char>(*byte);
  }
  return Push(static_cast<std::int64_t>(number));
}

template <typename Length>
Status Unpickler::PushText() {
  const auto text = reader_.ReadText<Length>();
  return text ? Push(*text) : Damaged();
}

template <int kItems>
Status Unpickler::PushTuple() {
  Tuple tuple{std::vector<Id>(kItems)};
  for (int i = kItems - 1; i >= 0; --i) {
    const auto item = Pop();
    if (!item) return Damaged();
    tuple.items[i] = *item;
  }
  return Push(std::move(tuple));
}

Status Unpickler::PushMarkedTuple() {
  auto items = PopToMark();
  return items ? Push(Tuple{std::move(*items)}) : Damaged();
}

Status Unpickler::SetItem() {
  const auto value = Pop();
  const auto key = Pop();
  auto* dictionary = stack_.empty() ? nullptr : As<Dictionary>(stack_.back());
  if (!key || !value || dictionary == nullptr) return Damaged();
  dictionary->items.emplace_back(*key, *value);
  return {};
}

Status Unpickler::SetItems() {
  const auto items = PopToMark();
  auto* dictionary = stack_.empty() ? nullptr : As<Dictionary>(stack_.back());
  if (!items || items->size() % 2 != 0 || dictionary == nullptr) return Damaged();
  for (std::size_t i = 0; i < items->size(); i += 2) {
    dictionary->items.emplace_back((*items)[i], (*items)[i + 1]);
  }
  return {};
}

template <typename Place>
Status Unpickler::Put() {
  const auto place = reader_.Read<Place>();
  if (!place || stack_.empty()) return Damaged();
  memo_[*place] = stack_.back();
  return {};
}

Status Unpickler::Memoize() {
  if (stack_.empty()) return Damaged();
  memo_[static_cast<std::uint32_t>(memo_.size())] = stack_.back();
  return {};
}

template <typename Place>
Status Unpickler::Get() {
  const auto place = reader_.Read<Place>();
  const auto found = place ? memo_.find(*place) : memo_.end();
  if (found == memo_.end()) return Damaged();
  stack_.push_back(found->second);
  return {};
}

Status Unpickler::GlobalLines() {
  const auto module = reader_.ReadLine();
  const auto name = module ? reader_.ReadLine() : std::nullopt;
  return name ? PushGlobal(*module, *name) : Damaged();
}

Status Unpickler::GlobalOfStack() {
  const auto* name = As<std::string_view>(Pop());
  const auto* module = As<std::string_view>(Pop());
  if (name == nullptr || module == nullptr) return Damaged();
  return PushGlobal(*module, *name);
}

Status Unpickler::PushGlobal(std::string_view module, std::string_view name) {
  const std::string whole = fmt::format("{}.{}", module, name);
  for (const std::string_view known : {kOrderedDict, kTensor, kParameter}) {
    if (whole == known) return Push(Global{known, ""});
  }
  for (const auto& [known, dtype] : kStorages) {
    if (whole == known) return Push(Global{known, dtype});
  }
  return Refusal(fmt::format("its pickle names {}, which is not run", Printable(whole)));
}

// A storage: ("storage", its class, its name, where it lay, its elements).
Status Unpickler::PersistentId() {
  constexpr std::size_t kItems = 5;
  const auto* tuple = As<Tuple>(Pop());
  if (tuple == nullptr || tuple->items.size() != kItems) return Damaged();
  const auto* what = As<std::string_view>(tuple->items[0]);
  const auto* type = As<Global>(tuple->items[1]);
  const auto* name = As<std::string_view>(tuple->items[2]);
  const auto* elements = As<std::int64_t>(tuple->items[4]);
  const bool good = what != nullptr && *what == "storage" && type != nullptr &&
                    !type->dtype.empty() && name != nullptr && elements != nullptr;
  if (!good) return Damaged();
  return Push(Storage{*name, type->dtype, *elements});
}

std::optional<std::vector<std::int64_t>> Unpickler::Numbers(Id tuple) {
  const auto* items = As<Tuple>(tuple);
  if (items == nullptr || items->items.size() > kMostPickledDimensions) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Id item : items->items) {
    const auto* number = As<std::int64_t>(item);
    if (number == nullptr || *number < 0) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// (Storage, offset, shape, strides, whether it has gradients, hooks, and perhaps metadata.)
Status Unpickler::CallTensor(const Tuple& arguments) {
  constexpr std::size_t kFewest = 6;
  if (arguments.items.size() < kFewest || arguments.items.size() > kFewest + 1) return Damaged();
  const auto* storage = As<Storage>(arguments.items[0]);
  const auto* offset = As<std::int64_t>(arguments.items[1]);
  auto shape = Numbers(arguments.items[2]);
  auto strides = Numbers(arguments.items[3]);
  const bool good = storage != nullptr && offset != nullptr && *offset >= 0 && shape && strides &&
                    shape->size() == strides->size();
  if (!good) return Damaged();
  return Push(PickledTensor{storage->name, storage->dtype, storage->elements, *offset,
                            std::move(*shape), std::move(*strides)});
}

Status Unpickler::Call() {
  const auto* arguments = As<Tuple>(Pop());
  const auto* global = As<Global>(Pop());
  if (arguments == nullptr || global == nullptr) return Damaged();
  if (global->name == kTensor) return CallTensor(*arguments);
  if (global->name == kOrderedDict && arguments->items.empty()) return Push(Dictionary{});
  // A parameter is its tensor.
  const bool parameter = global->name == kParameter && !arguments->items.empty() &&
                         As<PickledTensor>(arguments->items[0]) != nullptr;
  if (!parameter) return Damaged();
  stack_.push_back(arguments->items[0]);
  return {};
}

// What a dictionary has beside its items: versions of modules, which nothing depends on.
Status Unpickler::Build() {
  const auto* state = As<Dictionary>(Pop());
  const bool good = state != nullptr && !stack_.empty() && As<Dictionary>(stack_.back()) != nullptr;
  return good ? Status() : Damaged();
}

Result<std::vector<std::pair<std::string_view, PickledTensor>>> Unpickler::Run() {
  while (true) {
    const auto code = reader_.Read<std::uint8_t>();
    if (!code) return Damaged();
    if (*code == kStop) break;
    const auto* found = std::ranges::find(kInstructions, *code, &Instruction::code);
    if (found == std::end(kInstructions)) {
      return Refusal(fmt::format("its pickle has the instruction 0x{:02x} at byte {}", *code,
                                 reader_.position() - 1));
    }
    FT_RETURN_IF_ERROR((this->*found->run)());
    if (values_.size() + stack_.size() + marks_.size() + memo_.size() > kMostValues) {
      return Invalid("{}: has a pickle of more than {} values", where_, kMostValues);
    }
  }
  const auto top = Pop();
  if (!top) return Damaged();
  const auto* dictionary = As<Dictionary>(top);
  if (dictionary == nullptr) {
    return Refusal(fmt::format("it is {}", kKinds[values_[*top].index()]));
  }
  std::vector<std::pair<std::string_view, PickledTensor>> tensors;
  for (const auto& [key, value] : dictionary->items) {
    const auto* name = As<std::string_view>(key);
    if (name == nullptr) return Refusal(fmt::format("a key is {}", kKinds[values_[key].index()]));
    const auto* tensor = As<PickledTensor>(value);
    if (tensor == nullptr) {
      return Refusal(fmt::format("'{}' is {}", Printable(*name), kKinds[values_[value].index()]));
    }
    tensors.emplace_back(*name, *tensor);
  }
  return tensors;
}

}  // namespace

Result<std::vector<std::pair<std::string_view, PickledTensor>>> UnpickleTensors(
    std::span<const std::byte> pickle, std::string_view where) {
  if (pickle.size() > kMostPickleBytes) {
    return Invalid(
        "{}: has a pickle of {} bytes, but those of tensors' names are not larger than {}", where,
        pickle.size(), kMostPickleBytes);
  }
  return Unpickler(pickle, where).Run();
}

}  // namespace foretoken
