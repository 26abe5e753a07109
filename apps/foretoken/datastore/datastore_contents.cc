#include "apps/foretoken/datastore/datastore_contents.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/foretoken/common/terminal.h"
#include "base/files/replace_file.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesAround = 40;

// As a JSON string, in one line whatever is in it.
std::string QuotedJson(std::string_view text) { return Json(std::string(text)).dump(); }

struct DocumentFacts {
  std::uint64_t number = 0;
  std::size_t tokens = 0;
  int day = 0;
};

Json ToJson(const DocumentFacts& document) {
  return {
      {"document", document.number}, {"tokens", document.tokens}, {"day", FormatDay(document.day)}};
}

// The `most` largest documents, those of a size the older first, and the `most` newest, the newest
// first.
Json DocumentsJson(const Snapshot& snapshot, int most) {
  std::vector<DocumentFacts> documents;
  snapshot.VisitDocuments([&](const StoredDocument& document) {
    documents.push_back({document.number, document.tokens.size(), document.day});
  });
  const auto first = [most](const std::vector<DocumentFacts>& sorted) {
    Json list = Json::array();
    for (const DocumentFacts& document : sorted) {
      if (std::ssize(list) < most) list.push_back(ToJson(document));
    }
    return list;
  };
  std::ranges::stable_sort(documents, std::greater(), &DocumentFacts::tokens);
  Json largest = first(documents);
  std::ranges::sort(documents, std::greater(), [](const DocumentFacts& document) {
    return std::pair(document.day, document.number);
  });
  return {{"largest", std::move(largest)}, {"newest", first(documents)}};
}

// The first and the last day of arrivals, which are not empty.
std::pair<int, int> Days(std::span<const Arrivals> arrivals) {
  const auto [oldest, newest] = std::ranges::minmax(arrivals, {}, &Arrivals::day);
  return {oldest.day, newest.day};
}

Json SegmentsJson(const Datastore& datastore, const Manifest& manifest) {
  Json segments = Json::array();
  for (const Manifest::SegmentEntry& entry : manifest.segments) {
    std::error_code error;
    const auto bytes = fs::file_size(SegmentPath(datastore.directory(), entry.number), error);
    const auto [oldest, newest] = Days(entry.arrivals);
    segments.push_back({{"number", entry.number},
                        {"tokens", entry.tokens},
                        {"documents", entry.documents},
                        {"bytes", error ? 0 : bytes},
                        {"oldest_day", FormatDay(oldest)},
                        {"newest_day", FormatDay(newest)}});
  }
  return segments;
}

// The size of the files in a folder.
std::uint64_t BytesIn(const fs::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto size = at->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

Json InfoJson(const std::string& name, const Datastore& datastore, int most) {
  const Manifest manifest = datastore.manifest();
  const auto snapshot = datastore.snapshot();
  std::uint64_t stored = 0;
  for (const Manifest::SegmentEntry& entry : manifest.segments) stored += entry.tokens;
  Json info = {{"namespace", name},
               {"tokenizer", manifest.tokenizer.name},
               {"fingerprint", manifest.tokenizer.fingerprint},
               {"vocabulary", manifest.tokenizer.vocabulary},
               {"tokens", snapshot->tokens()},
               {"documents", snapshot->documents()},
               {"bytes", BytesIn(datastore.directory())},
               {"log_tokens", snapshot->tokens() - stored},
               {"segments", SegmentsJson(datastore, manifest)}};
  std::vector<Arrivals> arrivals;
  for (const auto& part : snapshot->arrivals) {
    arrivals.insert(arrivals.end(), part.begin(), part.end());
  }
  if (!arrivals.empty()) {
    const auto [oldest, newest] = Days(arrivals);
    info["oldest_day"] = FormatDay(oldest);
    info["newest_day"] = FormatDay(newest);
  }
  if (most > 0) info.update(DocumentsJson(*snapshot, most));
  return info;
}

std::string DocumentLines(const Json& documents) {
  std::string text;
  for (const auto& document : documents) {
    text +=
        fmt::format("    document {}: {} tokens, {}\n", document["document"].get<std::uint64_t>(),
                    document["tokens"].get<std::size_t>(), document["day"].get<std::string>());
  }
  return text;
}

std::string InfoText(const Json& info) {
  std::string text = fmt::format(
      "{}: {} tokens in {} documents, {} of them in the log; {} on disk{}; tokenizer {} ({} "
      "tokens)\n",
      info["namespace"].get<std::string>(), FormatCount(info["tokens"].get<double>()),
      info["documents"].get<std::uint64_t>(), FormatCount(info["log_tokens"].get<double>()),
      FormatBytes(info["bytes"].get<double>()),
      info.contains("oldest_day")
          ? fmt::format("; from {} to {}", info["oldest_day"].get<std::string>(),
                        info["newest_day"].get<std::string>())
          : "",
      info["tokenizer"].get<std::string>(), info["vocabulary"].get<int>());
  TextTable table({"segment", "tokens", "documents", "size", "oldest", "newest"});
  for (const auto& segment : info["segments"]) {
    table.Add({fmt::format("{:06}", segment["number"].get<std::uint64_t>()),
               FormatCount(segment["tokens"].get<double>()),
               std::to_string(segment["documents"].get<std::uint64_t>()),
               FormatBytes(segment["bytes"].get<double>()),
               segment["oldest_day"].get<std::string>(), segment["newest_day"].get<std::string>()});
  }
  if (!info["segments"].empty()) text += table.Render(2);
  if (info.contains("largest") && !info["largest"].empty()) {
    text += "  largest\n" + DocumentLines(info["largest"]);
    text += "  newest\n" + DocumentLines(info["newest"]);
  }
  return text;
}

std::string SearchText(const Json& report, const std::string& where) {
  const auto times = [](std::uint64_t count) {
    return count == 1 ? std::string("once") : fmt::format("{} times", count);
  };
  const auto found = report["documents"].get<std::uint64_t>();
  const auto of_documents = report["of_documents"].get<std::uint64_t>();
  std::string text = fmt::format("{}: {} ", where, QuotedJson(report["text"].get<std::string>()));
  if (found == 0) return text + fmt::format("occurs in none of {} documents\n", of_documents);
  text += fmt::format("occurs {}, in {} of {} documents\n", times(report["occurrences"]), found,
                      of_documents);
  for (const auto& match : report["matches"]) {
    text += fmt::format(
        "  document {} ({} tokens, {}), {}: {}\n", match["document"].get<std::uint64_t>(),
        match["tokens"].get<std::uint64_t>(), match["day"].get<std::string>(),
        times(match["occurrences"]), QuotedJson(match["around"].get<std::string>()));
  }
  if (report["matches"].size() < found) {
    text += fmt::format("  ... and {} more; -n says how many are shown\n",
                        found - report["matches"].size());
  }
  return text;
}

}  // namespace

std::size_t CountOccurrences(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (std::size_t at = text.find(wanted); at != text.npos;
       at = text.find(wanted, at + wanted.size())) {
    ++count;
  }
  return count;
}

std::string_view Surroundings(std::string_view text, std::size_t at, std::size_t size) {
  const auto inside_character = [text](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  std::size_t begin = at - std::min(at, kBytesAround);
  while (begin < at && inside_character(begin)) ++begin;
  std::size_t end = std::min(text.size(), at + size + kBytesAround);
  while (end > at + size && inside_character(end)) --end;
  return text.substr(begin, end - begin);
}

Result<int> RunInfo(const DatastoreCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> names, Namespaces(options.directory));
  Json report = Json::array();
  std::string text;
  for (const std::string& name : names) {
    FT_ASSIGN_OR_RETURN(const auto datastore, OpenToRead(fs::path(options.directory) / name));
    report.push_back(InfoJson(name, *datastore, options.listed));
    text += InfoText(report.back());
  }
  FT_RETURN_IF_ERROR(WriteReport(options.Report(), report, text));
  return 0;
}

Result<int> RunSearch(DatastoreCommandOptions options) {
  if (options.text.empty()) return InvalidInput("there is nothing to look for in an empty text");
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  FT_ASSIGN_OR_RETURN(const auto datastore, OpenToRead(options, *tokenizer));
  const auto snapshot = datastore->snapshot();
  std::uint64_t occurrences = 0;
  std::uint64_t documents = 0;
  Json matches = Json::array();
  snapshot->VisitDocuments([&](const StoredDocument& document) {
    const std::string text = TextOf(*tokenizer, document.tokens);
    const std::size_t count = CountOccurrences(text, options.text);
    if (count == 0) return;
    occurrences += count;
    ++documents;
    if (std::ssize(matches) >= options.most) return;
    Json match = ToJson({document.number, document.tokens.size(), document.day});
    match["occurrences"] = count;
    match["around"] = Surroundings(text, text.find(options.text), options.text.size());
    matches.push_back(std::move(match));
  });
  const Json report = {{"text", options.text},
                       {"occurrences", occurrences},
                       {"documents", documents},
                       {"of_documents", snapshot->documents()},
                       {"matches", matches}};
  FT_RETURN_IF_ERROR(
      WriteReport(options.Report(), report, SearchText(report, datastore->directory().string())));
  return 0;
}

Result<int> RunExport(DatastoreCommandOptions options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  FT_ASSIGN_OR_RETURN(const auto datastore, OpenToRead(options, *tokenizer));
  const std::string output = options.output.empty() ? "-" : options.output;
  FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(output));
  const auto snapshot = datastore->snapshot();
  Status status;
  snapshot->VisitDocuments([&](const StoredDocument& document) {
    if (!status.ok()) return;
    const Json line = {
        {"tokens", std::vector<Token>(document.tokens.begin(), document.tokens.end())},
        {"text", TextOf(*tokenizer, document.tokens)}};
    status = file.Write(line.dump() + "\n");
  });
  FT_RETURN_IF_ERROR(status);
  // A file that was cut short while it was read has come as zeros in part.
  FT_RETURN_IF_ERROR(datastore->learning().failure);
  FT_RETURN_IF_ERROR(file.Finish());
  if (output != "-") {
    fmt::print("{}: {} tokens in {} documents, from {}\n", output,
               FormatCount(static_cast<double>(snapshot->tokens())), snapshot->documents(),
               datastore->directory().string());
  }
  return 0;
}

}  // namespace foretoken
