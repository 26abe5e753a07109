#pragma once

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/amx/bf16_emulation_test.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/quant/quant_testing.h"
#include "backend/reference/reference_backend.h"

namespace foretoken {

/// A backend under test: kernels and a precision; under kPortable kernels for quantised weights.
struct Subject {
  const cpu::Kernels* kernels;
  Precision precision;
  const cpu::QuantKernels* quant = nullptr;

  std::string Name() const {
    if (precision == Precision::kPortable) {
      return fmt::format("{}_{}_Portable", kernels->name, quant->name);
    }
    return fmt::format("{}_{}", kernels->name, precision == Precision::kBF16 ? "BF16" : "F32");
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

inline std::vector<float> Random(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline TensorView ViewOf(const std::vector<float>& values, std::int64_t rows) {
  return {WeightFormat::kF32,
          {rows, static_cast<std::int64_t>(values.size()) / rows},
          reinterpret_cast<const std::byte*>(values.data())};
}

inline bool SameBits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

class BackendTest : public testing::TestWithParam<Subject> {
 protected:
  std::unique_ptr<Backend> Make(ThreadPool* pool = nullptr) const {
    const auto& [kernels, precision, quant] = GetParam();
    return quant != nullptr ? MakePortableCpuBackend(*kernels, *quant, pool)
                            : MakeCpuBackend(*kernels, pool, precision);
  }
  std::unique_ptr<Backend> Reference() const {
    return portable() ? MakePortableReference() : MakeReferenceBackend(GetParam().precision);
  }
  bool bf16() const { return GetParam().precision == Precision::kBF16; }
  bool portable() const { return GetParam().precision == Precision::kPortable; }
  /// How far results may be from the reference's: those of the portable arithmetic are the same.
  float Tolerance(float usual) const { return portable() ? 0.0F : usual; }
};

MATCHER_P(NearBy, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

}  // namespace foretoken
