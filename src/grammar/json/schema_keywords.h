#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// What the keywords of one schema say. All throw SchemaRefusal for what is not supported; `path` is
// where the schema stands.

/// Whether a keyword says nothing about which texts match, like "title".
bool IsAnnotation(std::string_view keyword);

/// Refuses keywords that are not supported.
void CheckKeywords(const nlohmann::ordered_json& schema, const std::string& path);

/// Refuses keywords beside `keyword` other than those in `others` and annotations.
void CheckAlone(const nlohmann::ordered_json& schema, std::string_view keyword,
                const std::string& path, std::initializer_list<std::string_view> others = {});

/// A number of characters, items and the like; `otherwise` where the keyword is not there.
int SchemaCount(const nlohmann::ordered_json& schema, const char* keyword, int otherwise,
                const std::string& path);

/// The types that a value may have.
std::vector<std::string> TypesOf(const nlohmann::ordered_json& schema, const std::string& path);

/// Whether `value` has a type that the schema names; true where it names none.
bool FitsType(const nlohmann::ordered_json& value, const nlohmann::ordered_json& schema,
              const std::string& path);

/// The values of `schema` where it lists them.
std::optional<std::vector<nlohmann::ordered_json>> ListedValues(
    const nlohmann::ordered_json& schema);

}  // namespace foretoken
