#include "compress/per_head.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace vericache::compress {

void ForEachHead(const Job& job, ThreadTeam& team,
                 const std::function<void(const HeadJob&)>& visit) {
  VC_CHECK(job.end >= Position{0} && job.end.value <= job.source->TokenCount(),
           "end {} of {} tokens", job.end.value, job.source->TokenCount());
  const kv::KvShape& shape = job.source->Shape();
  WorkQueue queue;
  queue.Reset(shape.HeadCount());
  team.Run([&](Member&) {
    for (int idx = queue.Next(); idx >= 0; idx = queue.Next()) {
      const int layer = idx / shape.n_kv_heads;
      const int head = idx % shape.n_kv_heads;
      const kv::HeadView view(*job.source, layer, head, job.end);
      visit({.layer = layer, .head = head, .view = view});
    }
  });
}

kv::PackedKv PackHeads(const Job& job, ThreadTeam& team,
                       const std::function<kv::PackedHead(const HeadJob&)>& pack) {
  const kv::KvShape& shape = job.source->Shape();
  std::vector<kv::PackedHead> heads(static_cast<size_t>(shape.HeadCount()));
  ForEachHead(job, team, [&](const HeadJob& head) {
    heads[shape.HeadIndex(head.layer, head.head)] = pack(head);
  });
  return kv::PackedKv(shape, job.end.value, std::move(heads));
}

}  // namespace vericache::compress
