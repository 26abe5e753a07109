#include "core/datastore/storage/segment_file.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/files/mapped_file.h"

namespace foretoken {
namespace {

constexpr std::array<char, 8> kMagic = {'F', 'T', 'S', 'E', 'G', 'M', 'N', 'T'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kFingerprintDigits = 64;

struct Section {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t checksum;
};

// As it lies in the file, in the byte order of the machine that wrote it.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint32_t token_bytes;
  std::uint32_t sort_depth;
  std::uint32_t vocabulary;
  std::uint32_t reserved;
  std::uint64_t entries;
  std::uint64_t suffixes;
  std::uint64_t documents;
  std::array<char, kFingerprintDigits> fingerprint;
  std::array<Section, 3> sections;  // Text, suffixes, buckets.
  std::uint64_t checksum;           // The checksum of the header's page with this field 0.
};
static_assert(sizeof(Header) <= kPage && std::is_trivially_copyable_v<Header>);

constexpr std::array<std::string_view, 3> kSectionNames = {"text", "suffixes", "buckets"};

std::uint64_t RoundToPage(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t HeaderChecksum(std::span<const std::byte> page, Header header) {
  std::array<std::byte, kPage> copy;
  std::copy_n(page.begin(), kPage, copy.begin());
  header.checksum = 0;
  std::memcpy(copy.data(), &header, sizeof(header));
  return Checksum(copy);
}

std::array<std::span<const std::byte>, 3> SectionsOf(const Segment& segment) {
  const SegmentParts& parts = segment.parts();
  const std::size_t text_bytes = (parts.entries + kSortDepth) * segment.token_bytes();
  return {std::span(static_cast<const std::byte*>(parts.text), text_bytes),
          std::as_bytes(parts.suffixes), std::as_bytes(parts.buckets)};
}

Header HeaderOf(const Segment& segment, const TokenizerIdentity& tokenizer) {
  Header header = {};
  header.magic = kMagic;
  header.version = kVersion;
  header.byte_order = kByteOrder;
  header.token_bytes = static_cast<std::uint32_t>(segment.token_bytes());
  header.sort_depth = kSortDepth;
  header.vocabulary = static_cast<std::uint32_t>(segment.vocabulary());
  header.entries = segment.parts().entries;
  header.suffixes = segment.tokens();
  header.documents = segment.documents();
  std::copy_n(tokenizer.fingerprint.begin(), kFingerprintDigits, header.fingerprint.begin());
  std::uint64_t offset = kPage;
  const auto sections = SectionsOf(segment);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    header.sections[i] = {offset, sections[i].size(), Checksum(sections[i])};
    offset += RoundToPage(sections[i].size());
  }
  return header;
}

// Whether the header describes a file of `bytes` bytes that this program can read.
Status CheckHeader(const Header& header, std::span<const std::byte> file, std::string_view where) {
  if (header.magic != kMagic) {
    return Invalid("{}: is not a datastore segment", where);
  }
  if (header.byte_order != kByteOrder) {
    return Invalid("{}: was written on a machine of another byte order", where);
  }
  if (header.version != kVersion || header.sort_depth != kSortDepth) {
    return Invalid(
        "{}: has version {} and sorting depth {}, but version {} with depth {} is what this "
        "program reads; build it again",
        where, header.version, header.sort_depth, kVersion, kSortDepth);
  }
  if (HeaderChecksum(file.first(kPage), header) != header.checksum) {
    return Invalid("{}: the header is damaged (checksum)", where);
  }
  const std::uint64_t vocabulary = header.vocabulary;
  if (vocabulary == 0 || vocabulary > INT32_MAX || header.entries > kMaxTextEntries ||
      header.suffixes > header.entries ||
      header.token_bytes !=
          static_cast<std::uint32_t>(TokenBytesFor(static_cast<int>(vocabulary)))) {
    return Invalid("{}: the header contradicts itself", where);
  }
  const std::array<std::uint64_t, 3> sizes = {(header.entries + kSortDepth) * header.token_bytes,
                                              header.suffixes * 4, (vocabulary + 1) * 4};
  std::uint64_t offset = kPage;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Section& section = header.sections[i];
    if (section.offset != offset || section.bytes != sizes[i] || offset + sizes[i] > file.size()) {
      return Invalid(
          "{}: its {} should take {} bytes from byte {} on, in a file of {}; it may be truncated",
          where, kSectionNames[i], sizes[i], offset, file.size());
    }
    offset += RoundToPage(sizes[i]);
  }
  return {};
}

Status CheckChecksums(const Header& header, std::span<const std::byte> file,
                      std::string_view where) {
  for (std::size_t i = 0; i < header.sections.size(); ++i) {
    const Section& section = header.sections[i];
    if (Checksum(file.subspan(section.offset, section.bytes)) != section.checksum) {
      return Invalid("{}: its {} are damaged (checksum)", where, kSectionNames[i]);
    }
  }
  return {};
}

// Checksums find accidents; this makes any bytes safe to search.
Status CheckBounds(const Segment& segment, std::string_view where) {
  const SegmentParts& parts = segment.parts();
  const bool text_good = segment.Visit([&parts]<typename T>(const T* text) {
    const auto vocabulary = static_cast<std::uint32_t>(parts.vocabulary);
    bool good = true;
    for (std::uint64_t i = 0; i < parts.entries; ++i) {
      good &= text[i] < vocabulary || text[i] == kSeparator<T>;
    }
    for (int i = 0; i < kSortDepth; ++i) good &= text[parts.entries + i] == kSeparator<T>;
    return good;
  });
  std::uint32_t greatest = 0;
  for (const std::uint32_t position : parts.suffixes) greatest = std::max(greatest, position);
  const bool suffixes_good = parts.suffixes.empty() || greatest < parts.entries;
  const bool buckets_good = parts.buckets.front() == 0 &&
                            parts.buckets.back() == parts.suffixes.size() &&
                            std::ranges::is_sorted(parts.buckets);
  if (text_good && suffixes_good && buckets_good) return {};
  return Invalid("{}: its {} point outside the file's bounds", where,
                 !text_good       ? kSectionNames[0]
                 : !suffixes_good ? kSectionNames[1]
                                  : kSectionNames[2]);
}

}  // namespace

bool IsFingerprint(std::string_view fingerprint) {
  return fingerprint.size() == kFingerprintDigits &&
         fingerprint.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status TokenizerIdentity::CheckSame(const TokenizerIdentity& other, std::string_view where) const {
  if (fingerprint == other.fingerprint && vocabulary == other.vocabulary) return {};
  const auto describe = [](const TokenizerIdentity& identity) {
    return fmt::format("{} ({} tokens, fingerprint {:.12}...)",
                       identity.name.empty() ? "an unnamed tokenizer" : identity.name,
                       identity.vocabulary, identity.fingerprint);
  };
  return Invalid("{}: holds tokens of {}, but those of {} are wanted", where, describe(*this),
                 describe(other));
}

Status WriteSegmentFile(FileSystem* files, const std::filesystem::path& path,
                        const Segment& segment, const TokenizerIdentity& tokenizer) {
  FT_CHECK(IsFingerprint(tokenizer.fingerprint), "fingerprint '{}'", tokenizer.fingerprint);
  Header header = HeaderOf(segment, tokenizer);
  std::array<std::byte, kPage> page = {};
  header.checksum = HeaderChecksum(page, header);
  std::memcpy(page.data(), &header, sizeof(header));
  return PublishFile(files, path, [&](WritableFile* file) -> Status {
    FT_RETURN_IF_ERROR(file->Append(page));
    constexpr std::array<std::byte, kPage> kZeros = {};
    for (const auto section : SectionsOf(segment)) {
      FT_RETURN_IF_ERROR(file->Append(section));
      FT_RETURN_IF_ERROR(
          file->Append(std::span(kZeros).first(RoundToPage(section.size()) - section.size())));
    }
    return {};
  });
}

Result<std::shared_ptr<const Segment>> ParseSegment(std::span<const std::byte> file,
                                                    std::shared_ptr<const void> memory,
                                                    const TokenizerIdentity& tokenizer,
                                                    std::string_view where,
                                                    const std::atomic<bool>* lost) {
  if (file.size() < kPage) {
    return Invalid("{}: {} bytes are too few for a datastore segment", where, file.size());
  }
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  FT_RETURN_IF_ERROR(CheckHeader(header, file, where));
  const TokenizerIdentity stored = {"", std::string(header.fingerprint.data(), kFingerprintDigits),
                                    static_cast<int>(header.vocabulary)};
  FT_RETURN_IF_ERROR(stored.CheckSame(tokenizer, where));
  FT_RETURN_IF_ERROR(CheckChecksums(header, file, where));

  const auto words = [&](std::size_t section) {
    return std::span(
        reinterpret_cast<const std::uint32_t*>(file.data() + header.sections[section].offset),
        header.sections[section].bytes / 4);
  };
  auto segment = std::make_shared<const Segment>(
      SegmentParts{.text = file.data() + header.sections[0].offset,
                   .entries = header.entries,
                   .documents = header.documents,
                   .vocabulary = static_cast<int>(header.vocabulary),
                   .suffixes = words(1),
                   .buckets = words(2),
                   .lost = lost},
      std::move(memory));
  FT_RETURN_IF_ERROR(CheckBounds(*segment, where));
  return segment;
}

Result<std::shared_ptr<const Segment>> OpenSegmentFile(const std::filesystem::path& path,
                                                       const TokenizerIdentity& tokenizer) {
  FT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                      MappedFile::Open(path, WhenLost::kZeros));
  const auto bytes = file->bytes();
  const std::atomic<bool>* const lost = file->lost();
  return ParseSegment(bytes, std::move(file), tokenizer, path.string(), lost);
}

void ResealSegment(std::span<std::byte> file) {
  if (file.size() < kPage) return;
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  for (Section& section : header.sections) {
    if (section.offset <= file.size() && section.bytes <= file.size() - section.offset) {
      section.checksum = Checksum(file.subspan(section.offset, section.bytes));
    }
  }
  header.checksum = HeaderChecksum(file.first(kPage), header);
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace foretoken
