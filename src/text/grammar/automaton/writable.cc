#include "text/grammar/automaton/writable.h"

#include <algorithm>
#include <string_view>

#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

class Keeper {
 public:
  explicit Keeper(const ByteSet& writable) : writable_(writable) {}

  // Makes what cannot be written a class without characters, which matches nothing.
  void Visit(Expression* expression) {
    switch (expression->kind) {
      case Expression::Kind::kLiteral:
        if (!AllWritable(expression->literal)) *expression = ClassOf({});
        return;
      case Expression::Kind::kBeginUnique:
        if (!AllWritable("[")) *expression = ClassOf({});
        return;
      case Expression::Kind::kClass:
        if (!AnyWritable(expression->ranges)) *expression = ClassOf({});
        return;
      default:
        for (Expression& part : expression->parts) Visit(&part);
    }
  }

  std::uint8_t missed() const { return missed_; }

 private:
  bool AllWritable(std::string_view text) {
    return std::ranges::all_of(text, [&](char c) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (!writable_[byte]) missed_ = byte;
      return writable_[byte];
    });
  }

  bool AnyWritable(const std::vector<CodeRange>& ranges) {
    for (const CodeRange& range : ranges) {
      for (const ByteSequence& sequence : Utf8Sequences(range)) {
        if (HasWritable(sequence, writable_)) return true;
        for (const ByteRange& bytes : sequence) {
          if (WritableRanges(bytes, writable_).empty()) missed_ = bytes.first;
        }
      }
    }
    return false;
  }

  const ByteSet& writable_;
  std::uint8_t missed_ = 0;
};

}  // namespace

StaticVector<ByteRange, 128> WritableRanges(ByteRange range, const ByteSet& writable) {
  StaticVector<ByteRange, 128> ranges;
  bool open = false;
  for (int value = range.first; value <= range.last; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    if (!writable[byte]) {
      open = false;
    } else if (open) {
      ranges.back().last = byte;
    } else {
      ranges.push_back({byte, byte});
      open = true;
    }
  }
  return ranges;
}

bool HasWritable(const ByteSequence& sequence, const ByteSet& writable) {
  return std::ranges::none_of(
      sequence, [&](const ByteRange& range) { return WritableRanges(range, writable).empty(); });
}

std::optional<std::uint8_t> KeepWritable(const ByteSet& writable, Grammar* grammar) {
  Keeper keeper(writable);
  for (GrammarRule& rule : grammar->rules) keeper.Visit(&rule.body);
  if (DropUnmatchable(grammar)) return std::nullopt;
  return keeper.missed();
}

}  // namespace foretoken
