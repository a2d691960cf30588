// The loop every method has: each head packed on its own, heads shared by the team.
#pragma once

#include <functional>

#include "compress/compressor.h"
#include "kv/head_view.h"
#include "kv/packed_kv.h"

namespace vericache::compress {

// The slots of one head that a job compresses.
struct HeadJob {
  int layer = 0;
  int head = 0;
  const kv::HeadView& view;
};

// visit(head job) of every head. The calls run concurrently; which thread takes which head must not
// show (I6).
void ForEachHead(const Job& job, ThreadTeam& team,
                 const std::function<void(const HeadJob&)>& visit);

// Packs pack(head job) of every head, as ForEachHead visits them.
kv::PackedKv PackHeads(const Job& job, ThreadTeam& team,
                       const std::function<kv::PackedHead(const HeadJob&)>& pack);

}  // namespace vericache::compress
