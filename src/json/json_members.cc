#include "json/json_members.h"

#include <algorithm>
#include <numeric>

namespace foretoken {

const Json::Member* Json::Object::FindMember(std::string_view name) const {
  if (by_name.empty() || by_name.size() != members.size()) {
    const auto found = std::ranges::find(members, name, &Member::first);
    return found == members.end() ? nullptr : &*found;
  }
  const auto name_of = [this](std::uint32_t place) -> std::string_view {
    return members[place].first;
  };
  const auto found = std::ranges::lower_bound(by_name, name, {}, name_of);
  return found == by_name.end() || name_of(*found) != name ? nullptr : &members[*found];
}

void Json::Object::SortNames() {
  if (members.size() < kFew) return;
  by_name.resize(members.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::ranges::sort(by_name, {}, [this](std::uint32_t place) -> const std::string& {
    return members[place].first;
  });
}

}  // namespace foretoken
