#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace foretoken {

/// The members of an object, in their order.
struct Json::Object {
  /// From so many members on a parsed object is searched by name and not one by one.
  static constexpr std::size_t kFew = 24;

  const Member* FindMember(std::string_view name) const;
  const Json* Find(std::string_view name) const {
    const Member* const found = FindMember(name);
    return found == nullptr ? nullptr : &found->second;
  }
  /// After the last of many members: makes them quick to find.
  void SortNames();

  std::vector<Member> members;
  /// Places in `members` in the order of names; it counts where it has as many.
  std::vector<std::uint32_t> by_name;
};

}  // namespace foretoken
