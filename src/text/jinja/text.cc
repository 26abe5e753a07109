#include "text/jinja/text.h"

#include <algorithm>

namespace foretoken::jinja {

void Text::AddInput(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!inputs_.empty() && inputs_.back().end == begin) {
    inputs_.back().end = end;
  } else {
    inputs_.push_back({begin, end});
  }
}

void Text::Append(std::string_view bytes, bool from_input) {
  const std::size_t begin = size();
  bytes_.append(bytes);
  if (from_input) AddInput(begin, size());
}

std::vector<Span>::const_iterator Text::FirstInputBehind(std::size_t place) const {
  return std::upper_bound(inputs_.begin(), inputs_.end(), place,
                          [](std::size_t at, const Span& span) { return at < span.end; });
}

void Text::Append(const Text& other, std::size_t begin, std::size_t end) {
  const std::size_t offset = size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto span = other.FirstInputBehind(begin); span != other.inputs_.end() && span->begin < end;
       ++span) {
    AddInput(offset + std::max(span->begin, begin) - begin,
             offset + std::min(span->end, end) - begin);
  }
}

bool Text::IsInput(std::size_t place) const {
  const auto span = FirstInputBehind(place);
  return span != inputs_.end() && span->begin <= place;
}

}  // namespace foretoken::jinja
