#pragma once

#include <span>
#include <string>
#include <string_view>

namespace foretoken {

/// How many letters must be added, left out, replaced or swapped with their neighbour to make `b`
/// of `a`.
int EditDistance(std::string_view a, std::string_view b);

/// The candidate that `name` most likely misspells or begins; empty where none is close.
std::string NearMiss(std::string_view name, std::span<const std::string> candidates);

/// "; did you mean X?" for the near miss, which is written after `prefix`; empty without one.
std::string Suggestion(std::string_view name, std::span<const std::string> candidates,
                       std::string_view prefix = {});

}  // namespace foretoken
