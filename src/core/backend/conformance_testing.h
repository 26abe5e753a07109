#pragma once

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/backend/cpu/amx/bf16_emulation_testing.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/quant/quant_testing.h"
#include "core/backend/testing/reference_backend.h"

namespace foretoken {

/// A backend under test: kernels and how it keeps numbers; under kPortable kernels for quantised
/// weights.
struct Subject {
  const cpu::Kernels* kernels;
  Numerics numerics;
  const cpu::QuantKernels* quant = nullptr;

  std::string Name() const {
    std::string name = kernels->name;
    if (quant != nullptr) name += fmt::format("_{}", quant->name);
    return fmt::format("{}_{}_{}", name, PrecisionName(numerics.precision),
                       KvFormatName(numerics.kv));
  }
};

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.Name(); }

inline std::vector<Subject> PortableSubjects() {
  std::vector<Subject> subjects;
  for (const cpu::Kernels* kernels : PortableKernels()) {
    subjects.push_back({kernels, Precision::kPortable, AvailableQuantKernels().front()});
  }
  for (const cpu::QuantKernels* quant : TestedQuantKernels()) {
    subjects.push_back({PortableKernels().back(), Precision::kPortable, quant});
  }
  subjects.erase(subjects.begin() + std::ssize(PortableKernels()) - 1);  // It is there twice.
  return subjects;
}

inline std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  for (const Precision precision : {Precision::kBF16, Precision::kF32}) {
    for (const cpu::Kernels* kernels : AvailableKernels()) subjects.push_back({kernels, precision});
  }
  subjects.push_back({&cpu::amx_emulated::Table(), Precision::kBF16});
  for (const Subject& subject : PortableSubjects()) subjects.push_back(subject);
  return subjects;
}

/// Every format of KV beside every set of kernels; F32 weights, which no attention reads, with
/// their own only.
inline std::vector<Subject> AttentionSubjects() {
  std::vector<Subject> subjects;
  for (const Subject& subject : Subjects()) {
    for (std::size_t i = 0; i < kKvFormats; ++i) {
      const auto kv = static_cast<KvFormat>(i);
      const Precision precision = subject.numerics.precision;
      if (precision == Precision::kF32 && kv != subject.numerics.kv) continue;
      subjects.push_back({subject.kernels, {precision, kv}, subject.quant});
    }
  }
  return subjects;
}

inline std::vector<float> Random(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline TensorView ViewOf(const std::vector<float>& values, std::int64_t rows) {
  return {WeightFormat::kF32,
          {rows, std::ssize(values) / rows},
          reinterpret_cast<const std::byte*>(values.data())};
}

inline bool SameBits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

/// What `make` returns, which is called once for all cases that ask the same question at this place
/// in the source. `make` must be a lambda: each place has a type of its own.
template <typename Make>
const auto& Once(const std::string& question, Make make) {
  static std::map<std::string, decltype(make())> known;
  const auto found = known.find(question);
  return found != known.end() ? found->second : known.emplace(question, make()).first->second;
}

class BackendTest : public testing::TestWithParam<Subject> {
 protected:
  std::unique_ptr<Backend> Make(ThreadPool* pool = nullptr) const {
    const auto& [kernels, numerics, quant] = GetParam();
    return quant != nullptr ? MakePortableCpuBackend(*kernels, *quant, pool, numerics.kv)
                            : MakeCpuBackend(*kernels, pool, numerics);
  }
  std::unique_ptr<Backend> Reference() const {
    const Numerics& numerics = GetParam().numerics;
    return portable() ? MakePortableReference(numerics.kv) : MakeReferenceBackend(numerics);
  }
  /// The reference's numerics: many subjects are held against the same reference.
  static std::string NumericsName() {
    const Numerics& numerics = GetParam().numerics;
    return fmt::format("{} {}", PrecisionName(numerics.precision), KvFormatName(numerics.kv));
  }
  bool portable() const { return GetParam().numerics.precision == Precision::kPortable; }
  /// How far results may be from the reference's: those of the portable arithmetic are the same.
  float Tolerance(float usual) const { return portable() ? 0.0F : usual; }
};

MATCHER_P(NearBy, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

}  // namespace foretoken
