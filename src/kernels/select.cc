// Which paths this machine can run: what the CPU offers and what the operating system saves on a
// context switch.

#include <cpuid.h>

#include <array>
#include <string>

#include "kernels/paths.h"

namespace vericache::kernels {
namespace {

struct CpuidRegisters {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// All zero if the CPU does not know the leaf.
CpuidRegisters Cpuid(uint32_t leaf) {
  CpuidRegisters r;
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

constexpr bool HasBits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }
constexpr uint64_t Bit(int i) { return uint64_t{1} << i; }

// XCR0: the register states the operating system saves. Requires: OSXSAVE.
uint64_t SavedStates() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool IsOffered(Isa isa) {
  if (isa == Isa::kRef) return true;
  constexpr uint64_t kFma = Bit(12), kOsXsave = Bit(27), kAvx = Bit(28), kF16c = Bit(29);  // 1, ecx
  constexpr uint64_t kAvx2 = Bit(5), kF = Bit(16), kDq = Bit(17), kBw = Bit(30),
                     kVl = Bit(31);    // 7, ebx
  constexpr uint64_t kVnni = Bit(11);  // 7, ecx
  constexpr uint64_t kYmmStates = Bit(1) | Bit(2);
  constexpr uint64_t kZmmStates = kYmmStates | Bit(5) | Bit(6) | Bit(7);

  const CpuidRegisters basic = Cpuid(1);
  const CpuidRegisters extended = Cpuid(7);
  if (!HasBits(basic.ecx, kFma | kOsXsave | kAvx | kF16c) || !HasBits(extended.ebx, kAvx2))
    return false;
  const uint64_t saved = SavedStates();
  if (!HasBits(saved, kYmmStates)) return false;
  if (isa == Isa::kAvx2) return true;
  if (!HasBits(extended.ebx, kF | kDq | kBw | kVl) || !HasBits(saved, kZmmStates)) return false;
  return isa == Isa::kAvx512 || HasBits(extended.ecx, kVnni);
}

// Slowest first.
std::array<const KernelTable*, 4> AllKernels() {
  return {&RefKernels(), &Avx2Kernels(), &Avx512Kernels(), &Avx512VnniKernels()};
}

}  // namespace

std::vector<const KernelTable*> AvailableKernels() {
  std::vector<const KernelTable*> available;
  for (const KernelTable* table : AllKernels()) {
    if (IsOffered(table->isa)) available.push_back(table);
  }
  return available;
}

Result<const KernelTable*> SelectKernels(std::string_view name_or_auto) {
  if (name_or_auto == "auto") return AvailableKernels().back();
  std::string names = "auto";
  for (const KernelTable* table : AllKernels()) {
    if (table->name == name_or_auto) {
      if (IsOffered(table->isa)) return table;
      return MakeError(ErrorCode::kUnsupported,
                       "this machine cannot run the instruction set '{}'; fastest here: {}",
                       name_or_auto, AvailableKernels().back()->name);
    }
    names += ", ";
    names += table->name;
  }
  return MakeError(ErrorCode::kInvalidArgument, "unknown instruction set '{}': expected one of {}",
                   name_or_auto, names);
}

}  // namespace vericache::kernels
