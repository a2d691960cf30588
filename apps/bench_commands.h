// `vericache bench --commands`: a process that times what it is told to, so that two engines can
// take turns in one run. bench/scenarios/llama_peer.cc answers the same commands (the first three)
// with llama.cpp.
//
// It first says what it is. Then each line is a command, and is answered by one line of JSON, an
// object; {"error": sentence} if it could not be carried out.
//
//   open SEQUENCES TOKENS    makes room for sequences of so many tokens
//   depth N                  brings each sequence to N tokens: {seconds}
//   pass ROWS last|all       runs rows behind each sequence and forgets them, with logits of the
//                            last row or of all: {seconds, and what it cost}
//   parts ROWS last|all      the same, by part of the layer: {seconds, parts_ms}
//   ceilings                 the machine's limits, now
//   prompts COUNT TOKENS FILE  an engine and distinct prompts from the text, prefilled and kept;
//                            TOKENS 0: one prompt, the text as it is
//   answer MODE DRAFTER COMPRESSOR DRAFT_LEN TOKENS  all prompts answered at once, greedily
#pragma once

#include "apps/bench_machine.h"
#include "base/result.h"

namespace vericache::apps {

// Answers until standard input ends. Errors: those of WriteError.
Status AnswerBenchCommands(BenchMachine& machine);

}  // namespace vericache::apps
