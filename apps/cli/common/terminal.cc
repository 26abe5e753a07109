#include "cli/common/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"

namespace foretoken {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::int64_t kRedrawNs = 80'000'000;
constexpr int kBarWidth = 30;

std::string_view ColorOf(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kAccepted:
      return "\x1b[32m";
    case TokenOrigin::kFallback:
      return "\x1b[33m";
    case TokenOrigin::kBonus:
      return "\x1b[36m";
  }
  return kReset;
}

std::string Styled(bool color, std::string_view code, std::string_view text) {
  return color ? fmt::format("{}{}{}", code, text, kReset) : std::string(text);
}

// `value` with three significant digits.
std::string ThreeDigits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

}  // namespace

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool UseColor(ColorChoice choice, std::FILE* stream) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return (no_color == nullptr || *no_color == '\0') && !dumb && IsTerminal(stream);
}

std::string OriginPainter::Paint(TokenOrigin origin, std::string_view text) const {
  return text.empty() ? std::string() : Styled(color_, ColorOf(origin), text);
}

std::string OriginPainter::Legend() const {
  if (!color_) return {};
  return fmt::format("{}: drafted and accepted, {}: accepted from a fallback, {}: the target's own",
                     Paint(TokenOrigin::kAccepted, "green"),
                     Paint(TokenOrigin::kFallback, "yellow"), Paint(TokenOrigin::kBonus, "cyan"));
}

std::string Bold(bool color, std::string_view text) { return Styled(color, "\x1b[1m", text); }
std::string Dim(bool color, std::string_view text) { return Styled(color, "\x1b[2m", text); }

std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string TextTable::Render(int indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(rows_[r][i]), ' ');
      line += i == 0 ? rows_[r][i] + padding : "  " + padding + rows_[r][i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) {
      std::size_t total = 0;
      for (const std::size_t width : widths) total += width + 2;
      text +=
          std::string(static_cast<std::size_t>(indent), ' ') + std::string(total - 2, '-') + "\n";
    }
  }
  return text;
}

ProgressBar::ProgressBar(std::string label, std::int64_t total)
    : label_(std::move(label)), total_(total), enabled_(IsTerminal(stderr)) {
  Draw();
}

ProgressBar::~ProgressBar() {
  if (enabled_) fmt::print(stderr, "{}", kEraseLine);
}

void ProgressBar::Advance(std::int64_t by) {
  done_ += by;
  if (NowNs() - drawn_ns_ >= kRedrawNs) Draw();
}

void ProgressBar::SetLabel(std::string label) {
  label_ = std::move(label);
  if (NowNs() - drawn_ns_ >= kRedrawNs) Draw();
}

void ProgressBar::Draw() {
  if (!enabled_) return;
  drawn_ns_ = NowNs();
  if (total_ <= 0) {
    fmt::print(stderr, "{}{} ...", kEraseLine, label_);
  } else {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const int filled = static_cast<int>(share * kBarWidth);
    fmt::print(stderr, "{}[{}{}] {:3.0f}%  {}", kEraseLine, std::string(filled, '#'),
               std::string(kBarWidth - filled, '.'), share * 100, label_);
  }
  std::fflush(stderr);
}

std::string FormatBytes(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} bytes", bytes);
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  int unit = -1;
  while (bytes >= 999.5 && unit < 3) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", ThreeDigits(bytes), kUnits[unit]);
}

std::string FormatCount(double count) {
  if (count < 1e3) return fmt::format("{:.0f}", count);
  if (count < 999.5e3) return ThreeDigits(count / 1e3) + "k";
  return count < 999.5e6 ? ThreeDigits(count / 1e6) + "M" : ThreeDigits(count / 1e9) + "B";
}

std::string FormatPercent(double share) {
  return share < 0 ? "-" : fmt::format("{:.1f}%", share * 100);
}

std::string FormatDuration(double nanoseconds) {
  if (nanoseconds < 999.5) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 999.5e3) return ThreeDigits(nanoseconds / 1e3) + " us";
  if (nanoseconds < 999.5e6) return ThreeDigits(nanoseconds / 1e6) + " ms";
  return ThreeDigits(nanoseconds / 1e9) + " s";
}

void PrintError(std::string_view message) { fmt::print(stderr, "foretoken: {}\n", message); }
void PrintWarning(std::string_view message) {
  fmt::print(stderr, "foretoken: warning: {}\n", message);
}

Status WriteFile(const std::string& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return InvalidInput(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !written) {
    return Error{ErrorCode::kUnavailable, fmt::format("writing '{}' failed", path)};
  }
  return {};
}

}  // namespace foretoken
