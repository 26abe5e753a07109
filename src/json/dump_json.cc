#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::uint32_t kReplacementCode = 0xFFFD;

// Writes one value as a text.
class Dumper {
 public:
  Dumper(int indent, bool ascii) : indent_(indent), ascii_(ascii) {}

  void Write(const Json& json, int depth);
  std::string Take() { return std::move(out_); }

 private:
  template <typename T>
  void WriteWhole(T number) {
    std::array<char, 24> digits;
    const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
    out_.append(digits.data(), end);
  }
  void WriteFloat(double number);
  void WriteString(std::string_view text);
  void WriteEscape(std::uint32_t unit);
  void WriteAscii(std::uint32_t code);
  void WriteArray(const Json& json, int depth);
  void WriteObject(const Json& json, int depth);
  void NewLine(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(Size(indent_ * depth), ' ');
  }

  const int indent_;  // -1: all on one line.
  const bool ascii_;
  std::string out_;
};

// The shortest digits that read as the number, with a fraction or an exponent, so that it is read
// as a float again; exponents have two digits and a sign.
void Dumper::WriteFloat(double number) {
  if (!std::isfinite(number)) {
    out_ += "null";
    return;
  }
  std::array<char, 32> written;
  const auto [end, error] =
      std::to_chars(written.begin(), written.end(), number, std::chars_format::scientific);
  std::string_view text(written.data(), end - written.data());
  if (text.starts_with('-')) {
    out_ += '-';
    text.remove_prefix(1);
  }
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const std::string_view power = text.substr(mark + (text[mark + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  const int count = digits.size();
  const int point = exponent + 1;  // Digits before it.
  constexpr int kMostDigits = 15;
  constexpr int kMostZeros = 4;
  if (count <= point && point <= kMostDigits) {
    out_ += digits;
    out_.append(point - count, '0');
    out_ += ".0";
  } else if (0 < point && point <= kMostDigits) {
    out_ += digits.substr(0, point);
    out_ += '.';
    out_ += digits.substr(point);
  } else if (-kMostZeros < point && point <= 0) {
    out_ += "0.";
    out_.append(-point, '0');
    out_ += digits;
  } else {
    out_ += digits[0];
    if (count > 1) out_ += '.' + digits.substr(1);
    out_ += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out_ += '0';
    WriteWhole(std::abs(exponent));
  }
}

void Dumper::WriteEscape(std::uint32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out_ += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out_ += kDigits[unit >> shift & 15U];
}

void Dumper::WriteAscii(std::uint32_t code) {
  if (code >= 0x10000) {
    code -= 0x10000;
    WriteEscape(0xD800 + (code >> 10));
    code = 0xDC00 + (code & 0x3FFU);
  }
  WriteEscape(code);
}

void Dumper::WriteString(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\') {  // Nearly all.
      out_ += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (byte < 0x80) {
      constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
      constexpr std::string_view kLetters = "\"\\bfnrt";
      const std::size_t escape = kEscaped.find(text.front());
      if (escape != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[escape];
      } else if (byte < 0x20 || (ascii_ && byte == 0x7F)) {
        WriteEscape(byte);
      } else {
        out_ += text.front();
      }
      text.remove_prefix(1);
      continue;
    }
    const Utf8Step step = ReadUtf8(text);
    const bool good = step.kind == Utf8Step::kCharacter;
    if (ascii_) {
      WriteAscii(good ? step.code : kReplacementCode);
    } else {
      out_ += good ? text.substr(0, step.size) : kReplacementCharacter;
    }
    text.remove_prefix(step.size);
  }
  out_ += '"';
}

void Dumper::WriteArray(const Json& json, int depth) {
  out_ += '[';
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (i > 0) out_ += ',';
    NewLine(depth + 1);
    Write(json[i], depth + 1);
  }
  if (!json.empty()) NewLine(depth);
  out_ += ']';
}

void Dumper::WriteObject(const Json& json, int depth) {
  out_ += '{';
  bool first = true;
  for (const auto& [name, value] : json.items()) {
    if (!std::exchange(first, false)) out_ += ',';
    NewLine(depth + 1);
    WriteString(name);
    out_ += indent_ < 0 ? ":" : ": ";
    Write(value, depth + 1);
  }
  if (!first) NewLine(depth);
  out_ += '}';
}

void Dumper::Write(const Json& json, int depth) {
  switch (json.kind()) {
    case Json::Kind::kNull:
      out_ += "null";
      break;
    case Json::Kind::kBoolean:
      out_ += json.get<bool>() ? "true" : "false";
      break;
    case Json::Kind::kInteger:
      WriteWhole(json.get<std::int64_t>());
      break;
    case Json::Kind::kUnsigned:
      WriteWhole(json.get<std::uint64_t>());
      break;
    case Json::Kind::kFloat:
      WriteFloat(json.get<double>());
      break;
    case Json::Kind::kString:
      WriteString(json.text());
      break;
    case Json::Kind::kArray:
      WriteArray(json, depth);
      break;
    case Json::Kind::kObject:
      WriteObject(json, depth);
      break;
    case Json::Kind::kDiscarded:
      out_ += "<discarded>";
      break;
  }
}

}  // namespace

std::string Json::dump(int indent) const {
  Dumper dumper(indent, /*ascii=*/false);
  dumper.Write(*this, 0);
  return dumper.Take();
}

std::string Json::DumpAscii() const {
  Dumper dumper(/*indent=*/-1, /*ascii=*/true);
  dumper.Write(*this, 0);
  return dumper.Take();
}

}  // namespace foretoken
