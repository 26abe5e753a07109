#include "core/datastore/storage/manifest.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <optional>

#include "base/files/mapped_file.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

constexpr std::string_view kTitle = "foretoken datastore 2\n";
constexpr std::string_view kFirstTitle = "foretoken datastore 1\n";  // Without days; as long.
constexpr std::string_view kChecksumWord = "checksum ";

std::uint64_t ChecksumOf(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

// Takes the text up to `end` from the front of `text`, and `end` with it.
std::optional<std::string_view> Take(std::string_view* text, char end) {
  const std::size_t at = text->find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(at + 1);
  return taken;
}

// Reads lines "word value value ..." in order; fails for good at the first that is not as wanted.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool good() const { return good_; }
  bool at_end() const { return text_.empty(); }
  std::string_view Text(std::string_view word) {
    const auto line = Take(&text_, '\n');
    if (!line || !line->starts_with(word) || line->size() <= word.size() ||
        (*line)[word.size()] != ' ') {
      good_ = false;
      return {};
    }
    return line->substr(word.size() + 1);
  }
  std::uint64_t Number(std::string_view word) {
    std::uint64_t number = 0;
    good_ &= ParseNumber(Text(word), &number);
    return number;
  }

 private:
  std::string_view text_;
  bool good_ = true;
};

bool IsConsistent(const Manifest& manifest) {
  for (const Manifest::SegmentEntry& segment : manifest.segments) {
    if (segment.number == 0 || segment.number >= manifest.next_number) return false;
    if (segment.tokens > kMaxTextEntries) return false;
    std::uint64_t came = 0;
    for (const Arrivals& arrivals : segment.arrivals) {
      if (arrivals.documents > segment.documents - came) return false;
      came += arrivals.documents;
    }
    if (!segment.arrivals.empty() && came != segment.documents) return false;
  }
  return IsFingerprint(manifest.tokenizer.fingerprint) && manifest.tokenizer.vocabulary > 0 &&
         manifest.first_log <= manifest.next_number;
}

// The value of a line "segment NUMBER TOKENS DOCUMENTS DAY:DOCUMENTS ...".
std::optional<Manifest::SegmentEntry> ParseSegmentEntry(std::string line) {
  line += ' ';
  std::string_view rest = line;
  Manifest::SegmentEntry entry;
  for (std::uint64_t* const field : {&entry.number, &entry.tokens, &entry.documents}) {
    const auto word = Take(&rest, ' ');
    if (!word || !ParseNumber(*word, field)) return std::nullopt;
  }
  while (!rest.empty()) {
    auto word = Take(&rest, ' ');
    if (!word) return std::nullopt;
    const auto day = Take(&*word, ':');
    std::uint64_t number = 0;
    Arrivals arrivals;
    if (!day || !ParseNumber(*day, &number) || number > INT32_MAX ||
        !ParseNumber(*word, &arrivals.documents)) {
      return std::nullopt;
    }
    arrivals.day = static_cast<int>(number);
    entry.arrivals.push_back(arrivals);
  }
  return entry;
}

}  // namespace

void AddArrivals(Arrivals more, std::vector<Arrivals>* arrivals) {
  if (more.documents == 0) return;
  if (!arrivals->empty() && arrivals->back().day == more.day) {
    arrivals->back().documents += more.documents;
  } else {
    arrivals->push_back(more);
  }
}

int ArrivalDays::Next() {
  while (arrivals_.size() > 1 && given_ == arrivals_.front().documents) {
    arrivals_ = arrivals_.subspan(1);
    given_ = 0;
  }
  ++given_;
  return arrivals_.empty() ? 0 : arrivals_.front().day;
}

std::string FormatManifest(const Manifest& manifest) {
  std::string name = manifest.tokenizer.name.empty() ? "-" : manifest.tokenizer.name;
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  }
  std::string text =
      fmt::format("{}tokenizer {}\nfingerprint {}\nvocabulary {}\nnext {}\nlog {}\n", kTitle, name,
                  manifest.tokenizer.fingerprint, manifest.tokenizer.vocabulary,
                  manifest.next_number, manifest.first_log);
  for (const Manifest::SegmentEntry& segment : manifest.segments) {
    text += fmt::format("segment {} {} {}", segment.number, segment.tokens, segment.documents);
    for (const Arrivals& arrivals : segment.arrivals) {
      text += fmt::format(" {}:{}", arrivals.day, arrivals.documents);
    }
    text += '\n';
  }
  return fmt::format("{}{}{:016x}\n", text, kChecksumWord, ChecksumOf(text));
}

Result<Manifest> ParseManifest(std::string_view content, std::string_view where) {
  const auto damaged = [&] { return Invalid("{}: is damaged", where); };
  if (!content.starts_with(kTitle) && !content.starts_with(kFirstTitle)) {
    return Invalid("{}: is not the manifest of a datastore that this program reads", where);
  }
  constexpr std::size_t kLastLine = kChecksumWord.size() + 16 + 1;
  if (content.size() < kTitle.size() + kLastLine) return damaged();
  const std::string_view text = content.substr(0, content.size() - kLastLine);
  if (content.substr(text.size()) != fmt::format("{}{:016x}\n", kChecksumWord, ChecksumOf(text))) {
    return damaged();
  }

  LineReader reader(text.substr(kTitle.size()));
  Manifest manifest;
  manifest.tokenizer.name = reader.Text("tokenizer");
  manifest.tokenizer.fingerprint = reader.Text("fingerprint");
  const std::uint64_t vocabulary = reader.Number("vocabulary");
  if (vocabulary > INT32_MAX) return damaged();
  manifest.tokenizer.vocabulary = static_cast<int>(vocabulary);
  manifest.next_number = reader.Number("next");
  manifest.first_log = reader.Number("log");
  while (reader.good() && !reader.at_end()) {
    auto entry = ParseSegmentEntry(std::string(reader.Text("segment")));
    if (!entry) return damaged();
    manifest.segments.push_back(*std::move(entry));
  }
  if (!reader.good() || !IsConsistent(manifest)) return damaged();
  return manifest;
}

std::filesystem::path ManifestPath(const std::filesystem::path& directory) {
  return directory / "MANIFEST";
}
std::filesystem::path SegmentPath(const std::filesystem::path& directory, std::uint64_t number) {
  return directory / fmt::format("{:06}.segment", number);
}
std::filesystem::path LogPath(const std::filesystem::path& directory, std::uint64_t number) {
  return directory / fmt::format("{:06}.log", number);
}
std::uint64_t FileNumber(const std::filesystem::path& path) {
  if (path.extension() != ".segment" && path.extension() != ".log") return 0;
  std::uint64_t number = 0;
  return ParseNumber(path.stem().native(), &number) ? number : 0;
}

Status WriteManifest(FileSystem* files, const std::filesystem::path& directory,
                     const Manifest& manifest) {
  const std::string text = FormatManifest(manifest);
  return PublishFile(files, ManifestPath(directory), [&text](WritableFile* file) {
    return file->Append(std::as_bytes(std::span(text)));
  });
}

Result<Manifest> ReadManifest(const std::filesystem::path& directory) {
  const std::filesystem::path path = ManifestPath(directory);
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                      MappedFile::Open(path, WhenLost::kZeros));
  return ParseManifest({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()},
                       path.string());
}

}  // namespace foretoken
