#include "compress/per_head.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace vericache::compress {

kv::PackedKv PackHeads(const Job& job, ThreadTeam& team,
                       const std::function<kv::PackedHead(const HeadJob&)>& pack) {
  VC_CHECK(job.end >= Position{0} && job.end.value <= job.source->TokenCount(),
           "end {} of {} tokens", job.end.value, job.source->TokenCount());
  const kv::KvShape& shape = job.source->Shape();
  std::vector<kv::PackedHead> heads(static_cast<size_t>(shape.HeadCount()));
  WorkQueue queue;
  queue.Reset(shape.HeadCount());
  team.Run([&](Member&) {
    for (int idx = queue.Next(); idx >= 0; idx = queue.Next()) {
      const int layer = idx / shape.n_kv_heads;
      const int head = idx % shape.n_kv_heads;
      const kv::HeadView view(*job.source, layer, head, job.end);
      heads[static_cast<size_t>(idx)] = pack({.layer = layer, .head = head, .view = view});
    }
  });
  return kv::PackedKv(shape, job.end.value, std::move(heads));
}

}  // namespace vericache::compress
