#include "text/tokenizer/bpe/bpe_family.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/tokenizer/bpe/pretokenizer.h"

namespace foretoken {
namespace {

// Qwen 3.5's: Qwen2's, with the marks of a letter in its word.
constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// GPT-4o's: words also end before a capital letter.
constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Mistral's: the same without "'s", and one digit to a word.
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Kimi's: GPT-4o's with runs of Han as words of their own.
constexpr std::string_view kKimiPattern =
    R"(\p{sc:Han}+)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoderPattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
    "| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kDeepseekV3Pattern =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
// Letters that have a case, as of the Unicode of its day, one by one.
constexpr std::string_view kDeepseekLlmLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}-\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}-\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}-\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekLlmMarks =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kDeepseekAsian =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view kDeepseekV3Asian =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";

// Names of steps that are not patterns.
constexpr std::string_view kPunctuation = "Punctuation";  // runs of it
constexpr std::string_view kDigits = "Digits";            // each a word
constexpr std::string_view kNumbers = "Numbers";          // runs of digits
constexpr std::string_view kBytes = "ByteLevel";
constexpr std::string_view kGpt2Words = "ByteLevel with GPT-2's pattern";

struct Row {
  std::string_view names;  // Spaces stand between them.
  std::array<std::string_view, 7> steps;
  bool nfc = false;
  bool whole_words_first = false;
  bool adds_bos = false;
};

constexpr Row kRows[] = {
    {.names = "llama-bpe llama3 llama-v3 pixtral midm-2.0 lfm2",
     .steps = {kLlama3Pattern, kBytes},
     .whole_words_first = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe chatglm-bpe glm4", .steps = {kLlama3Pattern, kBytes}},
    {.names = "qwen2 deepseek-r1-qwen stablelm2 megrez",
     .steps = {kQwen2Pattern, kBytes},
     .nfc = true},
    {.names = "qwen35", .steps = {kQwen35Pattern, kBytes}, .nfc = true},
    {.names = "gpt-2 gpt2 phi-2 mellum", .steps = {kGpt2Words}},
    {.names = "olmo mpt", .steps = {kGpt2Words}, .nfc = true},
    {.names = "smollm starcoder refact codeshell exaone", .steps = {kDigits, kGpt2Words}},
    {.names = "command-r", .steps = {kDigits, kGpt2Words}, .nfc = true},
    {.names = "gpt-4o llama4", .steps = {kGpt4oPattern, kBytes}},
    {.names = "tekken",
     .steps = {kTekkenPattern, kBytes},
     .whole_words_first = true,
     .adds_bos = true},
    {.names = "kimi-k2", .steps = {kKimiPattern, kBytes}, .whole_words_first = true},
    {.names = "seed-coder", .steps = {kSeedCoderPattern, kBytes}},
    {.names = "deepseek-llm",
     .steps = {"[\r\n]", kDeepseekLlmLetters, kDeepseekLlmMarks, "\\s+$", kDeepseekAsian, kDigits,
               kBytes}},
    {.names = "deepseek-coder",
     .steps = {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekAsian, kDigits, kBytes}},
    {.names = "deepseek-v3 hunyuan-dense",
     .steps = {"\\p{N}{1,3}", kDeepseekV3Asian, kDeepseekV3Pattern, kBytes}},
    {.names = "falcon", .steps = {kPunctuation, kGpt2Words, kNumbers, "[0-9][0-9][0-9]"}},
    {.names = "falcon3", .steps = {kPunctuation, kGpt2Words, kDigits}},
    // What llama.cpp does where a converter knew no family.
    {.names = "default",
     .steps = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, "\\p{N}+", "[0-9][0-9][0-9]", kBytes}},
};

bool Names(const Row& row, std::string_view name) {
  for (std::string_view rest = row.names; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

Json StepOf(std::string_view step) {
  if (step == kPunctuation) return {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
  if (step == kDigits || step == kNumbers) {
    return {{"type", "Digits"}, {"individual_digits", step == kDigits}};
  }
  if (step == kBytes || step == kGpt2Words) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", step == kGpt2Words}};
  }
  return {{"type", "Split"}, {"pattern", {{"Regex", step}}}, {"behavior", "Isolated"}};
}

}  // namespace

std::optional<BpeFamily> FindBpeFamily(std::string_view name) {
  for (const Row& row : kRows) {
    if (!Names(row, name)) continue;
    Json steps = Json::array();
    for (const std::string_view step : row.steps) {
      if (!step.empty()) steps.push_back(StepOf(step));
    }
    return BpeFamily{
        .pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}},
        .nfc = row.nfc,
        .whole_words_first = row.whole_words_first,
        .adds_bos = row.adds_bos,
    };
  }
  return std::nullopt;
}

std::vector<std::string_view> BpeFamilies() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.names.substr(0, row.names.find(' ')));
  return names;
}

std::string BpeFamilyNames() {
  std::string names;
  for (const Row& row : kRows) names.append(names.empty() ? "" : " ").append(row.names);
  return names;
}

}  // namespace foretoken
