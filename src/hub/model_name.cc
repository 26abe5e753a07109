#include "hub/model_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/printable.h"

namespace foretoken {
namespace {

constexpr std::size_t kMostName = 96;
constexpr std::size_t kMostPath = 1024;
constexpr std::string_view kHexadecimal = "0123456789abcdef";

bool IsNamePart(std::string_view part) {
  const bool characters = std::ranges::all_of(part, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return characters && !part.empty() && !edge(part.front()) && !edge(part.back()) &&
         part.find("--") == part.npos && part.find("..") == part.npos;
}

bool EndsInGguf(std::string_view text) {
  constexpr std::string_view kEnd = ".gguf";
  return text.size() > kEnd.size() &&
         std::ranges::equal(text.substr(text.size() - kEnd.size()), kEnd,
                            [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace

bool ModelName::names_file() const { return EndsInGguf(part); }

std::string ModelName::Text() const {
  return fmt::format("{}{}{}{}{}", repository, named_revision ? "@" : "",
                     named_revision.value_or(""), part.empty() ? "" : ":", part);
}

bool IsRepository(std::string_view text) {
  const std::size_t slash = text.find('/');
  return text.size() <= kMostName && IsNamePart(text.substr(0, slash)) &&
         (slash == text.npos || IsNamePart(text.substr(slash + 1))) && !text.ends_with(".git");
}

bool IsCommit(std::string_view text) {
  constexpr std::size_t kDigits = 40;
  return text.size() == kDigits && text.find_first_not_of(kHexadecimal) == text.npos;
}

bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > kMostPath) return false;
  const bool printable =
      std::ranges::all_of(path, [](unsigned char c) { return c >= ' ' && c != 127 && c != '\\'; });
  while (printable) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
  return false;
}

Result<ModelName> ParseModelName(std::string_view text) {
  const auto refuse = [text](std::string_view what) {
    return InvalidInput(
        fmt::format("'{}' {}; models of a hub are called ORG/NAME, ORG/NAME:Q4_K_M, "
                    "ORG/NAME:FILE.gguf or ORG/NAME@REVISION",
                    Printable(text), what));
  };
  ModelName name;
  const std::size_t colon = text.find(':');
  const std::string_view before = text.substr(0, colon);
  if (colon != text.npos) {
    name.part = text.substr(colon + 1);
    if (!IsSafePath(name.part)) return refuse("names no file or quantisation behind its colon");
  }
  const std::size_t at = before.find('@');
  if (at != before.npos) {
    name.named_revision = before.substr(at + 1);
    const bool characters = std::ranges::all_of(*name.named_revision, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/' || c == '+';
    });
    if (!characters || !IsSafePath(*name.named_revision)) {
      return refuse("names no branch, tag or commit behind its @");
    }
  }
  name.repository = before.substr(0, at);
  if (!IsRepository(name.repository)) return refuse("is no model's name");
  return name;
}

}  // namespace foretoken
