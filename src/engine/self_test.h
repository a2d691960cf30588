// The identity self-test: the chosen kernels against the definition, bit for bit, on small shapes.
//
// Takes milliseconds and runs at every start, on the machine and in the process that will answer: a
// compiler, an emulator or a virtual machine that changes a bit is found before a token is.
// Threads: re-entrant.
#pragma once

#include "base/result.h"
#include "kernels/kernels.h"

namespace vericache::engine {

// Errors: kInternal, naming the operation and the path.
Status SelfTest(const kernels::KernelTable& chosen);

}  // namespace vericache::engine
