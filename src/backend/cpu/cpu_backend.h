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

/// The kernels of an instruction set, which must be available.
const cpu::Kernels& KernelsFor(Isa isa = AvailableIsas().back());

/// The backend of one CPU device. Weights and KV have one layout for all instruction sets. Kernels
/// and pool outlive it; without a pool the calling thread works alone.
std::unique_ptr<Backend> MakeCpuBackend(const cpu::Kernels& kernels, ThreadPool* pool,
                                        Precision precision);

}  // namespace foretoken
