#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "base/thread_pool.h"

namespace foretoken {

/// Instruction sets with kernels of their own.
enum class Isa { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// Those that this machine and its kernel let a program use, the fastest last. Never empty. Asks
/// the system for the use of AMX tiles where there are any.
std::vector<Isa> AvailableIsas();

/// "portable", "avx2", "avx512", "avx512_bf16", "amx".
std::string_view IsaName(Isa isa);

struct CpuBackendOptions {
  ThreadPool* pool = nullptr;  ///< Not owned; nullptr: the calling thread alone.
  Precision precision = Precision::kBF16;
  Isa isa = AvailableIsas().back();  ///< Must be available.
};

/// The backend of one CPU device. Weights and KV have one layout for all instruction sets.
std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options);

/// The kernels of an available instruction set.
const cpu::Kernels& KernelsFor(Isa isa);

/// A backend over any table of kernels, which must outlive it (for tests).
std::unique_ptr<Backend> MakeCpuBackend(const cpu::Kernels& kernels, ThreadPool* pool,
                                        Precision precision);

}  // namespace foretoken
