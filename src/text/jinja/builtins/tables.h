#pragma once

#include <span>

#include "text/jinja/builtins/filters.h"
#include "text/jinja/builtins/methods.h"

namespace foretoken::jinja {

// What each file of built-in things adds to what templates find by name.

std::span<const NamedMethod> TextMethods();
/// Methods of text too: letter case, kinds of letters.
std::span<const NamedMethod> LetterMethods();
std::span<const NamedMethod> ListMethods();
std::span<const NamedMethod> DictMethods();
std::span<const NamedMethod> LoopMethods();

std::span<const NamedFilter> TextFilters();
std::span<const NamedFilter> ListFilters();
std::span<const NamedFilter> SelectionFilters();
std::span<const NamedFilter> OrderFilters();
std::span<const NamedFilter> NumberFilters();

}  // namespace foretoken::jinja
