#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"

namespace foretoken {

/// Style classes s0, s1 ... for what charts paint.
inline constexpr int kReportColors = 8;

/// A self-contained report page around `body`: inline style, no scripts, nothing fetched; light and
/// dark by the reader's preference; readable on a phone.
std::string HtmlPage(std::string_view title, std::string_view body);

/// Names with what they stand for. Text is escaped.
std::string DefinitionList(const std::vector<std::pair<std::string, std::string>>& items);

/// The entries of a report's "meta" as a list of definitions, the keys of `first` before the
/// others; nothing where `meta` is not an object. Text is escaped.
std::string MetaList(const Json& meta, std::initializer_list<const char*> first = {});

}  // namespace foretoken
