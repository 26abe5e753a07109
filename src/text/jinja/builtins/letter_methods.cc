#include <array>

#include "base/text/utf8.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/letters.h"

namespace foretoken::jinja {
namespace {

template <Value (*kOperation)(Workspace*, const Text&)>
Value PlainMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "a method for letter case", arguments);
  return parameters.Close() ? kOperation(workspace, *self.AsText()) : Value();
}

/// Each letter behind one without case is a capital, each behind one with case is not.
Value TitleByLetters(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  bool inside = false;
  const auto map = [&](std::uint32_t code, std::size_t place, std::string* replacement) {
    if (inside) {
      AppendLower(text.bytes(), place, replacement);
    } else {
      AppendTitle(code, replacement);
    }
    inside = IsCased(code);
    return true;
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

Value SwapCase(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  const auto map = [&](std::uint32_t code, std::size_t place, std::string* replacement) {
    if (IsUpper(code)) {
      AppendLower(text.bytes(), place, replacement);
    } else if (IsLower(code)) {
      AppendUpper(code, replacement);
    }
    return !replacement->empty();
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

bool IsLetterOrDigit(std::uint32_t code) { return IsLetter(code) || IsDecimal(code); }

/// Whether there are characters, and all are of a kind.
template <bool (*kKind)(std::uint32_t)>
Value All(Workspace* workspace, const Value& self, Arguments*) {
  const std::string& bytes = self.AsText()->bytes();
  if (!workspace->StepOver(bytes.size())) return {};
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    if (!kKind(CodeAt(bytes, at, &length))) return false;
    at += length;
  }
  return !bytes.empty();
}

template <bool kUpper>
Value HasCaseMethod(Workspace* workspace, const Value& self, Arguments*) {
  const std::string& bytes = self.AsText()->bytes();
  return workspace->StepOver(bytes.size()) && AllHaveCase(bytes, kUpper);
}

enum class Place { kLeft, kRight, kCenter, kZeros };

template <Place kPlace>
Value Justify(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "a method for width", arguments);
  const std::int64_t width = parameters.Integer("width", 0);
  const Value fill = kPlace == Place::kZeros ? workspace->NewString("0")
                                             : parameters.OptionalText("fillchar", None{});
  if (!parameters.Close()) return {};
  const Text& text = *self.AsText();
  const Text space(" ");
  const Text& filler = fill.AsText() == nullptr ? space : *fill.AsText();
  if (CharactersIn(filler.bytes()) != 1) return workspace->Fail("fillchar is one character");
  const std::int64_t missing = width - static_cast<std::int64_t>(CharactersIn(text.bytes()));
  if (missing <= 0) return self;
  // Python puts the odd one on the left where the width is odd.
  const std::int64_t left = kPlace == Place::kCenter ? missing / 2 + (missing & width & 1)
                            : kPlace == Place::kLeft ? 0
                                                     : missing;
  const bool sign = kPlace == Place::kZeros && !text.empty() &&
                    (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  TextBuilder builder(workspace);
  if (sign) builder.Append(text, 0, 1);
  for (std::int64_t i = 0; i < left && builder.Append(filler); ++i) continue;
  builder.Append(text, sign ? 1 : 0, text.size());
  for (std::int64_t i = left; i < missing && builder.Append(filler); ++i) continue;
  return builder.Finish();
}

constexpr std::array kLetterMethods = {
    NamedMethod{"upper", PlainMethod<Upper>},
    NamedMethod{"lower", PlainMethod<Lower>},
    NamedMethod{"capitalize", PlainMethod<Capitalize>},
    NamedMethod{"title", PlainMethod<TitleByLetters>},
    NamedMethod{"swapcase", PlainMethod<SwapCase>},
    NamedMethod{"isdigit", All<IsDecimal>},
    NamedMethod{"isdecimal", All<IsDecimal>},
    NamedMethod{"isnumeric", All<IsDecimal>},
    NamedMethod{"isalpha", All<IsLetter>},
    NamedMethod{"isalnum", All<IsLetterOrDigit>},
    NamedMethod{"isspace", All<IsSpace>},
    NamedMethod{"isupper", HasCaseMethod<true>},
    NamedMethod{"islower", HasCaseMethod<false>},
    NamedMethod{"ljust", Justify<Place::kLeft>},
    NamedMethod{"rjust", Justify<Place::kRight>},
    NamedMethod{"center", Justify<Place::kCenter>},
    NamedMethod{"zfill", Justify<Place::kZeros>},
};

}  // namespace

std::span<const NamedMethod> LetterMethods() { return kLetterMethods; }

}  // namespace foretoken::jinja
