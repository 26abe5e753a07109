#include "apps/foretoken/common/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/threads/clock.h"

namespace foretoken {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::int64_t kRedrawNs = 80'000'000;
constexpr int kBarWidth = 30;

// `value` in the first unit, without digits after the point, or with three digits in the unit that
// suits it; each unit is a thousand times the one before.
std::string WithUnit(double value, std::span<const char* const> units) {
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool UseColor(std::string_view choice, std::FILE* stream) {
  if (choice != "auto") return choice == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return (no_color == nullptr || *no_color == '\0') && !dumb && IsTerminal(stream);
}

std::string Painter::Styled(std::string_view code, std::string_view text) const {
  return color_ && !text.empty() ? fmt::format("{}{}{}", code, text, kReset) : std::string(text);
}

std::string Painter::Paint(TokenOrigin origin, std::string_view text) const {
  constexpr std::string_view kColors[] = {"\x1b[32m", "\x1b[33m", "\x1b[36m"};
  return Styled(kColors[static_cast<std::size_t>(origin)], text);
}

std::string Painter::Legend() const {
  if (!color_) return {};
  return fmt::format(
      "{}: drafted and accepted, {}: accepted from a fallback, {}: the target's own\n",
      Paint(TokenOrigin::kAccepted, "green"), Paint(TokenOrigin::kFallback, "yellow"),
      Paint(TokenOrigin::kBonus, "cyan"));
}

std::size_t DisplayWidth(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
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
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(rows_[r][i]), ' ');
      line += i == 0 ? rows_[r][i] + padding : "  " + padding + rows_[r][i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) {
      std::size_t total = 0;
      for (const std::size_t width : widths) total += width + 2;
      text += std::string(indent, ' ') + std::string(total - 2, '-') + "\n";
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
  Draw();
}

void ProgressBar::Show(std::size_t done, std::size_t total) {
  done_ = done;
  total_ = total;
  Draw();
}

void ProgressBar::SetLabel(std::string label) {
  label_ = std::move(label);
  Draw();
}

void ProgressBar::Draw() {
  if (!enabled_ || NowNs() - drawn_ns_ < kRedrawNs) return;
  drawn_ns_ = NowNs();
  if (total_ <= 0) {
    fmt::print(stderr, "{}{} ...", kEraseLine, label_);
  } else {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const int filled = share * kBarWidth;
    fmt::print(stderr, "{}[{}{}] {:3.0f}%  {}", kEraseLine, std::string(filled, '#'),
               std::string(kBarWidth - filled, '.'), share * 100, label_);
  }
  std::fflush(stderr);
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {" bytes", " kB", " MB", " GB", " TB"};
  return WithUnit(bytes, kUnits);
}

std::string FormatCount(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "B"};
  return WithUnit(count, kUnits);
}

std::string FormatPercent(double share) {
  return share < 0 ? "-" : fmt::format("{:.1f}%", share * 100);
}

std::string FormatNumber(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 100) return fmt::format("{:.0f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  if (magnitude >= 1 || magnitude == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

std::string FormatDuration(double nanoseconds) {
  constexpr const char* kUnits[] = {" ns", " us", " ms", " s"};
  return WithUnit(nanoseconds, kUnits);
}

// fmt::print would throw where standard error is full.
void PrintError(std::string_view message) {
  std::fputs(fmt::format("foretoken: {}\n", message).c_str(), stderr);
}
void PrintWarning(std::string_view message) {
  std::fputs(fmt::format("foretoken: warning: {}\n", message).c_str(), stderr);
}

}  // namespace foretoken
