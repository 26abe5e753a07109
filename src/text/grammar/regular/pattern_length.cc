#include <algorithm>
#include <optional>

#include "base/text/utf8.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/regular/pattern.h"

namespace foretoken {
namespace {

using PatternKind = Pattern::Kind;

// How many characters every text of `pattern` has, if all have as many.
std::optional<int> FixedLength(const Pattern& pattern) {
  int length = 0;
  switch (pattern.kind) {
    case PatternKind::kClass:
      return 1;
    case PatternKind::kSequence:
      for (const Pattern& part : pattern.parts) {
        const auto own = FixedLength(part);
        if (!own.has_value()) return std::nullopt;
        length = std::min(length + *own, kMaxRepetitions);
      }
      return length;
    case PatternKind::kChoice:
      for (const Pattern& part : pattern.parts) {
        const auto own = FixedLength(part);
        if (!own.has_value() || own != FixedLength(pattern.parts[0])) return std::nullopt;
        length = *own;
      }
      return length;
    case PatternKind::kRepeat: {
      const auto own = FixedLength(pattern.parts[0]);
      if (!own.has_value() || pattern.min != pattern.max) return std::nullopt;
      return static_cast<int>(
          std::min<std::int64_t>(std::int64_t{*own} * pattern.min, kMaxRepetitions));
    }
    default:
      return std::nullopt;
  }
}

Pattern Anything() {
  Pattern anything{.kind = PatternKind::kRepeat, .max = Expression::kUnbounded};
  anything.parts.push_back({.kind = PatternKind::kClass, .ranges = ComplementRanges({})});
  return anything;
}

}  // namespace

std::optional<Pattern> WithLength(const Pattern& pattern, int min, int max) {
  if (pattern.kind != PatternKind::kSequence) return std::nullopt;
  Pattern counted = pattern;
  auto& parts = counted.parts;
  if (parts.empty() || parts.front().kind != PatternKind::kBegin) {
    parts.insert(parts.begin(), {{.kind = PatternKind::kBegin}, Anything()});
  }
  if (parts.back().kind != PatternKind::kEnd)
    parts.insert(parts.end(), {Anything(), {.kind = PatternKind::kEnd}});
  Pattern* varying = nullptr;
  int fixed = 0;
  for (auto part = parts.begin() + 1; part != parts.end() - 1; ++part) {
    if (const auto length = FixedLength(*part)) {
      fixed = std::min(fixed + *length, kMaxRepetitions);
    } else if (varying == nullptr && part->kind == PatternKind::kRepeat &&
               FixedLength(part->parts[0]) == 1) {
      varying = &*part;
    } else {
      return std::nullopt;
    }
  }
  if (varying == nullptr || (max >= 0 && max < fixed)) return std::nullopt;
  varying->min = std::max(varying->min, min - fixed);
  if (max >= 0) varying->max = varying->max < 0 ? max - fixed : std::min(varying->max, max - fixed);
  if (varying->max >= 0 && varying->max < varying->min) return std::nullopt;
  return counted;
}

}  // namespace foretoken
