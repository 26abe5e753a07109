#pragma once

#include <cstdint>
#include <vector>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

// What methods of strings and filters of texts share.

struct Sides {
  bool left = true;
  bool right = true;
};

/// Bytes [begin, end) of `text`.
Value Part(Workspace* workspace, const Text& text, std::size_t begin, std::size_t end);
/// `text` without the white space at these sides, or without `characters` unless they are none.
Value Strip(Workspace* workspace, const Text& text, const Value& characters, Sides sides);
/// `text` with `to` for the first `count` (negative: all) places where it has `from`.
Value Replace(Workspace* workspace, const Text& text, const Text& from, const Text& to,
              std::int64_t count);
/// The lines of `text` as Python's splitlines knows them, each with its end where `keep` says so.
std::vector<Span> Lines(const Text& text, bool keep);

Value Upper(Workspace* workspace, const Text& text);
Value Lower(Workspace* workspace, const Text& text);
/// The first letter large, all others small.
Value Capitalize(Workspace* workspace, const Text& text);

/// A string with the characters that mean something in HTML replaced, and safe; what is safe stays.
Value Escape(Workspace* workspace, const Value& string);

/// The items' texts with `separator` between them.
Value JoinTexts(Workspace* workspace, const Text& separator, const std::vector<Value>& items);

}  // namespace foretoken::jinja
