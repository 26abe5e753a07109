#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Writes zip files with stored members, wrong ones too.
class ZipBuilder {
 public:
  bool large = false;        ///< Sizes and places are written with 64 bits.
  std::uint16_t method = 0;  ///< The method of compression, as entries say.
  std::uint16_t flags = 0;

  /// A member, with so many bytes of padding between its name and its data.
  void Add(std::string_view name, std::string_view data, std::uint16_t padding = 0) {
    const std::uint64_t begin = file_.size();
    Head("PK\x03\x04", 0xFFFF, 0xFFFF, name, padding, &file_);
    file_ += name;
    file_.append(padding, 'p');
    file_ += data;
    std::string extra;
    if (large) {
      Append<std::uint16_t>(0xCAFE, &extra);  // A field that means something to others.
      Append<std::uint16_t>(0, &extra);
      Append<std::uint16_t>(1, &extra);
      Append<std::uint16_t>(24, &extra);
      for (const std::uint64_t number : {data.size(), data.size(), begin}) Append(number, &extra);
    }
    const auto bytes = static_cast<std::uint32_t>(large ? 0xFFFFFFFF : data.size());
    std::string entry = "PK\x01\x02";
    Append<std::uint16_t>(20, &entry);
    Append<std::uint16_t>(20, &entry);
    Append(flags, &entry);
    Append(method, &entry);
    entry.append(8, '\0');
    Append(bytes, &entry);
    Append(bytes, &entry);
    Append(static_cast<std::uint16_t>(name.size()), &entry);
    Append(static_cast<std::uint16_t>(extra.size()), &entry);
    entry.append(10, '\0');
    Append(static_cast<std::uint32_t>(large ? 0xFFFFFFFF : begin), &entry);
    directory_ += entry + std::string(name) + extra;
    ++entries_;
  }

  std::string Build(std::string_view comment = "") const {
    std::string file = file_ + directory_;
    if (large) {
      const std::uint64_t end = file.size();
      file += "PK\x06\x06";
      Append<std::uint64_t>(44, &file);
      file.append(12, '\0');
      for (const std::uint64_t number :
           {entries_, entries_, std::uint64_t{directory_.size()}, std::uint64_t{file_.size()}}) {
        Append(number, &file);
      }
      file += "PK\x06\x07";
      file.append(4, '\0');
      Append(end, &file);
      file.append(4, '\0');
    }
    file += "PK\x05\x06";
    file.append(4, '\0');
    const auto entries = static_cast<std::uint16_t>(large ? 0xFFFF : entries_);
    Append(entries, &file);
    Append(entries, &file);
    Append(static_cast<std::uint32_t>(directory_.size()), &file);
    Append(static_cast<std::uint32_t>(large ? 0xFFFFFFFF : file_.size()), &file);
    Append(static_cast<std::uint16_t>(comment.size()), &file);
    return file + std::string(comment);
  }

  template <typename T>
  static void Append(T number, std::string* out) {
    out->append(reinterpret_cast<const char*>(&number), sizeof(T));
  }

 private:
  // What precedes a member; its sizes are written behind it, as torch.save does.
  static void Head(std::string_view signature, std::uint16_t version, std::uint16_t time,
                   std::string_view name, std::uint16_t padding, std::string* out) {
    *out += signature;
    Append(version, out);
    out->append(4, '\0');
    Append(time, out);
    out->append(14, '\0');
    Append(static_cast<std::uint16_t>(name.size()), out);
    Append(padding, out);
  }

  std::string file_;
  std::string directory_;
  std::uint64_t entries_ = 0;
};

/// Pickles, instruction by instruction.
struct Pickled {
  static std::string Text(std::string_view text) {
    std::string out = "X";
    ZipBuilder::Append(static_cast<std::uint32_t>(text.size()), &out);
    return out + std::string(text);
  }
  static std::string Number(std::int64_t number) {
    std::string out = "\x8a\x08";
    ZipBuilder::Append(number, &out);
    return out;
  }
  static std::string Tuple(const std::vector<std::int64_t>& numbers) {
    std::string out = "(";
    for (const std::int64_t number : numbers) out += Number(number);
    return out + "t";
  }
  static std::string Global(std::string_view module, std::string_view name) {
    return "c" + std::string(module) + "\n" + std::string(name) + "\n";
  }
  /// A tensor of a storage of torch's class `type`.
  static std::string Tensor(std::string_view type, std::string_view storage, std::int64_t elements,
                            std::int64_t offset, const std::vector<std::int64_t>& shape,
                            const std::vector<std::int64_t>& strides) {
    return Global("torch._utils", "_rebuild_tensor_v2") + "((" + Text("storage") +
           Global("torch", type) + Text(storage) + Text("cpu") + Number(elements) + "tQ" +
           Number(offset) + Tuple(shape) + Tuple(strides) + "\x89" +
           Global("collections", "OrderedDict") + ")RtR";
  }
  /// A whole pickle of a dictionary of what `items` push: keys and values.
  static std::string Dictionary(std::string_view items) {
    return "\x80\x02}(" + std::string(items) + "u.";
  }
};

}  // namespace foretoken
