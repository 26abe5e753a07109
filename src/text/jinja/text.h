#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::jinja {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const Span&) const = default;
};

/// UTF-8 that knows which of its bytes the template did not write itself: they came from the
/// inputs. Whatever is cut out of a text or joined to another keeps that knowledge, so that the
/// reader of a rendered text can tell a mark of the template from one that a user typed.
class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, bool from_input = false) { Append(bytes, from_input); }

  const std::string& bytes() const { return bytes_; }
  /// In order, apart from each other, none empty.
  const std::vector<Span>& inputs() const { return inputs_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void Append(std::string_view bytes, bool from_input = false);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  /// Appends bytes [begin, end) of `other`.
  void Append(const Text& other, std::size_t begin, std::size_t end);
  /// Whether the byte at `place` came from the inputs.
  bool IsInput(std::size_t place) const;

  /// The text's bytes, given away.
  std::string Release() && { return std::move(bytes_); }

 private:
  /// The first of the inputs that ends behind `place`.
  std::vector<Span>::const_iterator FirstInputBehind(std::size_t place) const;
  void AddInput(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<Span> inputs_;
};

}  // namespace foretoken::jinja
