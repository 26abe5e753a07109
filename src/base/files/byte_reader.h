#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace foretoken {

/// Reads little-endian fields from the front of bytes; what it returns borrows these. Each is none
/// where the bytes end before it does.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  /// What was read since a former position.
  std::span<const std::byte> Since(std::size_t position) const {
    return bytes_.subspan(position, position_ - position);
  }
  std::size_t left() const { return bytes_.size() - position_; }

  template <typename T>
  std::optional<T> Read() {
    static_assert(std::endian::native == std::endian::little);
    if (left() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::optional<std::span<const std::byte>> Skip(std::uint64_t bytes) {
    if (left() < bytes) return std::nullopt;
    const auto skipped = bytes_.subspan(position_, bytes);
    position_ += bytes;
    return skipped;
  }

  /// Text behind its length.
  template <typename Length>
  std::optional<std::string_view> ReadText() {
    const auto length = Read<Length>();
    return length ? SkipText(*length) : std::nullopt;
  }
  std::optional<std::string_view> SkipText(std::uint64_t bytes) {
    const auto text = Skip(bytes);
    if (!text) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(text->data()), text->size());
  }
  /// Text before the end of a line, which is read too.
  std::optional<std::string_view> ReadLine() {
    const auto rest = bytes_.subspan(position_);
    const auto end = std::ranges::find(rest, std::byte{'\n'});
    if (end == rest.end()) return std::nullopt;
    const auto text = SkipText(static_cast<std::uint64_t>(end - rest.begin()));
    ++position_;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace foretoken
