// What tools/build_report.py compiles to learn how fast a machine compiles. It stands on the
// standard library alone and never changes, so that its seconds tell about the machine only.

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

using Value = std::variant<int, double, std::string, std::vector<std::string>>;

template <typename Number>
std::map<std::string, std::vector<Number>> Tables(int count) {
  std::map<std::string, std::vector<Number>> tables;
  std::mt19937_64 generator(static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) {
    auto& table = tables["table " + std::to_string(i)];
    for (int j = 0; j < i; ++j) table.push_back(static_cast<Number>(generator()));
    std::sort(table.begin(), table.end(), std::greater<>());
    std::stable_partition(table.begin(), table.end(), [](Number x) { return x > Number(1); });
  }
  return tables;
}

template <typename... Numbers>
void Print(std::ostream& out) {
  (
      [&out] {
        for (const auto& [name, table] : Tables<Numbers>(5)) {
          out << name << ": " << table.size() << '\n';
        }
      }(),
      ...);
}

std::string Shown(const Value& value) {
  std::ostringstream out;
  std::visit(
      [&out](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::vector<std::string>>) {
          for (const std::string& part : held) out << part << ' ';
        } else {
          out << held;
        }
      },
      value);
  return out.str();
}

}  // namespace

int main(int count, char** words) {
  std::unordered_map<std::string, std::unique_ptr<Value>> values;
  for (const std::string& word : std::vector<std::string>(words, words + count)) {
    const bool number = std::all_of(word.begin(), word.end(), [](char c) { return c < 'A'; });
    values[word] = std::make_unique<Value>(number ? Value(std::stod(word)) : Value(word));
  }
  for (const auto& [name, value] : values) std::cout << name << Shown(*value) << '\n';
  Print<int, float, double, std::uint8_t, std::int16_t, std::int64_t>(std::cout);
}
