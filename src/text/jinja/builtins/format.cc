#include "text/jinja/builtins/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/text/parse_number.h"
#include "base/text/utf8.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

constexpr int kMostFormatDigits = 1000;

/// What stands between a % and the letter behind it.
struct Directive {
  std::optional<Text> name;
  std::string flags;
  int width = 0;
  int precision = -1;
  char kind = 0;

  bool has(char flag) const { return flags.find(flag) != std::string::npos; }
};

class PercentFormatter {
 public:
  PercentFormatter(Workspace* workspace, const Text& format, const Value& values)
      : workspace_(workspace), format_(format), values_(values), builder_(workspace) {
    const List* list = values.AsList();
    if (list != nullptr && list->kind == List::Kind::kTuple) tuple_ = list;
  }

  Value Run() {
    const std::string& bytes = format_.bytes();
    while (at_ < bytes.size() && workspace_->ok()) {
      const std::size_t percent = std::min(bytes.find('%', at_), bytes.size());
      builder_.Append(format_, at_, percent);
      at_ = percent + 1;
      if (percent < bytes.size()) Fill();
    }
    const std::size_t given = tuple_ != nullptr             ? tuple_->items.size()
                              : values_.AsDict() != nullptr ? next_
                                                            : 1;
    if (next_ < given) workspace_->Fail("there are more values than the format has places for");
    return builder_.Finish();
  }

 private:
  char Peek() const { return at_ < format_.size() ? format_.bytes()[at_] : '\0'; }

  bool Number(int* number) {
    *number = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      *number = *number * 10 + (format_.bytes()[at_++] - '0');
      if (*number <= kMostFormatDigits) continue;
      workspace_->Fail("a format has at most {} digits", kMostFormatDigits);
      return false;
    }
    return true;
  }

  bool Parse(Directive* directive) {
    const std::string& bytes = format_.bytes();
    if (Peek() == '(') {
      const std::size_t end = bytes.find(')', at_);
      if (end == std::string::npos) {
        workspace_->Fail("a format has '%(' without a ')'");
        return false;
      }
      directive->name.emplace();
      directive->name->Append(format_, at_ + 1, end);
      at_ = end + 1;
    }
    while (Peek() != '\0' && std::string_view("-+ 0#").find(Peek()) != std::string_view::npos) {
      directive->flags += bytes[at_++];
    }
    if (!Number(&directive->width)) return false;
    if (Peek() == '.') {
      ++at_;
      if (!Number(&directive->precision)) return false;
    }
    directive->kind = Peek();
    ++at_;
    return true;
  }

  Value ValueFor(const Directive& directive) {
    if (directive.name.has_value()) {
      const Dict* dict = values_.AsDict();
      const Value* found = dict == nullptr ? nullptr : dict->Find(directive.name->bytes());
      if (found != nullptr) return *found;
      return workspace_->Fail("the format has no value for '{}'", directive.name->bytes());
    }
    const std::size_t place = next_++;
    if (tuple_ != nullptr && place < tuple_->items.size()) return tuple_->items[place];
    if (tuple_ == nullptr && place == 0) return values_;
    return workspace_->Fail("the format has more places than there are values");
  }

  void Fill() {
    Directive directive;
    if (!Parse(&directive)) return;
    if (directive.kind == '%') {
      builder_.Append("%");
      return;
    }
    const Value value = ValueFor(directive);
    if (!workspace_->ok()) return;
    if (directive.kind == 's' || directive.kind == 'r') {
      TextBuilder text(workspace_);
      directive.kind == 's' ? AppendStr(value, &text) : AppendRepr(value, &text);
      const Value made = text.Finish();
      const Value cut =
          directive.precision < 0
              ? made
              : GetSlice(workspace_, made, None{}, std::int64_t{directive.precision}, None{});
      if (workspace_->ok()) Pad(*cut.AsText(), directive, false);
      return;
    }
    const std::optional<std::string> number = NumberText(value, directive);
    if (number.has_value()) Pad(Text(*number), directive, directive.has('0'));
  }

  std::optional<std::string> NumberText(const Value& value, const Directive& directive) {
    const auto number = value.Number();
    const bool whole = std::string_view("dixXo").find(directive.kind) != std::string_view::npos;
    const bool real = std::string_view("eEfFgG").find(directive.kind) != std::string_view::npos;
    if (!whole && !real) {
      workspace_->Fail("a format knows %s, %r, %d, %i, %x, %X, %o, %e, %f, %g and %%");
      return std::nullopt;
    }
    if (!number.has_value()) {
      workspace_->Fail("%{} takes a number, not a {}", directive.kind, value.TypeName());
      return std::nullopt;
    }
    const std::string sign = directive.has('+') ? "+" : directive.has(' ') ? " " : "-";
    if (real) {
      const int precision = directive.precision < 0 ? 6 : directive.precision;
      return fmt::format(
          fmt::runtime("{:" + sign + "." + std::to_string(precision) + directive.kind + "}"),
          *number);
    }
    constexpr double kLargest = 9e18;
    if (!value.Integer().has_value() && !(std::abs(*number) < kLargest)) {
      workspace_->Fail("the number is too large for an integer");
      return std::nullopt;
    }
    const std::int64_t integer = value.Integer().value_or(static_cast<std::int64_t>(*number));
    const char kind = directive.kind == 'i' ? 'd' : directive.kind;
    return fmt::format(fmt::runtime("{:" + sign + kind + "}"), integer);
  }

  void Pad(const Text& text, const Directive& directive, bool zeros) {
    const auto missing = directive.width - static_cast<std::int64_t>(CharactersIn(text.bytes()));
    const std::string fill(std::max<std::int64_t>(missing, 0),
                           zeros && !directive.has('-') ? '0' : ' ');
    if (directive.has('-')) {
      builder_.Append(text);
      builder_.Append(fill);
      return;
    }
    const bool sign = zeros && !text.empty() &&
                      std::string_view("+- ").find(text.bytes()[0]) != std::string_view::npos;
    if (sign) builder_.Append(text, 0, 1);
    builder_.Append(fill);
    builder_.Append(text, sign ? 1 : 0, text.size());
  }

  Workspace* workspace_;
  const Text& format_;
  const Value& values_;
  const List* tuple_ = nullptr;  ///< The values, where they are a tuple.
  TextBuilder builder_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;  ///< The next of the values.
};

/// The value of a {} with this inside: nothing, a number, or a name and what is below it.
Value BraceValue(Workspace* workspace, std::string_view field, const Arguments& arguments,
                 std::size_t* next) {
  const std::size_t dot = std::min(field.find('.'), field.size());
  const std::string_view first = field.substr(0, dot);
  std::size_t place = 0;
  Value value;
  const auto named = std::ranges::find_if(arguments.named,
                                          [&](const auto& entry) { return entry.first == first; });
  if (first.empty() || ParseNumber(std::string(first), &place)) {
    if (first.empty()) place = (*next)++;
    if (place >= arguments.positional.size()) {
      return workspace->Fail("the format has more places than there are values");
    }
    value = arguments.positional[place];
  } else if (named != arguments.named.end()) {
    value = named->second;
  } else {
    return workspace->Fail("the format has no value for '{}'", first);
  }
  if (dot == field.size()) return value;
  return GetPath(workspace, value, workspace->NewString(field.substr(dot + 1)));
}

}  // namespace

Value FormatPercent(Workspace* workspace, const Text& format, const Value& values) {
  return PercentFormatter(workspace, format, values).Run();
}

Value FormatBraces(Workspace* workspace, const Text& format, const Arguments& arguments) {
  TextBuilder builder(workspace);
  const std::string_view bytes = format.bytes();
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size() && workspace->ok();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    builder.Append(format, at, brace);
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      builder.Append(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t end = bytes.find('}', brace);
    const std::string_view field = bytes.substr(brace + 1, end - brace - 1);
    if (bytes[brace] == '}' || end == bytes.npos || field.find_first_of("{[:!") != field.npos) {
      return workspace->Fail("format() knows {}, {0} and {name} only");
    }
    AppendStr(BraceValue(workspace, field, arguments, &next), &builder);
    at = end + 1;
  }
  return builder.Finish();
}

}  // namespace foretoken::jinja
