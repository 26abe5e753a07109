#include "text/hub/repository/model_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text/printable.h"

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

// What is behind the hub's name, where a text is an address of it or begins as one.
std::optional<std::string_view> InAddress(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  for (const std::string_view host : {"huggingface.co/", "www.huggingface.co/", "hf.co/"}) {
    if (text.starts_with(host)) return text.substr(host.size());
  }
  return std::nullopt;
}

// "%2F" and its like as what they stand for.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Takes what is before the next slash off the front.
std::string_view TakePart(std::string_view* path) {
  const std::string_view part = path->substr(0, path->find('/'));
  path->remove_prefix(std::min(part.size() + 1, path->size()));
  return part;
}

// The name that an address behind the host means: "ORG/NAME", "ORG/NAME/tree/REVISION",
// "ORG/NAME/blob/REVISION/FILE" and their like. What is none of these stays as it is.
std::string FromAddress(std::string_view address) {
  std::string_view path = address.substr(0, address.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view whole = path;
  const std::string_view organisation = TakePart(&path);
  const std::string_view name = TakePart(&path);
  const std::string_view kind = TakePart(&path);
  const bool page = kind == "tree" || kind == "blob" || kind == "resolve" || kind == "raw";
  if (!page || path.empty()) return std::string(whole);
  const std::string revision = Unescaped(TakePart(&path));
  std::string plain = fmt::format("{}/{}", organisation, name);
  if (revision != "main") plain += "@" + revision;
  // A folder of GGUF files is called by their quantisation; other files belong to the whole folder.
  const std::string file = Unescaped(path);
  if (!file.empty() && (kind == "tree" || EndsInGguf(file))) plain += ":" + file;
  return plain;
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
    return Invalid(
        "'{}' {}; models of a hub are called ORG/NAME, ORG/NAME:Q4_K_M, ORG/NAME:FILE.gguf or "
        "ORG/NAME@REVISION",
        Printable(text), what);
  };
  ModelName name;
  const std::optional<std::string_view> address = InAddress(text);
  if (!address && text.find("://") != text.npos) {
    return refuse("is no address of hf.co or huggingface.co (HF_ENDPOINT names another hub)");
  }
  std::string plain(text);
  if (address) plain = FromAddress(*address);
  while (plain.ends_with('/') && plain.find('/') + 1 < plain.size()) plain.pop_back();
  const std::size_t colon = plain.find(':');
  const std::string before = plain.substr(0, colon);
  if (colon != plain.npos) {
    name.part = plain.substr(colon + 1);
    if (!IsSafePath(name.part)) return refuse("names no file or quantisation behind its colon");
    if (name.part == "latest") name.part.clear();
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
  // An address within an address would be another name when it is read again.
  if (!IsRepository(name.repository) || InAddress(name.repository)) {
    return refuse("is no model's name");
  }
  return name;
}

}  // namespace foretoken
