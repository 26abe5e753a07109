#include "text/grammar/automaton/character_kinds.h"

#include <bit>
#include <vector>

namespace foretoken {
namespace {

struct KindTable {
  std::array<std::uint8_t, 128> kinds{};            // As numbers, by character.
  std::array<std::vector<std::uint8_t>, 64> lists;  // Characters, by kind.
};

KindTable MakeTable() {
  KindTable table;
  // Kinds that tell most grammars apart come first, since they are looked at first.
  enum { kLateLetter, kEarlyLetter, kDigit, kEarlyCapital, kLateCapital, kControl, kFirstOther };
  std::uint8_t next = kFirstOther;
  for (std::uint8_t c = 0; c < 128; ++c) {
    const auto within = [&](char first, char last) { return first <= c && c <= last; };
    std::uint8_t kind = 0;
    if (within('a', 'f')) {
      kind = kEarlyLetter;
    } else if (within('g', 'z')) {
      kind = kLateLetter;
    } else if (within('0', '9')) {
      kind = kDigit;
    } else if (within('A', 'F')) {
      kind = kEarlyCapital;
    } else if (within('G', 'Z')) {
      kind = kLateCapital;
    } else {
      kind = c < ' ' ? static_cast<std::uint8_t>(kControl) : next++;
    }
    table.kinds[c] = kind;
    table.lists[kind].push_back(c);
  }
  return table;
}

const KindTable& Table() {
  static const KindTable table = MakeTable();
  return table;
}

}  // namespace

CharacterKinds KindOf(std::uint8_t ascii) { return CharacterKinds{1} << Table().kinds[ascii]; }

std::span<const std::uint8_t> CharactersOf(CharacterKinds kind) {
  return Table().lists[std::countr_zero(kind)];
}

Utf8State NextUtf8(Utf8State state, std::uint8_t byte) {
  const auto then = [&](int first, int last, Utf8State next) {
    return first <= byte && byte <= last ? next : Utf8State::kBroken;
  };
  switch (state) {
    case Utf8State::kWhole:
      if (byte < 0x80) return Utf8State::kWhole;
      if (byte < 0xC2 || byte > 0xF4) return Utf8State::kBroken;
      if (byte < 0xE0) return Utf8State::kOneMore;
      if (byte == 0xE0) return Utf8State::kAfterE0;
      if (byte == 0xED) return Utf8State::kAfterED;
      if (byte < 0xF0) return Utf8State::kTwoMore;
      if (byte == 0xF0) return Utf8State::kAfterF0;
      return byte == 0xF4 ? Utf8State::kAfterF4 : Utf8State::kThreeMore;
    case Utf8State::kOneMore:
      return then(0x80, 0xBF, Utf8State::kWhole);
    case Utf8State::kTwoMore:
      return then(0x80, 0xBF, Utf8State::kOneMore);
    case Utf8State::kThreeMore:
      return then(0x80, 0xBF, Utf8State::kTwoMore);
    case Utf8State::kAfterE0:
      return then(0xA0, 0xBF, Utf8State::kOneMore);
    case Utf8State::kAfterED:
      return then(0x80, 0x9F, Utf8State::kOneMore);
    case Utf8State::kAfterF0:
      return then(0x90, 0xBF, Utf8State::kTwoMore);
    case Utf8State::kAfterF4:
      return then(0x80, 0x8F, Utf8State::kTwoMore);
    case Utf8State::kBroken:
      break;
  }
  return Utf8State::kBroken;
}

}  // namespace foretoken
